# SPDX-License-Identifier: Apache-2.0
#
# A machine of its own for a kubelet, in namespaces of this one: mounts, processes and network. What
# a kubelet and a container runtime leave behind (mounts, shims, sockets, rules) ends with the
# namespaces, however the test ends; what is outside of them (cgroups, the folder) the outer process
# removes. Kernel settings that a kubelet changes are files here, so the machine keeps its own.

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import control_plane  # noqa: E402

INSIDE = "JOGAK_REAL_NODE_FOLDER"  # set in the inner process
NODE_IP = "192.0.2.10"  # of the documentation's network, and only in our namespace
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# What the node writes outside of its folder; each becomes a layer over what is there.
LAYERED = ("/var/lib", "/var/log", "/run", "/usr/libexec", "/opt")
EMPTY = ("/var/lib/kubelet", "/run/cdi")  # where another node may live on this machine
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
           "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")
GONE_SECONDS_MAX = 10
PREFIX = "jogak-real-node-"


def missing():
    """Why there can be no such machine here, "" when there can."""
    for name in ("unshare", "mount", "ip"):
        if shutil.which(name) is None:
            return f"there is no {name} (packages util-linux, mount, iproute2)"
    probe = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc",
                            "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"no namespaces may be made here: {probe.stderr.strip()}"
    return ""


def folder():
    return os.environ[INSIDE]


def cgroup_name():
    return pathlib.Path(folder()).name


def is_inside():
    return INSIDE in os.environ


def has_cgroup_v2():
    return (CGROUPS / "cgroup.controllers").exists()


def cgroup_folders(name):
    """The cgroup in each hierarchy: one of version 2, or those of version 1."""
    if has_cgroup_v2():
        return [CGROUPS / name]
    return [path / name for path in sorted(CGROUPS.iterdir())
            if path.is_dir() and not path.is_symlink()]


def make_cgroups(name):
    if has_cgroup_v2():
        wanted = [f"+{one}" for one in (CGROUPS / "cgroup.controllers").read_text().split()]
        (CGROUPS / "cgroup.subtree_control").write_text(" ".join(wanted))
    for path in cgroup_folders(name):
        path.mkdir()


def remove_cgroups(name):
    deadline = time.monotonic() + GONE_SECONDS_MAX
    left = [path for path in cgroup_folders(name) if path.exists()]
    while left and time.monotonic() < deadline:
        for top in left:
            for path, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass  # its last process is just ending
        left = [path for path in left if path.exists()]
        time.sleep(0.02)
    return [str(path) for path in left]


def sweep():
    """Removes what an outer process left that was killed: it says its pid in the name."""
    cgroups = [path.name for top in cgroup_folders(".") for path in top.glob(PREFIX + "*")]
    for name in {*cgroups, *(path.name for path in pathlib.Path(tempfile.gettempdir()).glob(
            PREFIX + "*"))}:
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not pathlib.Path("/proc", owner).exists():
            remove_cgroups(name)
            shutil.rmtree(pathlib.Path(tempfile.gettempdir(), name), ignore_errors=True)


def run_inside(script):
    """The outer process: starts `script` again inside, and clears up after it."""
    control_plane.stop_when_told()
    sweep()
    outer = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
    name = pathlib.Path(outer).name
    code = 1
    try:
        make_cgroups(name)
        with subprocess.Popen(
                ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
                 "--propagation", "private", sys.executable, script, *sys.argv[1:]],
                env=dict(os.environ, **{INSIDE: outer, "TMPDIR": outer}),
                preexec_fn=control_plane.die_with_parent) as inner:
            try:
                code = inner.wait()
            finally:
                inner.kill()  # and its child, with all that is in the namespace
    finally:
        left = remove_cgroups(name)
        shutil.rmtree(outer, ignore_errors=True)
        for path in left:
            print(f"left behind: {path}", file=sys.stderr)
    return code if not left else 1


def mount(*words):
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise control_plane.NotStarted(f"mount {' '.join(words)}: {done.stderr.strip()}")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def set_up():
    """The inner process: folders, settings and a network that are ours alone."""
    layers = pathlib.Path(folder(), "layers")
    layers.mkdir()
    mount("-t", "tmpfs", "none", layers)  # an overlay's upper folder may not be on an overlay
    for path in LAYERED:
        upper, work = (layers / (path.replace("/", "_") + kind) for kind in ("", "-work"))
        upper.mkdir()
        work.mkdir()
        if os.path.isdir(path):
            mount("-t", "overlay", "overlay", "-o",
                  f"lowerdir={path},upperdir={upper},workdir={work}", path)
    for path in EMPTY:
        os.makedirs(path, exist_ok=True)
        own = pathlib.Path(folder(), path.lstrip("/").replace("/", "_"))
        own.mkdir()
        mount("--bind", own, path)
    for name in SYSCTLS:
        path = pathlib.Path("/proc/sys", name)
        if path.exists():
            own = pathlib.Path(folder(), name.replace("/", "_"))
            own.write_text(path.read_text())
            mount("--bind", own, path)
    mount("--make-rshared", "/")  # as systemd leaves it; some of a kubelet's volumes need it
    ip("link", "set", "lo", "up")
    ip("link", "add", "node0", "type", "veth", "peer", "name", "node1")
    ip("address", "add", NODE_IP + "/24", "dev", "node0")
    ip("link", "set", "node1", "up")
    ip("link", "set", "node0", "up")
    ip("route", "add", "default", "dev", "node0")
