# SPDX-License-Identifier: Apache-2.0
#
# The container runtimes that a kubelet may have, each with all of its files below one folder:
# containerd and CRI-O. What can be asked of both by the CRI is asked so.

import json
import os
import pathlib
import re
import shutil
import subprocess

import isolation
import podman
import small_grpc

CAP_SYS_RESOURCE = 24
# Takes out of a container's configuration what this machine cannot give, before runc sees it.
RUNC_THAT_ASKS_LESS = """#!/bin/sh
bundle=
for word in "$@"; do
  [ "$previous" != --bundle ] || bundle=$word
  previous=$word
done
[ -z "$bundle" ] || sed -z -i {edits} "$bundle/config.json"
exec {runc} "$@"
"""
HUGE_PAGES = isolation.CGROUPS / "hugetlb"
CNI = {"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "loopback"}]}


def version_of(program):
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\bv?(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def has_sys_resource():
    """The capability that lowers a process' score of memory; a container of a CI may lack it."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"^CapEff:\s*(\S+)", status, re.MULTILINE).group(1), 16) >> (
        CAP_SYS_RESOURCE) & 1


class Runtime:
    """`image`: the name of the image that is the pause container's, too."""

    name = ""
    programs = ()
    oldest = (0, 0)

    def __init__(self, folder, image):
        self.folder, self.image = folder, image
        self.socket = self.path(self.name + ".sock")
        # Pods of the tests use the node's network; this tells a kubelet that there is one.
        networks = pathlib.Path(self.path("cni"))
        networks.mkdir()
        (networks / "10-none.conflist").write_text(json.dumps(CNI), encoding="utf-8")

    @classmethod
    def missing(cls):
        """Why it cannot be started here, "" when it can."""
        for name in cls.programs:
            if shutil.which(name) is None:
                return f"there is no {name}"
        if version_of(cls.name) < cls.oldest:
            return f"{cls.name} is older than {cls.oldest[0]}.{cls.oldest[1]} and knows no CDI"
        return ""

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, method, *pairs):
        """As a kubelet does; OSError when it is refused."""
        return small_grpc.call(self.socket, "/runtime.v1.RuntimeService/" + method,
                               small_grpc.message(*pairs))

    def answers(self):
        return bool(self.call("Version"))

    def pid(self, container):
        """Of its first process."""
        answer = self.call("ContainerStatus", (1, container), (2, 1))
        for entry in (value for field, value in small_grpc.fields(answer) if field == 2):
            if small_grpc.texts(entry, 1) == ["info"]:
                return json.loads(small_grpc.texts(entry, 2)[0])["pid"]
        raise LookupError(f"{self.name} tells no pid of {container}")

    def run(self, container, *command):
        """Output and errors of a program inside."""
        answer = self.call("ExecSync", (1, container), *((2, word) for word in command))
        return "".join(small_grpc.texts(answer, 1) + small_grpc.texts(answer, 2))


class Containerd(Runtime):
    name = "containerd"
    programs = ("containerd", "runc", "ctr")
    oldest = (1, 7)

    def command(self):
        """That starts it; writes its configuration."""
        is_two = version_of("containerd") >= (2, 0)
        cri = "io.containerd.cri.v1.runtime" if is_two else "io.containerd.grpc.v1.cri"
        images = (f'[plugins."io.containerd.cri.v1.images".pinned_images]\n'
                  f'sandbox = "{self.image}"\n' if is_two else "")
        sandbox = "" if is_two else f'sandbox_image = "{self.image}"\n'
        config = self.path("containerd.toml")
        pathlib.Path(config).write_text(
            f'version = {3 if is_two else 2}\nroot = "{self.path("containerd")}"\n'
            f'state = "{self.path("containerd-run")}"\n[grpc]\naddress = "{self.socket}"\n'
            f'[plugins."io.containerd.internal.v1.opt"]\npath = "{self.path("opt")}"\n'
            f'[plugins."{cri}"]\n{sandbox}enable_cdi = true\n'
            f'restrict_oom_score_adj = {str(not has_sys_resource()).lower()}\n'
            f'[plugins."{cri}".cni]\nconf_dir = "{self.path("cni")}"\n{images}', encoding="utf-8")
        return ["containerd", "--config", config]

    def load(self, archive):
        done = subprocess.run(["ctr", "--address", self.socket, "-n", "k8s.io", "images", "import",
                               archive], capture_output=True, text=True)
        assert done.returncode == 0, f"ctr images import {archive}: {done.stderr}"


class Crio(Runtime):
    """Its images come by podman, which shares its storage; conmon and the network plugins by the
    packages that podman needs."""

    name = "crio"
    programs = ("crio", "pinns", "runc", "podman")
    oldest = (1, 23)

    def __init__(self, folder, image):
        super().__init__(folder, image)
        self.loader = podman.Podman(folder, below="crio")

    def runc(self):
        edits = []
        if not has_sys_resource():
            score = pathlib.Path("/proc/self/oom_score_adj").read_text().strip()
            edits += [f's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj": {score}/',
                      's/"CAP_SYS_RESOURCE"/"CAP_CHOWN"/g']  # one that it has anyhow
        if not HUGE_PAGES.exists() and not isolation.has_cgroup_v2():
            edits.append('s/"hugepageLimits": *\\[[^]]*]/"hugepageLimits":[]/')
        if not edits:
            return shutil.which("runc")
        path = pathlib.Path(self.path("runc"))
        path.write_text(RUNC_THAT_ASKS_LESS.format(
            edits=" ".join(f"-e '{edit}'" for edit in edits), runc=shutil.which("runc")))
        path.chmod(0o755)
        return str(path)

    def command(self):
        def quoted(**settings):
            return "".join(f'{name} = {json.dumps(value)}\n' for name, value in settings.items())
        below = self.path
        text = "[crio]\n" + quoted(
            root=self.loader.root, runroot=self.loader.runroot, storage_driver="vfs",
            log_dir=below("crio-logs"), version_file=below("crio-version"),
            clean_shutdown_file=below("crio-clean"), internal_wipe=False)
        text += "[crio.api]\n" + quoted(listen=self.socket, stream_port="0")
        text += "[crio.runtime]\n" + quoted(
            default_runtime="runc", cgroup_manager="cgroupfs", conmon_cgroup="pod",
            pinns_path=shutil.which("pinns"), namespaces_dir=below("crio-namespaces"),
            container_exits_dir=below("crio-exits"), disable_hostport_mapping=True,
            container_attach_socket_dir=below("crio-attach"), hooks_dir=[])
        text += "[crio.runtime.runtimes.runc]\n" + quoted(
            runtime_path=self.runc(), runtime_root=below("crio-runc"),
            monitor_path="/usr/bin/conmon", monitor_cgroup="pod")
        text += "[crio.image]\n" + quoted(
            pause_image=self.image, pause_command="",
            signature_policy=self.loader.policy)
        text += "[crio.network]\n" + quoted(
            network_dir=below("cni"), plugin_dirs=["/usr/lib/cni", "/opt/cni/bin"])
        text += "[crio.nri]\n" + quoted(enable_nri=False)
        pathlib.Path(below("crio.conf")).write_text(text, encoding="utf-8")
        return ["crio", "--config", below("crio.conf"), "--config-dir", ""]

    def load(self, archive):
        done = self.loader.load(archive)
        assert done.returncode == 0, f"podman load {archive}: {done.stderr}"


ALL = {kind.name: kind for kind in (Containerd, Crio)}
