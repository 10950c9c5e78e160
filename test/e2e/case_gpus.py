# SPDX-License-Identifier: Apache-2.0
#
# GPUs of simulated nodes, found, cut, handed out and watched by the node agent: on a node that each
# case makes for itself, as a user would with a manifest.

import json

from suite import case, check, contains, equal, eventually

PORT = 9400


class GpuNode:
    """`with GpuNode(kubectl, cluster, "1xT4") as node:` a simulated node with these GPUs."""

    def __init__(self, kubectl, cluster, gpus, labels=None):
        self.kubectl = kubectl
        self.name = f"e2e-gpus-{cluster.suffix}"
        self.manifest = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name,
                         "labels": {"jogak.io/simulated": "true",
                                    "kubernetes.io/hostname": self.name, **(labels or {})},
                         "annotations": {"jogak.io/simulated-gpus": gpus}},
            "status": {"capacity": {"cpu": "32", "memory": "128Gi", "pods": "110"}}}

    def __enter__(self):
        self.kubectl("create", "-f", "-", stdin=json.dumps(self.manifest))
        self.kubectl("wait", "--for=condition=Ready", f"node/{self.name}", "--timeout=30s")
        return self

    def __exit__(self, *_):
        self.kubectl("delete", "pods", "--all", "--now")
        self.kubectl("delete", "node", self.name)

    def read(self):
        return self.kubectl.json("get", "node", self.name)

    def allocatable(self, resource):
        return self.read()["status"]["allocatable"].get(resource)

    def label(self, key):
        return self.read()["metadata"]["labels"].get(key)

    def is_true(self, condition):
        return any(c["type"] == condition and c["status"] == "True"
                   for c in self.read()["status"]["conditions"])

    def run(self, name, resource, count=1):
        overrides = {"spec": {
            "nodeSelector": {"kubernetes.io/hostname": self.name},
            "containers": [{"name": "main", "image": "example/p",
                            "resources": {"limits": {resource: str(count)}}}]}}
        self.kubectl("run", name, "--image=example/p", "--overrides", json.dumps(overrides))

    def metrics(self):
        return self.kubectl("get", "--raw", f"/api/v1/nodes/{self.name}:{PORT}/proxy/metrics")


def devices_of(kubectl, pod, key="resourceID"):
    """What the pod's status says that its containers hold."""
    return [device[key]
            for status in kubectl.json("get", "pod", pod)["status"]["containerStatuses"]
            for resource in status.get("allocatedResourcesStatus", [])
            for device in resource["resources"]]


@case(needs="controllers,simulated,scheduler,agents", alone=True)
def gpus_come_from_the_agent(kubectl, cluster):
    """Labels, numbers, conditions and metrics of a node are what the agent finds on it"""
    with GpuNode(kubectl, cluster, "2xH100-SXM5-80GB") as node:
        equal(node.label("nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3", "product")
        equal(node.label("nvidia.com/gpu.count"), "2", "count")
        equal(node.allocatable("nvidia.com/gpu"), "2", "allocatable")
        check(not node.is_true("GpuUnusable"), "its GPUs are usable")
        node.run("two", "nvidia.com/gpu", 2)
        kubectl("wait", "--for=condition=Ready", "pod/two", "--timeout=30s")
        held = devices_of(kubectl, "two")
        equal(len(set(held)), 2, "devices")
        contains(node.metrics(), "DCGM_FI_DEV_GPU_UTIL{", f'UUID="{held[0]}"', 'pod="two"',
                 "DCGM_FI_PROF_GR_ENGINE_ACTIVE{")
        kubectl.refused("get", "--raw", f"/api/v1/nodes/{node.name}:1/proxy/metrics",
                        saying="ServiceUnavailable")


@case(needs="controllers,simulated,scheduler,agents", alone=True)
def seven_pods_on_seven_slices(kubectl, cluster):
    """One A100 in seven instances, seven pods at once, each with an instance of its own"""
    slices = "nvidia.com/mig-1g.10gb"
    config = {"nvidia.com/mig.config": "all-1g.10gb"}
    with GpuNode(kubectl, cluster, "1xA100-SXM4-80GB", config) as node:
        eventually("seven slices", lambda: node.allocatable(slices) == "7")
        equal(node.label("nvidia.com/mig.config.state"), "success", "state")
        names = [f"p{i}" for i in range(7)]
        for name in names:
            node.run(name, slices)
        kubectl("wait", "--for=condition=Ready", *(f"pod/{name}" for name in names),
                "--timeout=30s")
        held = [device for name in names for device in devices_of(kubectl, name)]
        equal(len(set(held)), 7, "devices")
        check(all(device.startswith("MIG-") for device in held), "they are MIG devices")
        kubectl("delete", "pods", "--all", "--now")
        kubectl("label", "node", node.name, "nvidia.com/mig.config=all-2g.20gb", "--overwrite")
        eventually("three slices", lambda: node.allocatable("nvidia.com/mig-2g.20gb") == "3")
        equal(node.allocatable(slices), "0", "old slices")


@case(needs="controllers,simulated,scheduler,agents", alone=True)
def a_gpu_breaks_and_heals(kubectl, cluster):
    """An XID by annotation: fewer devices, a condition, the health in the pod's status, and back"""
    with GpuNode(kubectl, cluster, "4xA100-SXM4-80GB") as node:
        node.run("p", "nvidia.com/gpu", 4)
        kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
        kubectl("annotate", "node", node.name, "jogak.io/gpu-fault=0=xid:79")
        eventually("three devices", lambda: node.allocatable("nvidia.com/gpu") == "3")
        check(node.is_true("GpuUnusable"), "a condition says so")
        equal(devices_of(kubectl, "p", "health").count("Unhealthy"), 1, "unhealthy devices")
        contains(node.metrics(), 'err_code="79"')
        kubectl("annotate", "node", node.name, "jogak.io/gpu-fault-")
        eventually("four devices", lambda: node.allocatable("nvidia.com/gpu") == "4")
        check(not node.is_true("GpuUnusable"), "all is well again")
        kubectl("label", "node", node.name, "nvidia.com/mig.config=no-such")
        eventually("Events of the node", lambda: all(
            reason in kubectl("describe", "node", node.name)
            for reason in ("GpuXid", "GpuRecovered", "MigConfigFailed")))
