# SPDX-License-Identifier: Apache-2.0
#
# podman inside isolation.py's namespaces, where no systemd, no registry and no network is: its
# files below the test's folder, cgroups of the test's own. One that tools/programs.sh fetched and
# did not install lies over /usr in there, so that it finds its libraries and its helpers.

import os
import pathlib
import shutil
import subprocess

import isolation

OLDEST = (4, 1)  # reads CDI files
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'  # nothing is pulled


class Podman:
    """After isolation.set_up(). Its storage may be another program's, too."""

    def __init__(self, folder, below="podman"):
        found = pathlib.Path(shutil.which("podman")).resolve()
        usr = found.parent.parent
        if usr != pathlib.Path("/usr"):
            isolation.mount("-t", "overlay", "overlay", "-o", f"lowerdir={usr}:/usr", "/usr")
        self.policy = os.path.join(folder, "policy.json")
        pathlib.Path(self.policy).write_text(POLICY, encoding="utf-8")
        self.root, self.runroot, temporary = (
            os.path.join(folder, below, name) for name in ("root", "run", "tmp"))
        self.words = [
            "/usr/bin/podman", "--root", self.root, "--runroot", self.runroot, "--tmpdir",
            temporary, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
            "--events-backend", "file", "--runtime", shutil.which("runc")]

    def why_not(self):
        """Why it is of no use here, "" when it is."""
        done = self.call("--version")  # "podman version 4.3.1"
        if done.returncode != 0:
            return f"podman does not start: {done.stderr.strip()}"
        said = done.stdout.split()[-1]
        if tuple(int(part) for part in said.split(".")[:2]) < OLDEST:
            return f"podman is {said}, older than {OLDEST[0]}.{OLDEST[1]}, and knows no CDI"
        return ""

    def call(self, *words):
        """A command's exit code, output and errors."""
        return subprocess.run([*self.words, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def load(self, archive):
        return self.call("load", "--signature-policy", self.policy, "--input", archive)

    def run(self, *words):
        """A container that is gone when it has ended. All system calls: a sanitizer asks for more
        than others."""
        return self.call("run", "--rm", "--network", "none", "--security-opt",
                         "seccomp=unconfined", "--cgroup-parent",
                         f"/{isolation.cgroup_name()}/podman", *words)
