# SPDX-License-Identifier: Apache-2.0
#
# A node of a control plane on loopback: a runtime, a kubelet and the agent on simulated GPUs, with
# made-up files of a driver. Runs inside isolation.py's namespaces.

import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import urllib.request

import isolation
import pod_resources
import runtimes

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "..", "deploy")]
import control_plane  # noqa: E402
import image as jogak_image  # noqa: E402

NAME = "real-node"
IMAGE = "localhost/jogak-test:1"
WAIT_SECONDS = 60
KUBELET_FOLDER = "/var/lib/kubelet"
KUBELET_SOCKET = KUBELET_FOLDER + "/device-plugins/kubelet.sock"
POD_RESOURCES = KUBELET_FOLDER + "/pod-resources/kubelet.sock"
GPU = "nvidia.com/gpu"
EXPORTER = "127.0.0.1:9400"
# Of no module that is loaded: opening such a node says "no such device" where the container may use
# it, and "not permitted" where it may not.
MAJOR, CAPS_MAJOR = 195, 234
DRIVER_VERSION = "550.90.07"
GPUS_MAX = 8
LOG_LINE_MAX, POD_LOG_LINES = 800, 25
POD_LOGS = "/var/log/pods"
REGISTERED = "registered with the kubelet"  # in the agent's log
PROGRAMS = ("sh", "sleep", "env", "cat", "ls", "mknod", "true", "stat")


def busybox():
    for name in ("busybox.static", "busybox"):
        path = shutil.which(name)
        if path:
            try:
                if not jogak_image.libraries(path):
                    return path
            except jogak_image.CannotMake:
                pass
    return None


def missing(runtime):
    """Why the test cannot run here, "" when it can."""
    why = control_plane.missing()
    if why:
        return why
    for name in ("kubelet", "kube-controller-manager", "kube-scheduler"):
        if control_plane.asset(name) is None:
            return f"KUBEBUILDER_ASSETS has no {name}"
    if os.geteuid() != 0:
        return "a kubelet needs root"
    why = runtimes.ALL[runtime].missing()
    if why:
        return why
    if busybox() is None:
        return "there is no static busybox (package busybox-static) to make an image of"
    if not os.environ.get("JOGAK_BINARY"):
        return "JOGAK_BINARY does not name the jogak executable"
    return isolation.missing()


def wait_for(what, claim, seconds=WAIT_SECONDS, every=0.1):
    """What `claim` gives once it is not false; it may also fail for a while."""
    deadline = time.monotonic() + seconds
    while True:
        got = problem = None
        try:
            got = claim()
        except (AssertionError, OSError, LookupError, ValueError) as error:
            problem = error
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}"
                                 + (f" ({problem})" if problem else f" (last: {got!r})"))
        time.sleep(every)


def equal(got, wanted, what):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


def test_image(path):
    """busybox as all of its programs; it serves as the pause image, too."""
    layer = jogak_image.layer(
        {"bin/busybox": busybox()}, folders=("dev", "proc", "sys", "tmp", "etc"),
        links=[("bin/" + name, "busybox") for name in PROGRAMS])
    jogak_image.write_archive(path, IMAGE, layer, {
        "Entrypoint": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]})


def make_driver(root):
    """What a driver leaves in the file system: device nodes, a library, a table of MIG nodes."""
    dev, libraries = pathlib.Path(root, "dev"), pathlib.Path(root, "usr/lib64")
    (dev / "nvidia-caps").mkdir(parents=True)
    libraries.mkdir(parents=True)
    for name, minor in [("nvidiactl", 255), ("nvidia-uvm", 254), *(
            (f"nvidia{i}", i) for i in range(GPUS_MAX))]:
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(MAJOR, minor))
    (libraries / f"libcuda.so.{DRIVER_VERSION}").write_text("no library\n")
    isolation.mount("-t", "tmpfs", "none", "/proc/driver")
    pathlib.Path("/proc/driver/nvidia-caps").mkdir()
    lines, minor = ["config 1", "monitor 2"], 3
    for gpu in range(GPUS_MAX):
        for instance in range(15):
            for what in ("", *(f"/ci{i}" for i in range(8))):
                lines.append(f"gpu{gpu}/gi{instance}{what}/access {minor}")
                os.mknod(dev / f"nvidia-caps/nvidia-cap{minor}", 0o444 | stat.S_IFCHR,
                         os.makedev(CAPS_MAJOR, minor))
                minor += 1
    pathlib.Path("/proc/driver/nvidia-caps/mig-minors").write_text("\n".join(lines) + "\n")


