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


@case(needs="controllers,simulated")
def nodes_can_be_read(kubectl, cluster):
    """Nodes are ready, and get and describe tell about them"""
    kubectl("wait", "--for=condition=Ready", "nodes", "-l", SIMULATED, "--timeout=30s")
    node = cluster.simulated[0]
    contains(kubectl("get", "node", node, "-o", "wide"), "Ready", "INTERNAL-IP")
    contains(kubectl("describe", "node", node), "Capacity:", "Allocatable:", "Conditions:",
             "HolderIdentity:")
    check(kubectl.inside("kube-node-lease").value(f"lease/{node}", ".spec.renewTime"),
          "it renews its lease")


@case(needs="controllers,simulated", alone=True)
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


@case(needs="controllers,simulated", alone=True)
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


@case(needs="controllers,simulated", alone=True)
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


@case(needs="controllers,simulated", alone=True)
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


@case(needs="controllers,simulated", alone=True)
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


def pods_by_node(kubectl):
    pods = kubectl.json("get", "pods", "-l", "app=moving")["items"]
    return {pod["spec"].get("nodeName"): pod for pod in pods}


@case(needs="controllers,simulated", alone=True)
def node_failure(kubectl, cluster):
    """The pods of a silent node are replaced elsewhere, and the node may come back"""
    tolerations = [{"key": f"node.kubernetes.io/{state}", "operator": "Exists",
                    "effect": "NoExecute", "tolerationSeconds": 1}
                   for state in ("not-ready", "unreachable")]
    kubectl.apply(json.dumps({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "moving"},
        "spec": {"selector": {"matchLabels": {"app": "moving"}}, "template": {
            "metadata": {"labels": {"app": "moving"}},
            "spec": {"tolerations": tolerations, "terminationGracePeriodSeconds": 1,
                     "nodeSelector": dict([SIMULATED.split("=")]),
                     "containers": [{"name": "main", "image": "example/p"}]}}}}))
    kubectl("rollout", "status", "deploy/moving", "--timeout=60s")
    node, = pods_by_node(kubectl)
    kubectl("annotate", "node", node, "jogak.io/fault=down")
    try:
        kubectl("wait", "--for=condition=Ready=Unknown", f"node/{node}", "--timeout=90s")
        contains(kubectl("get", "node", node), "NotReady")
        eventually("a pod elsewhere", lambda: any(
            place not in (None, node) and pod["status"]["phase"] == "Running"
            for place, pod in pods_by_node(kubectl).items()))
        lost = pods_by_node(kubectl)[node]  # nobody is there who could confirm its end
        check(lost["metadata"].get("deletionTimestamp"), "the lost pod is terminating")
    finally:
        kubectl("annotate", "node", node, "jogak.io/fault-")
    kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=60s")
    eventually("the lost pod is gone", lambda: node not in pods_by_node(kubectl))
    eventually("no taint is left", lambda: not any(
        taint["key"] == "node.kubernetes.io/unreachable"
        for taint in kubectl.json("get", "node", node)["spec"].get("taints", [])))
