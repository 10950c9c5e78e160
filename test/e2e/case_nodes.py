# SPDX-License-Identifier: Apache-2.0
#
# What an operator does with nodes: cordon, taint, drain, and reading about them. The cases change
# one simulated node and put it back as it was.

import json

from suite import SIMULATED, case, check, contains, equal, eventually


def pod_for(kubectl, name, node, **spec):
    """A small pod that only this node can take."""
    overrides = {"spec": {"nodeSelector": {"kubernetes.io/hostname": node},
                          "terminationGracePeriodSeconds": 1, **spec}}
    kubectl("run", name, "--image=example/p", "--labels=app=" + name, "--overrides",
            json.dumps(overrides))


def is_pending(kubectl, name):
    kubectl("wait", "--for=condition=PodScheduled=False", f"pod/{name}", "--timeout=30s")


def is_ready(kubectl, name):
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


@case(needs="simulated")
def nodes_can_be_read(kubectl, cluster):
    """Nodes are ready, and get and describe tell about them"""
    kubectl("wait", "--for=condition=Ready", "nodes", "-l", SIMULATED, "--timeout=30s")
    node = cluster.simulated[0]
    contains(kubectl("get", "node", node, "-o", "wide"), "Ready", "INTERNAL-IP")
    contains(kubectl("describe", "node", node), "Capacity:", "Allocatable:", "Conditions:",
             "HolderIdentity:")
    check(kubectl.inside("kube-node-lease").value(f"lease/{node}", ".spec.renewTime"),
          "it renews its lease")


@case(needs="simulated", alone=True)
def cordon(kubectl, cluster):
    """A cordoned node takes no pods until it is uncordoned"""
    node = cluster.simulated_node()
    kubectl("cordon", node)
    try:
        contains(kubectl("get", "node", node), "Ready,SchedulingDisabled")
        pod_for(kubectl, "p", node)
        is_pending(kubectl, "p")
    finally:
        kubectl("uncordon", node)
    is_ready(kubectl, "p")
    equal(kubectl.value(f"node/{node}", ".spec.taints"), "", "taints after uncordon")


@case(needs="simulated", alone=True)
def taints(kubectl, cluster):
    """NoSchedule keeps pods off, NoExecute makes them leave, tolerations allow both"""
    node = cluster.simulated_node()
    kubectl("taint", "node", node, "e2e=1:NoSchedule")
    try:
        pod_for(kubectl, "intolerant", node)
        pod_for(kubectl, "tolerant", node, tolerations=[{"key": "e2e", "operator": "Exists"}])
        is_ready(kubectl, "tolerant")
        is_pending(kubectl, "intolerant")
        kubectl("taint", "node", node, "e2e:NoSchedule-")
        is_ready(kubectl, "intolerant")
        kubectl("taint", "node", node, "e2e=1:NoExecute")
        kubectl("wait", "--for=delete", "pod/intolerant", "--timeout=60s")
        equal(kubectl.value("pod/tolerant", ".status.phase"), "Running", "the tolerant pod")
    finally:
        kubectl.run("taint", "node", node, "e2e-")


@case(needs="simulated", alone=True)
def drain_respects_budgets(kubectl, cluster):
    """drain waits for a disruption budget, and goes on once it allows"""
    node = cluster.simulated_node()
    kubectl.apply_file("deployment.yaml")
    kubectl("patch", "deploy", "web", "-p", json.dumps({"spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/hostname": node}}}}}))
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=3")
    eventually("the budget counts",
               lambda: kubectl.value("pdb/web", ".status.currentHealthy") == "3")
    equal(kubectl.value("pdb/web", ".status.disruptionsAllowed"), "0", "allowed")
    drain = ("drain", node, "--pod-selector=app=web", "--ignore-daemonsets")
    try:
        kubectl.refused(*drain, "--timeout=2s", saying="disruption budget")
        equal(kubectl.value(f"node/{node}", ".spec.unschedulable"), "true", "cordoned")
        check(len(kubectl.names("pods", "-l", "app=web")) == 3, "no pod went")
        kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":0}}')
        eventually("the budget allows",
                   lambda: kubectl.value("pdb/web", ".status.disruptionsAllowed") == "3")
        contains(kubectl(*drain, "--timeout=60s"), "evicted", "drained")
        eventually("others wait for the node", lambda: "Running" not in kubectl(
            "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.phase}"))
    finally:
        kubectl("uncordon", node)
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")


@case(needs="simulated", alone=True)
def drain_of_lone_pods(kubectl, cluster):
    """drain refuses pods that nobody would replace, unless forced"""
    node = cluster.simulated_node()
    pod_for(kubectl, "lone", node)
    is_ready(kubectl, "lone")
    drain = ("drain", node, "--pod-selector=app=lone", "--ignore-daemonsets")
    try:
        kubectl.refused(*drain, "--timeout=5s", saying="--force")
        kubectl(*drain, "--force", "--timeout=60s")
        kubectl.refused("get", "pod", "lone", saying="NotFound")
    finally:
        kubectl("uncordon", node)


@case(needs="simulated", alone=True)
def node_labels_steer(kubectl, cluster):
    """A label given to a node lets a pod that waits for it run"""
    node = cluster.simulated_node()
    kubectl("run", "p", "--image=example/p", "--overrides", json.dumps(
        {"spec": {"nodeSelector": {"e2e.jogak.io/here": "yes"}}}))
    is_pending(kubectl, "p")
    kubectl("label", "node", node, "e2e.jogak.io/here=yes")
    try:
        is_ready(kubectl, "p")
        equal(kubectl.value("pod/p", ".spec.nodeName"), node, "node")
    finally:
        kubectl("label", "node", node, "e2e.jogak.io/here-")