class Container:
    """A running container, seen from the node."""

    def __init__(self, node, identity, pid):
        self.node, self.identity, self.pid = node, identity, pid

    def environment(self):
        data = pathlib.Path(f"/proc/{self.pid}/environ").read_bytes().decode()
        return dict(entry.split("=", 1) for entry in data.split("\0") if "=" in entry)

    def gpus(self):
        """UUIDs that the CDI file put into the environment."""
        return sorted(value for name, value in self.environment().items()
                      if name.startswith("JOGAK_GPU_"))

    def visible(self):
        value = self.environment().get("NVIDIA_VISIBLE_DEVICES", "")
        return sorted(value.split(",")) if value not in ("", "void") else []

    def nodes(self):
        dev = self.root() / "dev"
        return sorted(str(path.relative_to(dev)) for path in dev.rglob("nvidia*")
                      if stat.S_ISCHR(path.lstat().st_mode))

    def root(self):
        return pathlib.Path("/proc", str(self.pid), "root")

    def has_file(self, path):
        return (self.root() / path.lstrip("/")).exists()

    def run(self, *command):
        """Output and errors of a program inside."""
        return self.node.runtime.run(self.identity, *command)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def may_open(self, device):
        """Whether the container's cgroup lets it use the node."""
        said = self.run("/bin/cat", device)
        assert "No such device" in said or "not permitted" in said, f"{device}: {said}"
        return "No such device" in said

    def is_alive(self):
        return os.path.exists(f"/proc/{self.pid}")


