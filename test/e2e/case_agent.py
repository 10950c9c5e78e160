# SPDX-License-Identifier: Apache-2.0
#
# What `jogak agent run` writes into a cluster, with the permissions of deploy/jogak-agent.yaml and
# nothing else: labels, annotation, conditions and taint of its node follow the GPUs, and what
# others wrote stays.

import base64
import json
import os
import ssl
import threading
import urllib.error
import urllib.request

from agent_process import AgentProcess, account_config, permissions_only
from case_deploy import reviews_of, rules_of
from suite import Failed, Skipped, case, check, contains, equal, eventually

ACCOUNT = "system:serviceaccount:kube-system:jogak-agent"
# (verb, group, resource), everywhere
ALLOWED = [("get", "", "nodes"), ("list", "", "nodes"), ("watch", "", "nodes"),
           ("patch", "", "nodes"), ("patch", "", "nodes/status"), ("patch", "", "pods")]
# and in the namespace "default", where Events of Nodes are
IN_DEFAULT = [("create", "events.k8s.io", "events"), ("patch", "events.k8s.io", "events")]
REFUSED = [(verb, group, resource, "default", "") for verb, group, resource in (
    ("get", "", "secrets"), ("list", "", "secrets"), ("get", "", "configmaps"),
    ("get", "", "pods"), ("list", "", "pods"), ("watch", "", "pods"), ("create", "", "pods"),
    ("update", "", "pods"), ("delete", "", "pods"), ("patch", "", "pods/status"),
    ("create", "", "pods/exec"), ("create", "", "pods/binding"), ("create", "", "pods/eviction"),
    ("create", "", "nodes"), ("update", "", "nodes"), ("delete", "", "nodes"),
    ("update", "", "nodes/status"), ("get", "", "nodes/proxy"), ("create", "", "events"),
    ("create", "", "serviceaccounts/token"), ("impersonate", "", "users"),
    ("create", "coordination.k8s.io", "leases"), ("list", "apps", "daemonsets"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("delete", "events.k8s.io", "events"))] + [
        ("create", "events.k8s.io", "events", "kube-system", "")]
CONDITIONS = ("GpuUnusable", "GpuMemoryErrors", "GpuThrottled", "GpuLinkErrors")


class Permissions:
    """`with Permissions(kubectl) as everywhere:` the account and its role are there."""

    def __init__(self, kubectl):
        self.kubectl = kubectl.inside("")  # the manifest names its namespace

    def __enter__(self):
        self.kubectl("apply", "-f", "-", stdin=permissions_only())
        return self.kubectl

    def __exit__(self, *_):
        self.kubectl.run("delete", "-f", "-", "--ignore-not-found", "--wait=false",
                         stdin=permissions_only())


def has_authorization(kubectl):
    return not reviews_of(kubectl, ACCOUNT, REFUSED[:1])[0]


def granted(kubectl):
    """The authorizer hears of new roles a moment later."""
    questions = [(*what, "default", "") for what in ALLOWED + IN_DEFAULT]
    eventually("all permissions", lambda: all(reviews_of(kubectl, ACCOUNT, questions)), seconds=10)


@case(alone=True)
def agent_permissions(kubectl, _):
    """The agent's account may do what it does and nothing else"""
    with Permissions(kubectl) as everywhere:
        if not has_authorization(everywhere):
            raise Skipped("everybody may do everything here")
        granted(everywhere)
        for question, allowed in zip(REFUSED, reviews_of(everywhere, ACCOUNT, REFUSED)):
            check(not allowed, f"may {question}")
        for namespace, more in (("default", IN_DEFAULT), ("kube-system", [])):
            equal(sorted(rules_of(everywhere, ACCOUNT, namespace)), sorted(ALLOWED + more),
                  namespace)


class Node:
    """A node that others have written on, gone when the case ends."""

    def __init__(self, kubectl, name):
        self.kubectl = kubectl
        self.name = name

    def __enter__(self):
        self.kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {
                "name": self.name,
                "labels": {"example.com/rack": "r7", "nvidia.com/gpu.family": "kepler",
                           "nvidia.com/gpu.stale": "true"},
                "annotations": {"example.com/note": "mine", "jogak.io/agent-labels":
                                "nvidia.com/gpu.family,nvidia.com/gpu.stale"}},
            "spec": {"taints": [{"key": "example.com/e2e", "effect": "NoSchedule"}]}}))
        return self

    def __exit__(self, *_):
        self.kubectl.run("delete", "node", self.name, "--wait=false")

    def get(self):
        return self.kubectl.json("get", "node", self.name)

    def gpus(self):
        return json.loads(self.get()["metadata"]["annotations"].get("jogak.io/gpus", "[]"))

    def conditions(self):
        return {c["type"]: c["status"] for c in self.get().get("status", {}).get("conditions", [])
                if c["type"] in CONDITIONS}

    def taints(self):
        return sorted(taint["key"] for taint in self.get()["spec"].get("taints", []))


