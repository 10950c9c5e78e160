# SPDX-License-Identifier: Apache-2.0
#
# deploy/jogak-agent.yaml on the real node, as a user applies it: an image of the executable under
# test, the shipped service account and the shipped privileges. What is added is what the test's
# node lacks: simulated GPUs, a driver's files in a folder (as where a container installs them), and
# the address of the API server (no kube-proxy is there, and pods have the node's network).

import json
import os
import pathlib
import urllib.parse

import node as real_node
from cases import check_devices
from node import GPU, HERE, NAME, equal, wait_for

MANIFEST = os.path.join(HERE, "..", "..", "deploy", "jogak-agent.yaml")
SPACE = "kube-system"
SELECTOR = "app.kubernetes.io/name=jogak-agent"
MACHINE = "sim:h100-80gb-x8"  # MIG mode changes without a reset
SLICE = "nvidia.com/mig-1g.10gb"
LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8",
          "nvidia.com/mig.strategy": "mixed"}
CONDITIONS = ["GpuLinkErrors", "GpuMemoryErrors", "GpuThrottled", "GpuUnusable"]


def environment(node, **more):
    """What the agent's container has to be told here: there is no kube-proxy."""
    server = urllib.parse.urlparse(node.plane.url)
    env = {"KUBERNETES_SERVICE_HOST": server.hostname,
           "KUBERNETES_SERVICE_PORT": str(server.port), "DEVICE_LIST_STRATEGY": "cdi-cri", **more}
    return [{"name": name, "value": value} for name, value in env.items()]


def patch(node):
    return json.dumps({"spec": {"template": {"spec": {
        "hostNetwork": True,
        "volumes": [{"name": "driver-root", "hostPath": {"path": node.driver_root}}],
        "containers": [{"name": "agent", "args": ["--nvml", MACHINE], "env": environment(
            node, NVIDIA_DRIVER_ROOT=node.driver_root)}]}}}})


def apply(node, manifest, patch_text):
    """The manifest's text, changed for this node, and its image."""
    archive = node.path("jogak.tar")
    version = real_node.jogak_image.ROOT.joinpath("VERSION").read_text().strip()
    real_node.jogak_image.make(os.environ["JOGAK_BINARY"], archive,
                               f"docker.io/library/jogak:{version}")
    node.runtime.load(archive)
    said = node.kubectl("apply", "-f", "-", stdin=manifest)
    assert "Warning" not in said, said
    node.kubectl("patch", "daemonset", "jogak-agent", "-n", SPACE, "-p", patch_text)
    wait_for("the agent's pod is ready", lambda: is_ready(agent_pod(node)))


def agent_pod(node):
    pods = json.loads(node.kubectl("get", "pods", "-n", SPACE, "-l", SELECTOR, "-o", "json"))
    (pod,) = [pod for pod in pods["items"] if "deletionTimestamp" not in pod["metadata"]]
    return pod


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True"
               for c in pod["status"].get("conditions", []))


def restarts(pod):
    return pod["status"]["containerStatuses"][0]["restartCount"]


def case_daemonset_becomes_ready(node):
    apply(node, pathlib.Path(MANIFEST).read_text(encoding="utf-8"), patch(node))
    node.wait_allocatable(8)


def case_daemonset_tells_the_node(node):
    def labels():
        found = node.object()["metadata"]["labels"]
        return {name: found.get(name) for name in LABELS} == LABELS
    wait_for(f"the labels {LABELS}", labels)
    conditions = {c["type"]: c["status"] for c in node.object()["status"]["conditions"]}
    equal({name: conditions.get(name) for name in CONDITIONS},
          dict.fromkeys(CONDITIONS, "False"), "conditions")
    gpus = json.loads(node.object()["metadata"]["annotations"]["jogak.io/gpus"])
    equal(len(gpus), 8, "GPUs in jogak.io/gpus")


def case_daemonset_serves_pods(node):
    node.run_pod("two", 2)
    container = node.container("two")
    equal(len(container.gpus()), 2, f"GPUs in {container.gpus()}")
    check_devices(node, container, container.gpus())
    assert container.has_file("/usr/lib64/libcuda.so.1"), "no libcuda.so.1"
    wait_for("the pod says what it holds", lambda: node.pod("two")["metadata"].get(
        "annotations", {}).get("jogak.io/gpu-holds"))
    wait_for("the metrics name the pod", lambda: any(
        name.startswith("DCGM_FI_DEV_GPU_UTIL{") and 'pod="two"' in name
        for name in node.metrics()))


def case_daemonset_is_rolled(node):
    """A new pod of the agent takes over; running pods do not notice."""
    container = node.container("two")
    before = agent_pod(node)["metadata"]["uid"]
    node.kubectl("rollout", "restart", "daemonset/jogak-agent", "-n", SPACE)
    wait_for("another pod is ready", lambda: agent_pod(node)["metadata"]["uid"] != before
             and is_ready(agent_pod(node)))
    node.wait_allocatable(8)
    assert container.is_alive() and node.phase("two") == "Running", "the pod was disturbed"
    node.run_pod("six", 6)
    assert not set(node.container("six").gpus()) & set(container.gpus()), "given out twice"


def case_daemonset_outlives_a_kubelet(node):
    uid = agent_pod(node)["metadata"]["uid"]
    node.restart_kubelet()
    wait_for("the node is ready", lambda: is_ready(node.object()))
    node.wait_allocatable(8)
    wait_for("the kubelet knows its pods", lambda: node.holds("two"))
    equal((agent_pod(node)["metadata"]["uid"], restarts(agent_pod(node))), (uid, 0),
          "the agent's pod and its restarts")
    node.delete("two", "six")


def case_daemonset_cuts_gpus_by_label(node):
    def label(config, state):
        node.kubectl("label", "node", NAME, "--overwrite", f"nvidia.com/mig.config={config}")
        wait_for(f"{config}: {state}", lambda: [
            node.object()["metadata"]["labels"].get("nvidia.com/mig.config.state"),
            node.object()["metadata"]["annotations"].get("jogak.io/mig.config.state-of")] == [
                state, config])
    label("all-1g.10gb", "success")
    node.wait_allocatable(56, SLICE)
    names = [f"slice-{i}" for i in range(7)]
    for name in names:
        node.run_pod(name, 1, SLICE)
    seen = [uuid for name in names for uuid in node.container(name).gpus()]
    equal((len(set(seen)), {uuid[:4] for uuid in seen}), (7, {"MIG-"}), f"slices in {seen}")
    # A slice in use stands in the way, and stays.
    label("all-disabled", "failed")
    wait_for("an Event of the Node", lambda: "MigConfigFailed" in node.events())
    node.wait_allocatable(56, SLICE)
    assert all(node.phase(name) == "Running" for name in names)
    node.delete(*names)
    label("all-enabled", "success")
    label("all-disabled", "success")
    node.wait_allocatable(8)


def case_daemonset_goes(node):
    node.kubectl("delete", "-f", MANIFEST, "--wait=true")
    wait_for("no GPU without the agent", lambda: node.allocatable(GPU) == "0")
    left = [name for name in os.listdir(os.path.dirname(real_node.KUBELET_SOCKET))
            if name.startswith("jogak")]
    equal(left, [], "sockets left behind")


CASES = (case_daemonset_becomes_ready, case_daemonset_tells_the_node, case_daemonset_serves_pods,
         case_daemonset_is_rolled, case_daemonset_outlives_a_kubelet,
         case_daemonset_cuts_gpus_by_label, case_daemonset_goes)
