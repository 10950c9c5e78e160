# SPDX-License-Identifier: Apache-2.0
#
# What must hold of the device plugin under a real kubelet. Each case starts the agent that it
# needs, or goes on with the one of the case before; the order matters.

import json
import os
import re
import shutil
import signal
import time

import pod_resources
from node import (DRIVER_VERSION, GPU, GPUS_MAX, KUBELET_FOLDER, KUBELET_SOCKET, NAME,
                  POD_RESOURCES, equal, wait_for)

A100 = "a100-40gb-x8"
SLICE = "nvidia.com/mig-1g.5gb"
RETURN_SECONDS_MAX = 1.0  # of an agent, after a kubelet's start or its own
HEALTH_IN_PODS_MIN = (1, 36)  # ResourceHealthStatus is on by default
CONTROL_NODES = ["nvidia-uvm", "nvidiactl"]
# One A100 in seven slices.
SEVEN_SLICES = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: seven
gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances:
""" + "".join(f"  - {{profile: 1g.5gb, start: {start}}}\n" for start in range(7))
T4S = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: shared
gpus:
"""
TIME_SLICED = """version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
"""


def t4_machine(*processes):
    """A T4 for each {pid on the node: MiB}, its processes."""
    text = T4S
    for of_gpu in processes:
        text += "- model: T4\n" + ("  processes:\n" if of_gpu else "")
        text += "".join(f"  - {{pid: {pid}, name: python3, memoryMib: {mib}}}\n"
                        for pid, mib in of_gpu.items())
    return text


def measured(what, seconds):
    print(f"          {what}: {seconds * 1000:.0f} ms", flush=True)
    assert seconds < RETURN_SECONDS_MAX, f"{what}: {seconds:.2f} s"


def indexes(uuids, node):
    """Of GPUs by UUID, as the agent's metrics number them."""
    found = {}
    for name in node.metrics():
        if name.startswith("DCGM_FI_DEV_GPU_TEMP{"):
            found[re.search(r'UUID="([^"]*)"', name).group(1)] = int(
                re.search(r'gpu="(\d+)"', name).group(1))
    return sorted(found[uuid] for uuid in uuids)


def check_devices(node, container, uuids):
    """The container has the nodes of these GPUs, may use them, and has no others."""
    gpus = indexes(uuids, node)
    equal(container.nodes(), sorted([f"nvidia{i}" for i in gpus] + CONTROL_NODES), "device nodes")
    for index in gpus:
        assert container.may_open(f"/dev/nvidia{index}"), f"nvidia{index} may not be used"
    other = next(i for i in range(GPUS_MAX) if i not in gpus)
    container.run("/bin/mknod", "/tmp/other", "c", "195", str(other))
    assert not container.may_open("/tmp/other"), f"nvidia{other} may be used"


# ---- how devices reach a container --------------------------------------------------------------


def case_two_gpus_by_environment(node):
    node.start_agent(A100, "--pass-device-specs", strategy="envvar")
    node.wait_allocatable(8)
    node.run_pod("two", 2)
    container = node.container("two")
    uuids = container.visible()
    equal(len(uuids), 2, f"GPUs in {uuids}")
    equal([device for _, device in node.holds("two")], uuids, "what the kubelet says")
    check_devices(node, container, uuids)
    node.delete("two")
    node.end("agent")


def two_by_cdi(node, strategy):
    node.start_agent(A100, strategy=strategy)
    node.wait_allocatable(8)
    node.run_pod("two", 2)
    container = node.container("two")
    uuids = container.gpus()
    equal(len(uuids), 2, f"GPUs in {uuids}")
    equal(container.environment()["NVIDIA_VISIBLE_DEVICES"], "void", "NVIDIA_VISIBLE_DEVICES")
    equal(sorted(device for _, device in node.holds("two")), uuids, "what the kubelet says")
    check_devices(node, container, uuids)
    for name in (DRIVER_VERSION, "1"):
        assert container.has_file(f"/usr/lib64/libcuda.so.{name}"), f"no libcuda.so.{name}"
    node.delete("two")
    node.end("agent")


def case_two_gpus_by_cdi(node):
    two_by_cdi(node, "cdi-cri")


def case_two_gpus_by_cdi_annotations(node):
    two_by_cdi(node, "cdi-annotations")