def check_labels(node):
    labels = node.get()["metadata"]["labels"]
    for name, value in (("gpu.count", "4"), ("gpu.family", "ampere"), ("gpu.memory", "40960"),
                        ("gpu.product", "NVIDIA-A100-SXM4-40GB"), ("mig.capable", "true")):
        equal(labels.get("nvidia.com/" + name), value, name)
    equal(labels.get("nvidia.com/gpu.stale"), None, "the stale label")
    equal(labels.get("example.com/rack"), "r7", "somebody else's label")
    equal(node.get()["metadata"]["annotations"]["example.com/note"], "mine", "annotation")


@case(alone=True)
def agent_writes_its_node(kubectl, cluster):
    """Labels, annotation, conditions and taint follow the GPUs; what others wrote stays"""
    binary = os.environ.get("JOGAK_BINARY")
    if not binary:
        raise Skipped("JOGAK_BINARY is not set")
    with Permissions(kubectl) as everywhere, \
            Node(everywhere, f"e2e-agent-{cluster.suffix}") as node:
        has_roles = has_authorization(everywhere)
        if has_roles:
            granted(everywhere)
        config = account_config(everywhere, has_roles)
        with AgentProcess(binary, config, node.name, "--taints", "any") as agent:
            try:
                follow(everywhere, node, agent)
            except Failed as reason:
                raise Failed(f"{reason}; the agent said: {agent.output()[-800:]}") from None
            lines = [json.loads(line) for line in agent.output().splitlines()]
            equal([line for line in lines if "orbidden" in json.dumps(line)], [], "refusals")


def follow(kubectl, node, agent):
    well = {name: "False" for name in CONDITIONS}
    eventually("four conditions", lambda: node.conditions() == well, seconds=20)
    check_labels(node)
    equal(len(node.gpus()), 4, "gpus in the annotation")
    equal(node.taints(), ["example.com/e2e"], "taints")
    # Others write on the node all the while: a write of the agent's that meets one is made again.
    done = threading.Event()

    def describe():
        return kubectl("describe", "node", node.name)

    def disturb():
        count = 0
        while not done.is_set():
            count += 1
            kubectl.run("label", "node", node.name, "--overwrite", f"example.com/count=n{count}")

    others = threading.Thread(target=disturb)
    others.start()
    try:
        agent.write("faults", "1=lost")
        eventually("the lost GPU in a condition",
                   lambda: node.conditions()["GpuUnusable"] == "True", seconds=20)
        eventually("and in the annotation",
                   lambda: [gpu.get("health") for gpu in node.gpus()] ==
                   [None, "Unhealthy", None, None], seconds=20)
        eventually("and a taint", lambda: node.taints() == [
            "example.com/e2e", "jogak.io/gpu-unhealthy"], seconds=20)
        # Its XID is told before the GPU is missed: that is looked for once a second.
        eventually("an Event of it", lambda: "GpuLost" in describe(), seconds=20)
        agent.write("faults", "")
        eventually("well again", lambda: node.conditions() == well, seconds=40)
        eventually("an Event of that", lambda: "GpuRecovered" in describe(), seconds=20)
        eventually("without the taint", lambda: node.taints() == ["example.com/e2e"], seconds=20)
    finally:
        done.set()
        others.join()
    check_labels(node)
    contains(node.get()["metadata"]["labels"]["example.com/count"], "n")


@case()
def agent_patches_pods_of_its_node_alone(kubectl, cluster):
    """The patch that tells what a pod holds is refused for a pod of that name elsewhere"""
    here = f"e2e-here-{cluster.suffix}"
    kubectl("create", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"},
         "spec": {"nodeName": here, "automountServiceAccountToken": False,
                  "containers": [{"name": "c", "image": "example/p"}]}}))

    def patch(config, node):
        return raw_patch(config, f"/api/v1/namespaces/{kubectl.namespace}/pods/train", {
            "metadata": {"annotations": {"jogak.io/gpu-holds": '[{"gpu":0}]'}},
            "spec": {"nodeName": node}})

    def holds():
        return kubectl.json("get", "pod", "train")["metadata"].get("annotations", {}).get(
            "jogak.io/gpu-holds")

    with Permissions(kubectl) as everywhere:
        if has_authorization(everywhere):
            granted(everywhere)
        config = account_config(everywhere, has_authorization(everywhere))
        equal(patch(config, "elsewhere"), 422, "a pod of another node")
        equal(holds(), None, "holds")
        equal(patch(config, here), 200, "a pod of this node")
        equal(holds(), '[{"gpu":0}]', "holds")
        if has_authorization(everywhere):
            status = f"/api/v1/namespaces/{kubectl.namespace}/pods/train/status"
            equal(raw_patch(config, status, {"status": {"phase": "Failed"}}), 403, "its status")


def raw_patch(config, path, body):
    """The status code of a merge patch, sent as the agent sends it: kubectl would read first."""
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    request = urllib.request.Request(
        cluster["server"] + path, method="PATCH", data=json.dumps(body).encode(),
        headers={"Content-Type": "application/merge-patch+json",
                 "Authorization": "Bearer " + config["users"][0]["user"]["token"]})
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
