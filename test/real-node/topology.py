# SPDX-License-Identifier: Apache-2.0
#
# The kubelet's topology manager, which hears from the agent on which NUMA node each GPU is. The
# kubelet sees two NUMA nodes whatever this machine has: half of its processors on each.

import json
import os
import pathlib
import re

import isolation
from node import KUBELET_FOLDER, equal, wait_for

NUMA = pathlib.Path("/sys/devices/system/node")
PROCESSORS = pathlib.Path("/sys/devices/system/cpu")
MEMORY_KIB = 8 << 20
# Four GPUs on each NUMA node, joined in pairs that their order does not tell.
PAIRS = [(0, 2), (1, 3), (4, 6), (5, 7)]
STATE_FILES = ("cpu_manager_state", "memory_manager_state")


def paired_machine():
    peer = dict(PAIRS + [(b, a) for a, b in PAIRS])
    return ("apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: pairs\n"
            "host: {numaNodes: 2, cpus: 64}\ngpus:\n" + "".join(
                "- model: A30\n  nvlink: {count: 4, version: 3, speedMbps: 25000}\n"
                f"  peers: [{{gpu: {peer[i]}, level: NODE, nvlinks: 4}}]\n" for i in range(8)))


def processors():
    return sorted(int(path.name[3:]) for path in PROCESSORS.glob("cpu[0-9]*"))


def numa_of_processor(number):
    return int(processors().index(number) * 2 >= len(processors()))


def make_two_numa_nodes():
    isolation.mount("-t", "tmpfs", "none", NUMA)
    (NUMA / "online").write_text("0-1\n")
    for node in (0, 1):
        folder = NUMA / f"node{node}"
        (folder / "hugepages").mkdir(parents=True)
        mine = [one for one in processors() if numa_of_processor(one) == node]
        for one in mine:
            os.symlink(f"../../cpu/cpu{one}", folder / f"cpu{one}")
        (folder / "cpulist").write_text(",".join(map(str, mine)) + "\n")
        (folder / "distance").write_text(("10 20\n", "20 10\n")[node])
        (folder / "meminfo").write_text(f"Node {node} MemTotal: {MEMORY_KIB} kB\n")


def kubelet_with(node, policy):
    """The first half of the processors but one is the system's; the rest may be a container's."""
    if not os.path.ismount(NUMA):
        make_two_numa_nodes()
    node.end("kubelet")
    for name in STATE_FILES:  # a kubelet refuses those of another policy
        pathlib.Path(KUBELET_FOLDER, name).unlink(missing_ok=True)
    node.kubelet_settings = {"topologyManagerPolicy": policy, "cpuManagerPolicy": "static",
                             "reservedSystemCPUs": str(processors()[0])} if policy else {}
    node.start_kubelet()
    wait_for("the node is ready", lambda: any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in node.object()["status"]["conditions"]))
    node.wait_allocatable(8)


def places(node, container):
    """Indexes of its GPUs, and their NUMA nodes."""
    gpus = json.loads(node.object()["metadata"]["annotations"]["jogak.io/gpus"])
    indexes = sorted(i for i, gpu in enumerate(gpus) if gpu["uuid"] in container.gpus())
    return indexes, {gpus[i]["numa"] for i in indexes}


def check_refused(node, pod):
    wait_for(f"{pod} is refused", lambda: node.phase(pod) == "Failed")
    equal(node.pod(pod)["status"]["reason"], "TopologyAffinityError", "the reason")
    node.delete(pod)


def three_of_four_on_each(node):
    """Leaves one GPU on each NUMA node."""
    nodes = set()
    for name in ("three", "other"):
        node.run_pod(name, 3)
        indexes, numa = places(node, node.container(name))
        equal((len(indexes), len(numa)), (3, 1), f"GPUs and NUMA nodes of {indexes}")
        nodes |= numa
    equal(nodes, {0, 1}, "NUMA nodes")


def case_topology_single_numa_node(node):
    node.start_agent(paired_machine())
    node.wait_allocatable(8)
    kubelet_with(node, "single-numa-node")
    # Of those that the NUMA node leaves, the agent prefers what is joined.
    names = [f"pair-{i}" for i in range(4)]
    found = []
    for name in names:
        node.run_pod(name, 2)
        found.append(tuple(places(node, node.container(name))[0]))
    equal(sorted(found), PAIRS, "GPUs of four pods")
    node.delete(*names)
    node.run_pod("five", 5)
    check_refused(node, "five")
    three_of_four_on_each(node)
    node.run_pod("two", 2)
    check_refused(node, "two")
    node.run_pod("one", 1)  # the refusal has cost nothing
    equal(len(node.container("one").gpus()), 1, "GPUs")
    node.delete("three", "other", "one")


def case_topology_with_processors(node):
    """A container with processors of its own gets GPUs that are near them."""
    count = len(processors()) - len(processors()) // 2
    node.run_pod("near", 2, more={"cpu": str(count), "memory": "64Mi"})
    container = node.container("near")
    said = re.search(r"^Cpus_allowed_list:\s*(\S+)", pathlib.Path(
        f"/proc/{container.pid}/status").read_text(), re.MULTILINE).group(1)
    mine = {numa_of_processor(int(one)) for one in said.replace("-", ",").split(",")}
    equal(places(node, container)[1], mine, f"NUMA nodes of the GPUs beside processors {said}")
    equal(mine, {1}, "NUMA node of the processors")
    node.delete("near")


def case_topology_restricted(node):
    """What could be near and is not now is refused; what can never be is admitted."""
    kubelet_with(node, "restricted")
    three_of_four_on_each(node)
    node.run_pod("two", 2)
    check_refused(node, "two")
    node.delete("three", "other")
    node.run_pod("five", 5)
    equal(len(places(node, node.container("five"))[0]), 5, "GPUs")
    node.delete("five")


def case_topology_best_effort(node):
    kubelet_with(node, "best-effort")
    three_of_four_on_each(node)
    node.run_pod("two", 2)
    equal(places(node, node.container("two"))[1], {0, 1}, "NUMA nodes")
    node.delete("three", "other", "two")
    kubelet_with(node, None)
    node.end("agent")


CASES = (case_topology_single_numa_node, case_topology_with_processors, case_topology_restricted,
         case_topology_best_effort)