def case_two_gpus_by_volume_mounts(node):
    node.start_agent(A100, strategy="volume-mounts")
    node.wait_allocatable(8)
    node.run_pod("two", 2)
    container = node.container("two")
    folder = container.root() / "var/run/nvidia-container-devices"
    equal(sorted(os.listdir(folder)), sorted(d for _, d in node.holds("two")), "mounted names")
    equal(container.environment()["NVIDIA_VISIBLE_DEVICES"], "/var/run/nvidia-container-devices",
          "NVIDIA_VISIBLE_DEVICES")
    node.delete("two")
    node.end("agent")


def case_two_gpus_by_index(node):
    node.start_agent(A100, "--device-id-strategy", "index")
    node.wait_allocatable(8)
    node.run_pod("two", 2)
    container = node.container("two")
    of_kubelet = [device for _, device in node.holds("two")]
    equal(container.gpus(), sorted(of_kubelet), "GPUs")
    check_devices(node, container, of_kubelet)
    node.delete("two")
    node.end("agent")


# ---- one agent, and what happens to it ----------------------------------------------------------


def case_everybody_agrees(node):
    """`kubectl describe node`, PodResources, metrics and annotations."""
    node.start_agent(A100)
    node.wait_allocatable(8)
    node.run_pod("two", 2)
    uuids = node.container("two").gpus()
    text = node.kubectl("describe", "node", NAME)
    allocated = re.search(r"^  nvidia.com/gpu\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    equal(allocated.groups(), ("2", "2"), "requests and limits of kubectl describe node")
    assert "GpuUnusable" in text and "nvidia.com/gpu.product=" in text, text
    held = {(one.pod, one.container, one.resource, one.device)
            for one in pod_resources.held(POD_RESOURCES)}
    equal(held, {("two", "main", GPU, uuid) for uuid in uuids}, "PodResources")

    def of_pods():
        found = set()
        for name in node.metrics():
            labels = dict(re.findall(r'(\w+)="([^"]*)"', name))
            if name.startswith("DCGM_FI_DEV_GPU_UTIL{") and labels.get("pod"):
                found.add((labels["namespace"], labels["pod"], labels["container"],
                           labels["UUID"]))
        return found == {("default", "two", "main", uuid) for uuid in uuids}
    wait_for("the metrics name the pod", of_pods)
    gpus = json.loads(node.object()["metadata"]["annotations"]["jogak.io/gpus"])
    equal(sorted(gpus.index(gpu) for gpu in gpus if gpu["uuid"] in uuids), indexes(uuids, node),
          "jogak.io/gpus")
    holds = wait_for("the pod says what it holds", lambda: node.pod("two")["metadata"].get(
        "annotations", {}).get("jogak.io/gpu-holds"))
    equal(json.loads(holds), [{"gpu": index} for index in indexes(uuids, node)],
          "jogak.io/gpu-holds")


def registered_after(node, begin, count):
    """Seconds from `begin` (of time.time) to the agent's registration after `count` others."""
    return wait_for("the agent is registered", lambda: node.registrations()[count:])[0] - begin


def case_kubelet_restart(node):
    container = node.container("two")
    before, count = container.gpus(), len(node.registrations())
    old = os.stat(KUBELET_SOCKET).st_ctime_ns
    node.restart_kubelet()

    def new_socket():
        try:
            changed = os.stat(KUBELET_SOCKET).st_ctime_ns
        except FileNotFoundError:
            return 0
        return changed if changed != old else 0
    begin = wait_for("the kubelet listens", new_socket, every=0.002)
    measured("registered after the kubelet's socket was there",
             registered_after(node, begin / 1e9, count))
    node.wait_allocatable(8)
    assert container.is_alive() and node.phase("two") == "Running", "the pod was disturbed"
    # A kubelet that has just started knows of no pods yet, and says so.
    wait_for("the kubelet knows its pods", lambda: node.holds("two"), every=0.01)
    print(f"          the kubelet told of its pods after {time.time() - begin / 1e9:.1f} s")
    equal(sorted(device for _, device in node.holds("two")), before, "PodResources")
    node.run_pod("six", 6)
    assert not set(node.container("six").gpus()) & set(before), "a device was handed out twice"
    node.delete("six")


def agent_returns(node, sent):
    container = node.container("two")
    code = node.end("agent", sent)
    equal(code, 0 if sent == signal.SIGTERM else -sent, "the agent's exit code")
    node.wait_allocatable(0)
    equal(node.capacity(GPU), "8", "capacity without the agent")
    begin, count = time.time(), len(node.registrations())
    node.start_agent(A100)
    measured("registered after the agent's start", registered_after(node, begin, count))
    node.wait_allocatable(8)
    assert container.is_alive() and node.phase("two") == "Running", "the pod was disturbed"
    node.run_pod("six", 6)
    assert not set(node.container("six").gpus()) & set(container.gpus()), "handed out twice"
    node.delete("six")


def case_agent_restart(node):
    agent_returns(node, signal.SIGTERM)


def case_agent_killed(node):
    agent_returns(node, signal.SIGKILL)


def case_agent_and_kubelet_restart(node):
    container = node.container("two")
    node.end("agent", signal.SIGKILL)
    node.end("kubelet", signal.SIGKILL)
    node.start_kubelet()
    node.start_agent(A100)
    node.wait_allocatable(8)
    assert container.is_alive() and node.phase("two") == "Running", "the pod was disturbed"
    wait_for("the kubelet knows its pods", lambda: node.holds("two"))
    equal(sorted(device for _, device in node.holds("two")), container.gpus(), "PodResources")


def case_container_restarts_in_place(node):
    """The kubelet asks nothing but PreStartContainer; the CDI file must still be there."""
    container = node.container("two")
    container.kill()
    wait_for("a new container", lambda: node.pod("two")["status"]["containerStatuses"][0][
        "restartCount"] == 1)
    again = node.container("two")
    equal(again.gpus(), container.gpus() if container.is_alive() else again.gpus(), "GPUs")
    equal(again.gpus(), sorted(device for _, device in node.holds("two")), "PodResources")
    node.delete("two")


def case_init_container(node):
    node.run_pod("init", [1, 2], init=3)
    of_main, of_more = (node.container("init", name).gpus() for name in ("main", "more-1"))
    equal((len(of_main), len(of_more)), (1, 2), "GPUs of two containers")
    assert not set(of_main) & set(of_more), "two containers share a device"
    equal(node.holds("init"), sorted([("main", one) for one in of_main]
                                     + [("more-1", one) for one in of_more]), "PodResources")
    # What the init container had and no other of the pod has is free again.
    node.run_pod("five", 5)
    assert not set(node.container("five").gpus()) & {*of_main, *of_more}, "handed out twice"
    node.delete("init", "five")


def case_init_container_and_kubelet_restart(node):
    """A kubelet admits such a pod anew after its start, and kills it where the plugin is not back
    by then: the one thing that hangs on how soon the agent registers."""
    node.run_pod("init", [1, 2], init=3)
    containers = [node.container("init", name) for name in ("main", "more-1")]
    before = node.holds("init")
    for _ in range(3):
        node.restart_kubelet()
        wait_for("the kubelet knows its pods", lambda: node.holds("init"))
        node.wait_allocatable(8)
        equal(node.phase("init"), "Running", "the pod")
        assert all(one.is_alive() for one in containers), "a container was killed"
        equal(node.holds("init"), before, "PodResources")
    node.delete("init")


def case_force_deleted(node):
    """Its process may outlive the pod by a second; the next one gets the devices all the same."""
    node.run_pod("stubborn", 8, command=["/bin/sh", "-c", "trap '' TERM; sleep 1000000"])
    uuids = node.container("stubborn").gpus()
    node.kubectl("delete", "pod", "stubborn", "--force", "--grace-period=0", "--wait=false")
    node.run_pod("next", 8)
    equal(node.container("next").gpus(), uuids, "the next pod's GPUs")
    node.delete("next")


def case_too_many(node):
    """The kubelet refuses; the agent is not to be disturbed."""
    node.run_pod("nine", 9)
    wait_for("the pod is refused", lambda: node.phase("nine") == "Failed")
    node.delete("nine")
    node.run_pod("eight", 8)
    equal(len(node.container("eight").gpus()), 8, "GPUs")
    node.delete("eight")


def case_node_is_made_anew(node):
    """Somebody deletes the Node object; the kubelet makes another, which has to be told all."""
    def told():
        found = node.object()
        return (found["metadata"]["labels"].get("nvidia.com/gpu.count") == "8"
                and "jogak.io/gpus" in found["metadata"]["annotations"]
                and any(c["type"] == "GpuUnusable" for c in found["status"]["conditions"]))
    wait_for("the node is told", told)
    uid = node.object()["metadata"]["uid"]
    node.kubectl("delete", "node", NAME)
    node.restart_kubelet()
    wait_for("another node", lambda: node.object()["metadata"]["uid"] != uid)
    wait_for("the other node is told", told)
    node.wait_allocatable(8)


def ill_devices(node, pod):
    (status,) = node.pod(pod)["status"]["containerStatuses"][0]["allocatedResourcesStatus"]
    return [one["resourceID"] for one in status["resources"] if one["health"] == "Unhealthy"]


def case_kubelet_comes_after_the_agent(node):
    """As at the first start of a node: not even the folder is there."""
    node.end("agent")
    node.end("kubelet")
    for name in ("device-plugins", "pod-resources"):
        shutil.rmtree(os.path.join(KUBELET_FOLDER, name))
    node.start_agent(A100)
    wait_for("the agent waits", lambda: "no such folder" in node.log("agent"))
    count = len(node.registrations())
    node.start_kubelet()
    begin = wait_for("the kubelet listens", lambda: os.path.exists(KUBELET_SOCKET)
                     and os.stat(KUBELET_SOCKET).st_ctime_ns, every=0.002)
    measured("registered after the kubelet's socket was there",
             registered_after(node, begin / 1e9, count))
    node.wait_allocatable(8)


def case_gpu_falls_ill_and_recovers(node):
    node.run_pod("eight", 8)
    container = node.container("eight")
    node.set_faults("2=lost,5=xid:95")
    node.wait_allocatable(6)
    equal(node.capacity(GPU), "8", "capacity")

    def is_unusable(wanted):
        return any(c["type"] == "GpuUnusable" and c["status"] == wanted
                   for c in node.object()["status"]["conditions"])
    wait_for("the node says so", lambda: is_unusable("True"))
    assert node.metrics()[f'jogak_agent_devices{{resource="{GPU}",health="Unhealthy"}}'] == 2
    gpus = json.loads(node.object()["metadata"]["annotations"]["jogak.io/gpus"])
    equal([i for i, gpu in enumerate(gpus) if gpu.get("health") == "Unhealthy"], [2, 5],
          "jogak.io/gpus")
    wait_for("Events of the Node", lambda: {"GpuLost", "GpuXid"} <= node.events())
    ill = sorted(gpus[i]["uuid"] for i in (2, 5))
    if node.kubelet_version() >= HEALTH_IN_PODS_MIN:
        wait_for("the pod says which of its devices is ill",
                 lambda: sorted(ill_devices(node, "eight")) == ill)
    assert container.is_alive(), "the pod was disturbed"
    node.delete("eight")
    node.run_pod("six", 6)
    assert not set(node.container("six").gpus()) & set(ill), "an unhealthy GPU was handed out"
    node.set_faults("")
    node.wait_allocatable(8)
    wait_for("the node says so", lambda: is_unusable("False"))
    wait_for("an Event of the Node", lambda: "GpuRecovered" in node.events())
    node.run_pod("two", 2)
    equal(node.container("two").gpus(), ill, "the GPUs that are well again")
    node.delete("six", "two")
    node.end("agent")


# ---- slices and shares --------------------------------------------------------------------------


def case_seven_slices(node):
    node.start_agent(SEVEN_SLICES)
    node.wait_allocatable(7, SLICE)
    names = [f"slice-{i}" for i in range(7)]
    for name in names:
        node.run_pod(name, 1, SLICE)
    caps = []
    for name in names:
        container = node.container(name)
        (uuid,) = container.gpus()
        assert uuid.startswith("MIG-"), uuid
        equal(node.holds(name), [("main", uuid)], "PodResources")
        nodes = container.nodes()
        mine = [one for one in nodes if one.startswith("nvidia-caps/")]
        equal(len(mine), 2, f"access nodes in {nodes}")
        equal(sorted(set(nodes) - set(mine)), sorted(["nvidia0"] + CONTROL_NODES), "device nodes")
        for one in mine:
            assert container.may_open("/dev/" + one), f"{one} may not be used"
        caps += mine
    equal(len(set(caps)), 14, f"different access nodes in {caps}")
    text = node.kubectl("describe", "node", NAME)
    assert re.search(rf"^  {SLICE}\s+7\s+7", text, re.MULTILINE), text

    def of_pods():
        return sorted(set(labels["pod"] for labels in (
            dict(re.findall(r'(\w+)="([^"]*)"', name)) for name in node.metrics())
            if labels.get("pod") and labels.get("GPU_I_ID"))) == names
    wait_for("the metrics name the seven pods", of_pods)
    node.delete(*names)
    node.end("agent")


def case_time_slicing(node):
    config = node.path("sharing.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(TIME_SLICED)
    node.start_agent(t4_machine({}, {}), "--config-file", config)
    node.wait_allocatable(8)
    names = [f"share-{i}" for i in range(8)]
    for name in names:
        node.run_pod(name, 1)
    seen = {}
    for name in names:
        (uuid,) = node.container(name).gpus()
        seen.setdefault(uuid, []).append(name)
        ((_, device),) = node.holds(name)
        equal(device.partition("::")[0], uuid, "the kubelet's device")
    equal(sorted(len(pods) for pods in seen.values()), [4, 4], f"pods of each GPU in {seen}")
    labels = node.object()["metadata"]["labels"]
    equal(labels.get("nvidia.com/gpu.replicas"), "4", "nvidia.com/gpu.replicas")
    # Two pods of one GPU begin to compute: each has its own memory, the others of the GPU none.
    pods = next(pods for pods in seen.values())
    pids = [node.container(name).pid for name in pods]
    (gpu,) = indexes([next(iter(seen))], node)
    node.end("agent")
    machine = [{}, {}]
    machine[gpu] = {pids[0]: 3000, pids[1]: 500}
    node.start_agent(t4_machine(*machine), "--config-file", config)
    wanted = {**dict.fromkeys(names, 0), pods[0]: 3000, pods[1]: 500}
    wait_for("each pod's memory", lambda: equal(memory_of_pods(node), wanted, "MiB") is None)
    node.delete(*names)
    node.end("agent")


def memory_of_pods(node):
    """{pod: MiB} by the metrics."""
    found = {}
    for name, value in node.metrics().items():
        pod = re.search(r'[{,]pod="([^"]+)"', name)
        if name.startswith("jogak_gpu_pod_memory_used_bytes{"):
            found[pod.group(1)] = int(value) >> 20
    return found


def case_process_of_an_earlier_pod(node):
    """A pod that is deleted by force leaves its process for a moment; the next container starts
    when it has ended, not before."""
    node.start_agent(t4_machine({}))
    node.wait_allocatable(1)
    node.run_pod("old", 1, command=["/bin/sh", "-c", "trap '' TERM; while true; do sleep 1; done"])
    old = node.container("old")
    node.end("agent")
    node.start_agent(t4_machine({old.pid: 1000}))
    node.wait_allocatable(1)
    node.kubectl("delete", "pod", "old", "--force", "--grace-period=0", "--wait=false")
    node.run_pod("new", 1)
    new = node.container("new")
    assert not old.is_alive(), "two pods were on the GPU at once"
    assert "a process of an earlier pod is still on a device" in node.log("agent"), "nobody waited"
    equal(len(new.gpus()), 1, "GPUs")
    node.delete("new")
    node.end("agent")


CASES = (
    case_two_gpus_by_environment, case_two_gpus_by_cdi, case_two_gpus_by_cdi_annotations,
    case_two_gpus_by_volume_mounts, case_two_gpus_by_index,
    case_everybody_agrees, case_kubelet_restart, case_agent_restart, case_agent_killed,
    case_agent_and_kubelet_restart, case_container_restarts_in_place, case_init_container,
    case_init_container_and_kubelet_restart, case_force_deleted, case_too_many,
    case_kubelet_comes_after_the_agent, case_node_is_made_anew,
    case_gpu_falls_ill_and_recovers, case_process_of_an_earlier_pod, case_seven_slices,
    case_time_slicing)
