#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The device plugin under a real kubelet and containerd, on simulated GPUs: what test/kubelet checks
# with a stand-in. Needs root, $KUBEBUILDER_ASSETS with a kubelet beside the control plane,
# containerd 1.7 or newer, runc, and a static busybox for images without a network. Exit code 77
# (skipped) says what is missing. The kubelet's plugin folder cannot be moved, so the test refuses
# to run where a kubelet already is.

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import control_plane  # noqa: E402

SKIPPED = 77
KUBELET_ROOT = "/var/lib/kubelet"
KUBELET_SOCKET = KUBELET_ROOT + "/device-plugins/kubelet.sock"
NODE = "real-node"
IMAGE = "localhost/jogak-test:1"
WAIT_SECONDS = 60
CONTAINERD_MIN = (1, 7)
GPU = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-1g.5gb"
# One A100 in seven slices.
SEVEN_SLICES = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: seven
gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances:
""" + "".join(f"  - {{profile: 1g.5gb, start: {start}}}\n" for start in range(7))


def containerd_version():
    text = subprocess.run(["containerd", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\bv?(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def busybox():
    for name in ("busybox.static", "busybox"):
        path = shutil.which(name)
        if path and b"statically" in subprocess.run(
                ["file", "-L", path], capture_output=True).stdout:
            return path
    return None


def a_kubelet_listens():
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(KUBELET_SOCKET)
            return True
        except OSError:
            return False


def missing():
    """Why the test cannot run here, "" when it can."""
    why = control_plane.missing()
    if why:
        return why
    if control_plane.asset("kubelet") is None:
        return "KUBEBUILDER_ASSETS has no kubelet"
    if os.geteuid() != 0:
        return "a kubelet needs root"
    for name in ("containerd", "runc", "ctr", "file"):
        if shutil.which(name) is None:
            return f"there is no {name}"
    if containerd_version() < CONTAINERD_MIN:
        return "containerd is older than 1.7 and knows no CDI"
    if busybox() is None:
        return "there is no static busybox (package busybox-static) to make an image of"
    if a_kubelet_listens():
        return f"another kubelet listens on {KUBELET_SOCKET}"
    if not os.environ.get("JOGAK_BINARY"):
        return "JOGAK_BINARY does not name the jogak executable"
    return ""


def wait_for(what, claim, seconds=WAIT_SECONDS):
    deadline = time.monotonic() + seconds
    while True:
        got = claim()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def image_archive(path):
    """A docker archive with busybox as all of its programs; it serves as the pause image too."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "dev", "proc", "sys", "tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(busybox(), "bin/busybox", filter=lambda e: setattr(e, "mode", 0o755) or e)
        for name in ("sh", "sleep", "env", "cat", "ls"):
            entry = tarfile.TarInfo("bin/" + name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    data = layer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [IMAGE],
                            "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for name, content in (("config.json", config), ("manifest.json", manifest),
                              ("layer.tar", data)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


class Node:
    """containerd, a kubelet and the agent, beside a control plane."""

    def __init__(self, plane):
        self.plane = plane
        self.containerd_socket = plane.path("containerd.sock")

    def start(self):
        self.start_containerd()
        archive = self.plane.path("image.tar")
        image_archive(archive)
        self.ctr("-n", "k8s.io", "images", "import", archive)
        pem = self.plane.certificates
        pem.sign("kubelet", "system:node:" + NODE, group="system:nodes")
        pem.sign("kubelet-server", NODE, hosts="IP:127.0.0.1,DNS:" + NODE)
        self.plane.write_kubeconfig("kubelet")
        self.start_kubelet()
        wait_for("the node is there", lambda: self.node().get("status", {}).get("capacity"))

    def spawn(self, name, command, env=None):
        with open(self.plane.path(name + ".log"), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=env, preexec_fn=control_plane.die_with_parent)
        self.plane.processes[name] = process
        return process

    def start_containerd(self):
        version = 3 if containerd_version() >= (2, 0) else 2
        cri = ("io.containerd.cri.v1.runtime" if version == 3 else "io.containerd.grpc.v1.cri")
        images = (f'[plugins."io.containerd.cri.v1.images".pinned_images]\nsandbox = "{IMAGE}"\n'
                  if version == 3 else "")
        sandbox = "" if version == 3 else f'sandbox_image = "{IMAGE}"\n'
        config = self.plane.path("containerd.toml")
        pathlib.Path(config).write_text(
            f'version = {version}\nroot = "{self.plane.path("containerd")}"\n'
            f'state = "{self.plane.path("containerd-run")}"\n'
            f'[grpc]\naddress = "{self.containerd_socket}"\n'
            f'[plugins."{cri}"]\n{sandbox}enable_cdi = true\n'
            f'cdi_spec_dirs = ["{self.plane.path("cdi")}"]\n{images}', encoding="utf-8")
        self.spawn("containerd", ["containerd", "--config", config])
        wait_for("containerd answers", lambda: self.ctr("version", check=False) == 0)

    def ctr(self, *words, check=True):
        done = subprocess.run(["ctr", "--address", self.containerd_socket, *words],
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"ctr {' '.join(words)}: {done.stderr}")
        return done.returncode

    def start_kubelet(self):
        config = self.plane.path("kubelet.json")
        pem = self.plane.certificates.path
        pathlib.Path(config).write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"x509": {"clientCAFile": pem("ca.crt")},
                               "webhook": {"enabled": False}, "anonymous": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs",
            "failSwapOn": False, "failCgroupV1": False, "nodeStatusUpdateFrequency": "1s",
            "containerRuntimeEndpoint": "unix://" + self.containerd_socket,
            "tlsCertFile": pem("kubelet-server.crt"),
            "tlsPrivateKeyFile": pem("kubelet-server.key"),
            "address": "127.0.0.1", "healthzPort": 0, "readOnlyPort": 0,
            "evictionHard": {"memory.available": "1Mi"}, "resolvConf": ""}), encoding="utf-8")
        port = control_plane.free_ports(1)[0]
        self.spawn("kubelet", [control_plane.asset("kubelet"), "--config=" + config,
                               "--kubeconfig=" + self.plane.path("kubelet.conf"),
                               "--hostname-override=" + NODE, f"--port={port}"])

    def start_agent(self, machine, strategy):
        self.spawn("agent", [
            os.environ["JOGAK_BINARY"], "agent", "run", "--nvml", "sim:" + machine,
            "--node-name", NODE, "--kubeconfig", self.plane.kubeconfig,
            "--cdi-dir", self.plane.path("cdi"), "--exporter-address", "off",
            "--mig-journal", self.plane.path("mig-journal.json"),
            "--mig-strategy", strategy, "--device-list-strategy", "envvar,cdi-cri"])

    def end(self, name):
        process = self.plane.processes.pop(name)
        process.terminate()
        process.wait(timeout=control_plane.STOP_SECONDS_MAX)

    def kubectl(self, *words, stdin=None, check=True):
        done = subprocess.run(
            [control_plane.asset("kubectl"), "--kubeconfig", self.plane.kubeconfig, *words],
            input=stdin, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def node(self):
        text = self.kubectl("get", "node", NODE, "-o", "json", check=False)
        return json.loads(text) if text else {}

    def allocatable(self, resource):
        return self.node().get("status", {}).get("allocatable", {}).get(resource, "0")

    def run_pod(self, name, resource, count):
        self.kubectl("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": NODE, "hostNetwork": True, "terminationGracePeriodSeconds": 0,
                     "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                                     "resources": {"limits": {resource: str(count)}}}]}}))

    def phase(self, name):
        return self.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}", check=False)

    def devices_of(self, name):
        """What a running pod's process sees, from the host's view of its environment."""
        wait_for(f"pod {name} runs", lambda: self.phase(name) == "Running")
        identity = self.kubectl("get", "pod", name, "-o",
                                "jsonpath={.status.containerStatuses[0].containerID}")
        tasks = subprocess.run(["ctr", "--address", self.containerd_socket, "-n", "k8s.io",
                                "tasks", "ls"], capture_output=True, text=True).stdout
        pid = next(line.split()[1] for line in tasks.splitlines()
                   if line.startswith(identity.removeprefix("containerd://")))
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        return sorted(v.split("=", 1)[1] for v in environment if v.startswith("JOGAK_GPU_"))

    def delete(self, *names):
        self.kubectl("delete", "pod", *names, "--wait=true")


def case_two_gpus(node):
    node.start_agent("a100-40gb-x8", "mixed")
    wait_for("eight GPUs", lambda: node.allocatable(GPU) == "8")
    node.run_pod("two", GPU, 2)
    devices = node.devices_of("two")
    assert len(devices) == 2 and all(d.startswith("GPU-") for d in devices), devices


def case_kubelet_restart(node):
    before = node.devices_of("two")
    node.end("kubelet")
    node.start_kubelet()
    wait_for("eight GPUs again", lambda: node.allocatable(GPU) == "8")
    assert node.phase("two") == "Running" and node.devices_of("two") == before
    node.run_pod("six", GPU, 6)
    assert not set(node.devices_of("six")) & set(before), "a device was handed out twice"


def case_agent_restart(node):
    node.end("agent")
    wait_for("no GPU without the agent", lambda: node.allocatable(GPU) == "0")
    assert node.phase("two") == "Running"
    node.start_agent("a100-40gb-x8", "mixed")
    wait_for("eight GPUs again", lambda: node.allocatable(GPU) == "8")
    assert node.phase("two") == "Running"
    node.delete("two", "six")
    node.end("agent")


def case_seven_slices(node):
    machine = node.plane.path("seven.yaml")
    pathlib.Path(machine).write_text(SEVEN_SLICES, encoding="utf-8")
    node.start_agent(machine, "mixed")
    wait_for("seven slices", lambda: node.allocatable(SLICE) == "7")
    names = [f"slice-{i}" for i in range(7)]
    for name in names:
        node.run_pod(name, SLICE, 1)
    seen = [device for name in names for device in node.devices_of(name)]
    assert len(seen) == len(set(seen)) == 7, seen
    node.delete(*names)


CASES = (case_two_gpus, case_kubelet_restart, case_agent_restart, case_seven_slices)


def main():
    why = missing()
    if why:
        print(f"skipped: no real node here: {why}")
        return SKIPPED
    control_plane.stop_when_told()
    with control_plane.ControlPlane() as plane:
        node = Node(plane)
        node.start()
        for case in CASES:
            begin = time.monotonic()
            try:
                case(node)
            except (AssertionError, OSError, StopIteration) as failure:
                print(f"FAILED  {case.__name__}: {failure}\n{plane.tails()}")
                return 1
            print(f"ok      {case.__name__} ({time.monotonic() - begin:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
