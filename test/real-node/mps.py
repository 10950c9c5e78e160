# SPDX-License-Identifier: Apache-2.0
#
# GPUs shared by MPS under a real kubelet: the agent starts the control daemon (a script stands in
# for NVIDIA's program, which needs a GPU), and pods reach that daemon and its shared memory.

import json
import os
import pathlib
import re
import signal
import socket
import sys

import daemonset
from cases import t4_machine
from node import GPU, equal, wait_for

REPLICAS = 4
SHARED = f"""version: v1
sharing:
  mps:
    resources:
    - {{name: {GPU}, replicas: {REPLICAS}}}
"""
# `-d` starts a daemon that listens in its pipe folder and writes its pid there; else lines of
# standard input are said to it. What it was told is kept in its log folder.
CONTROL = """#!{python}
import os, socket, sys
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
told = os.path.join(os.environ["CUDA_MPS_LOG_DIRECTORY"], "told")
address = os.path.join(pipe, "control")
if len(sys.argv) == 1:
    for line in sys.stdin:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            client.sendall(line.encode())
            sys.stdout.write(client.makefile().read())
    sys.exit(0)
if os.path.exists(address):
    os.unlink(address)
server = socket.socket(socket.AF_UNIX)
server.bind(address)
server.listen()
if os.fork():
    sys.exit(0)
os.setsid()
null = os.open("/dev/null", os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number)
with open("/proc/self/comm", "w") as name:
    name.write("nvidia-cuda-mps")
with open(os.path.join(pipe, "nvidia-cuda-mps-control.pid"), "w") as file:
    file.write(str(os.getpid()) + "\\n")
percent = "100"
while True:
    client = server.accept()[0]
    with client:
        line = client.makefile().readline().strip()
        with open(told, "a") as log:
            log.write(line + "\\n")
        words = line.split()
        if words[:1] == ["set_default_active_thread_percentage"]:
            percent = words[1]
        if line == "get_default_active_thread_percentage":
            client.sendall((percent + ".0\\n").encode())
        if line == "quit":
            sys.exit(0)
"""


IN_MANIFEST = "/run/nvidia/mps"
OPTIONAL_PROGRAMS = "/opt/bin"  # below a driver's root, and a layer of the test's own


def below(node, *names):
    return pathlib.Path(node.path("mps"), *names)


def pid_of_daemon(root):
    """None: none is there. One that has ended stays in /proc, since nobody here is its parent."""
    try:
        pid = int((root / GPU / "pipe/nvidia-cuda-mps-control.pid").read_text())
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ValueError):
        return None
    return pid if state != "Z" else None


def make_program(folder):
    os.makedirs(folder, exist_ok=True)
    program = pathlib.Path(folder, "nvidia-cuda-mps-control")
    program.write_text(CONTROL.format(python=sys.executable))
    program.chmod(0o755)


def start_agent(node, *flags):
    folder = node.path("mps-program")
    make_program(folder)
    below(node).mkdir(exist_ok=True)
    node.start_agent(t4_machine({}, {}), "--mps-root", str(below(node)), "--mps-cgroup", "",
                     *flags, mig="none", env={"PATH": f"{folder}:{os.environ['PATH']}"})


def check_client(root, container):
    """What a CUDA program in there would need of MPS."""
    pipe = container.environment()["CUDA_MPS_PIPE_DIRECTORY"]
    inside = container.root() / pipe.lstrip("/") / "control"
    equal(os.stat(inside).st_ino, os.stat(root / GPU / "pipe/control").st_ino, "the socket")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(inside))
    mark = root / "shm/mark"
    mark.write_text("of the daemon\n")
    assert container.has_file("/dev/shm/mark"), "another /dev/shm than the daemon's"
    mark.unlink()