class Node:
    """A container runtime, a kubelet and the agent, beside a control plane."""

    def __init__(self, plane, runtime):
        self.plane = plane
        self.folder = isolation.folder()
        self.runtime = runtimes.ALL[runtime](self.folder, IMAGE)
        self.driver_root = self.path("driver")
        self.faults = self.path("faults")
        self.kubelet_settings = {}  # beside those that every test needs

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        make_driver(self.driver_root)
        self.spawn(self.runtime.name, self.runtime.command())
        wait_for(f"{self.runtime.name} answers", self.runtime.answers)
        archive = self.path("image.tar")
        test_image(archive)
        self.runtime.load(archive)
        pem = self.plane.certificates
        pem.sign("kubelet", "system:node:" + NAME, group="system:nodes")
        pem.sign("kubelet-server", NAME, hosts=f"IP:{isolation.NODE_IP},DNS:" + NAME)
        self.plane.write_kubeconfig("kubelet")
        self.start_kubelet()
        wait_for("the node is ready", lambda: any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in self.object().get("status", {}).get("conditions", [])))

    def spawn(self, name, command, env=None):
        with open(self.plane.path(name + ".log"), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=env, preexec_fn=control_plane.die_with_parent)
        self.plane.processes[name] = process
        return process

    def log(self, name):
        return pathlib.Path(self.plane.path(name + ".log")).read_text(errors="replace")

    def tails(self):
        """The ends of the logs that tell of pods and devices."""
        lines = [line for name in (self.runtime.name, "kubelet", "agent")
                 for line in self.plane.tail(name).splitlines()]
        for path in sorted(pathlib.Path(POD_LOGS).rglob("*.log")):
            pod = path.relative_to(POD_LOGS).parts[0]
            lines += [f"  {pod}: {line}" for line in
                      path.read_text(errors="replace").splitlines()[-POD_LOG_LINES:]]
        return "\n".join(line[:LOG_LINE_MAX] for line in lines)

    # ---- kubelet ------------------------------------------------------------------------------

    def start_kubelet(self):
        config = self.path("kubelet.json")
        pem = self.plane.certificates.path
        pathlib.Path(config).write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"x509": {"clientCAFile": pem("ca.crt")},
                               "webhook": {"enabled": False}, "anonymous": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs",
            "cgroupRoot": "/" + isolation.cgroup_name(),
            "failSwapOn": False, "failCgroupV1": False, "nodeStatusUpdateFrequency": "1s",
            "containerRuntimeEndpoint": "unix://" + self.runtime.socket,
            "tlsCertFile": pem("kubelet-server.crt"),
            "tlsPrivateKeyFile": pem("kubelet-server.key"),
            "healthzPort": 0, "readOnlyPort": 0, "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "1Mi"}, "resolvConf": "",
            **self.kubelet_settings}), encoding="utf-8")
        self.spawn("kubelet", [control_plane.asset("kubelet"), "--config=" + config,
                               "--kubeconfig=" + self.plane.path("kubelet.conf"),
                               "--node-ip=" + isolation.NODE_IP,
                               "--hostname-override=" + NAME])

    def restart_kubelet(self):
        self.end("kubelet")
        self.start_kubelet()

    # ---- agent --------------------------------------------------------------------------------

    def start_agent(self, machine, *flags, strategy="cdi-cri", mig="mixed",
                    env=None):
        """On a shipped simulation, or on the text of one; with other variables than ours."""
        if "\n" in machine:
            pathlib.Path(self.path("machine.yaml")).write_text(machine, encoding="utf-8")
            machine = self.path("machine.yaml")
        self.set_faults("")
        self.spawn("agent", [
            os.environ["JOGAK_BINARY"], "agent", "run", "--nvml", "sim:" + machine,
            "--node-name", NAME, "--kubeconfig", self.plane.kubeconfig,
            "--exporter-address", EXPORTER, "--mig-strategy", mig,
            "--mig-journal", self.path("mig-journal.json"),
            "--nvidia-driver-root", self.driver_root,
            "--device-list-strategy", strategy, *flags],
            env=dict(os.environ, **(env or {}), JOGAK_NVML_SIM_FAULTS=self.faults))

    def set_faults(self, line):
        """Standing faults of the simulated GPUs, "0=lost"."""
        temporary = self.faults + ".writing"
        pathlib.Path(temporary).write_text(line + "\n", encoding="utf-8")
        os.replace(temporary, self.faults)

    def end(self, name, sent=signal.SIGTERM):
        process = self.plane.processes.pop(name)
        assert process.poll() is None, f"{name} ended by itself with {process.returncode}"
        process.send_signal(sent)
        process.wait(timeout=control_plane.STOP_SECONDS_MAX)
        return process.returncode

    def metrics(self):
        """{'name{labels}': value} of the agent's page."""
        with urllib.request.urlopen(f"http://{EXPORTER}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                for line in lines if line and not line.startswith("#")}

    def registrations(self, resource=GPU):
        """When the agents of this test registered, by their log: seconds as of time.time()."""
        times = []
        for line in self.log("agent").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # half a line, so far
            if (entry.get("msg"), entry.get("resource")) == (REGISTERED, resource):
                at = datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00"))
                times.append(at.timestamp())
        return times

    # ---- the cluster --------------------------------------------------------------------------

    def kubectl(self, *words, stdin=None, check=True):
        done = subprocess.run(
            [control_plane.asset("kubectl"), "--kubeconfig", self.plane.kubeconfig, *words],
            input=stdin, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def object(self):
        text = self.kubectl("get", "node", NAME, "-o", "json", check=False)
        return json.loads(text) if text else {}

    def pod(self, name, namespace="default"):
        text = self.kubectl("get", "pod", name, "-n", namespace, "-o", "json", check=False)
        return json.loads(text) if text else {}

    def events(self):
        """Reasons of the agent's Events, as `kubectl describe node` shows them."""
        text = self.kubectl("describe", "node", NAME)
        return {words[1] for words in map(str.split, text.partition("\nEvents:")[2].splitlines())
                if len(words) > 3 and words[3] == "jogak-agent"}

    def kubelet_version(self):
        said = self.object()["status"]["nodeInfo"]["kubeletVersion"]
        return tuple(int(part) for part in re.match(r"v(\d+)\.(\d+)", said).groups())

    def capacity(self, resource):
        return self.object()["status"]["capacity"].get(resource, "0")

    def allocatable(self, resource=GPU):
        return self.object()["status"]["allocatable"].get(resource, "0")

    def wait_allocatable(self, count, resource=GPU):
        """Until the kubelet has so many, and the node's status says so; that is a second late."""
        wait_for(f"{count} of {resource}", lambda: self.allocatable(resource) == str(count)
                 and pod_resources.allocatable(POD_RESOURCES, resource) == count)

    def run_pod(self, name, count, resource=GPU, init=0, command=None, more=None):
        """`count` of each container, where there are several; `more`: other limits of each."""
        def container(called, of, words):
            limits = {**({resource: str(of)} if of else {}), **(more or {})}
            return {"name": called, "image": IMAGE, "imagePullPolicy": "Never",
                    "resources": {"limits": limits} if limits else {},
                    "securityContext": {"capabilities": {"add": ["MKNOD"]}},
                    **({"command": words} if words else {})}
        counts = count if isinstance(count, (list, tuple)) else [count]
        spec = {"nodeName": NAME, "hostNetwork": True, "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [container("main" if i == 0 else f"more-{i}", of, command)
                               for i, of in enumerate(counts)]}
        if init:
            spec["initContainers"] = [container("init", init, ["/bin/true"])]
        self.kubectl("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}))

    def phase(self, name):
        return self.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}", check=False)

    def container(self, pod, container="main"):
        """Waits until the pod runs."""
        def running():
            status = self.pod(pod).get("status", {})
            assert status.get("phase") != "Failed", f"{status.get('reason')}: {status}"
            return status.get("phase") == "Running" and [
                one["containerID"] for one in status["containerStatuses"]
                if one["name"] == container]
        identity = wait_for(f"pod {pod} runs", running)[0].partition("://")[2]
        return Container(self, identity, self.runtime.pid(identity))

    def holds(self, pod):
        """What the kubelet says that the pod holds, (container, device) sorted."""
        return sorted((one.container, one.device) for one in pod_resources.held(POD_RESOURCES)
                      if one.pod == pod)

    def delete(self, *names):
        self.kubectl("delete", "pod", *names, "--wait=true")