def case_mps_shares(node):
    config = node.path("mps.yaml")
    pathlib.Path(config).write_text(SHARED, encoding="utf-8")
    start_agent(node, "--config-file", config)
    node.wait_allocatable(2 * REPLICAS)
    names = [f"client-{i}" for i in range(2 * REPLICAS)]
    for name in names:
        node.run_pod(name, 1)
    containers = [node.container(name) for name in names]
    for one in containers:
        check_client(below(node), one)
    seen = [uuid for one in containers for uuid in one.gpus()]
    equal(sorted(seen.count(uuid) for uuid in set(seen)), [REPLICAS] * 2, f"pods of GPUs in {seen}")
    told = below(node, GPU, "log/told").read_text().splitlines()
    assert f"set_default_active_thread_percentage {100 // REPLICAS}" in told, told
    assert [line for line in told if line.startswith("set_default_device_pinned_mem_limit")], told

    # Another agent takes the daemon over; clients notice nothing.
    daemon = pid_of_daemon(below(node))
    node.end("agent", signal.SIGKILL)
    node.wait_allocatable(0)
    start_agent(node, "--config-file", config)
    node.wait_allocatable(2 * REPLICAS)
    equal(pid_of_daemon(below(node)), daemon, "the daemon")
    assert all(one.is_alive() for one in containers), "a pod was disturbed"
    # A daemon that dies is started again, in the folder that its clients have.
    os.kill(daemon, signal.SIGKILL)
    wait_for("another daemon", lambda: pid_of_daemon(below(node)) not in (None, daemon))
    node.wait_allocatable(2 * REPLICAS)
    for one in containers:
        check_client(below(node), one)
    node.delete(*names)
    node.end("agent")


def case_mps_is_undone(node):
    """Without the setting the GPUs are whole again, and the daemon is told to end."""
    start_agent(node)
    node.wait_allocatable(2)
    wait_for("no daemon", lambda: pid_of_daemon(below(node)) is None)
    node.run_pod("whole", 1)
    assert "CUDA_MPS_PIPE_DIRECTORY" not in node.container("whole").environment()
    node.delete("whole")
    node.end("agent")


def manifest_with_mps():
    """As a user makes it of the shipped one: the parts for MPS take the place of what they say."""
    text = pathlib.Path(daemonset.MANIFEST).read_text(encoding="utf-8")
    text, gone = re.subn(r"^ +- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}\n", "", text,
                         flags=re.MULTILINE)
    text, there = re.subn(r"^( +)# (.*(?:compute,utility|MPS_ROOT|- {name: mps,|- name: mps$|"
                          rf"{IN_MANIFEST}, type).*)$", r"\1\2", text, flags=re.MULTILINE)
    equal((gone, there), (1, 5), "lines of the manifest that are for MPS")
    return text


def case_mps_by_the_manifest(node):
    """In a container: the program is the host's, and pods see what the agent mounts."""
    make_program(OPTIONAL_PROGRAMS)
    given = pathlib.Path(node.path("given"))
    given.mkdir()
    (given / "machine.yaml").write_text(t4_machine({}, {}), encoding="utf-8")
    (given / "config.yaml").write_text(SHARED, encoding="utf-8")
    daemonset.apply(node, manifest_with_mps(), json.dumps({"spec": {"template": {"spec": {
        "hostNetwork": True,
        "volumes": [{"name": "given", "hostPath": {"path": str(given)}}],
        "containers": [{
            "name": "agent", "args": ["--nvml", "sim:/given/machine.yaml"],
            "volumeMounts": [{"name": "given", "mountPath": "/given"}],
            "env": daemonset.environment(node, MIG_STRATEGY="none",
                                         CONFIG_FILE="/given/config.yaml")}]}}}}))
    node.wait_allocatable(2 * REPLICAS)
    node.run_pod("client", 1)
    container = node.container("client")
    root = pathlib.Path(IN_MANIFEST)
    check_client(root, container)
    assert os.path.ismount(root / "shm"), "the mount did not reach the node"
    before = daemonset.agent_pod(node)["metadata"]["uid"]
    node.kubectl("rollout", "restart", "daemonset/jogak-agent", "-n", daemonset.SPACE)
    wait_for("another pod is ready", lambda: daemonset.agent_pod(node)["metadata"]["uid"] != before
             and daemonset.is_ready(daemonset.agent_pod(node)))
    node.wait_allocatable(2 * REPLICAS)
    assert container.is_alive(), "the pod was disturbed"
    check_client(root, container)
    node.delete("client")
    daemonset.case_daemonset_goes(node)


CASES = (case_mps_shares, case_mps_is_undone, case_mps_by_the_manifest)
