#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The CDI files that the agent writes, before what reads them: the rules of the specification, a
# container that runc starts with the edits, and what containerd, CRI-O and podman themselves make
# of the file. Code 77: the reader is not on this machine; the last line says which and why.
# usage: cdi_test.py rules|runc|containerd|crio|podman     with JOGAK_BINARY set

import copy
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "real-node")]
import cdi_rules  # noqa: E402
import isolation  # noqa: E402
import node as real_node  # noqa: E402
import podman  # noqa: E402
import runtimes  # noqa: E402
import small_grpc  # noqa: E402
from isolation import control_plane  # noqa: E402

SKIPPED = 77
SECONDS_MAX = 20
UVM_MAJOR = 510  # as the kernel gives one to a module that asks for any
NETWORK_OF_NODE = 2  # of a CRI NamespaceOption
FILE = "k8s.device-plugin.nvidia.com-gpu.json"
MACHINES = ("a100-40gb-x8", "b200-x8", "mixed", "t4-x4")
SLICED = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: cdi
gpus:
- {model: A100-SXM4-40GB, count: 2}
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]
"""
# What the container says of itself: its environment, its nodes, a mounted file.
LOOK = ("env; for d in /dev/nvidia*; do [ -c $d ] && stat -c 'node %n %t:%T' $d; done; "
        "[ -e /usr/lib64/libcuda.so.1 ] && echo has libcuda; "
        "cat /dev/nvidia1 2>&1; mknod /tmp/n0 c 195 0; cat /tmp/n0 2>&1; true")
LOOK_AT_CAPS = ("; for d in /dev/nvidia-caps/*; do [ -c $d ] && echo cap $d && cat $d 2>&1; done; "
                "true")


class Left(Exception):
    """The test cannot run here, and why."""


def make_file(folder, machine, driver_root="/", system_root="/"):
    """The agent's file for a machine, read back."""
    cdi = os.path.join(folder, "cdi")
    shutil.rmtree(cdi, ignore_errors=True)
    path = pathlib.Path(cdi, FILE)
    with open(os.path.join(folder, "agent.log"), "w+", encoding="utf-8") as log:
        with subprocess.Popen([
                os.environ["JOGAK_BINARY"], "agent", "run", "--nvml", "sim:" + machine,
                "--kubeconfig", "off", "--labels", "off", "--exporter-address", "off",
                "--kubelet-dir", folder, "--cdi-dir", cdi, "--mig-strategy", "mixed",
                "--mig-journal", os.path.join(folder, "journal.json"),
                "--nvidia-driver-root", driver_root, "--system-root", system_root,
                "--device-list-strategy", "cdi-cri"], stdout=log, stderr=log) as agent:
            try:
                deadline = time.monotonic() + SECONDS_MAX
                while not path.exists():
                    if time.monotonic() > deadline or agent.poll() is not None:
                        log.seek(0)
                        raise AssertionError(f"no {FILE} for {machine}:\n{log.read()}")
                    time.sleep(0.01)
            finally:
                agent.terminate()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644, "a runtime may not read the file"
    return json.loads(path.read_text(encoding="utf-8"))


def sliced_machine(folder):
    path = os.path.join(folder, "sliced.yaml")
    pathlib.Path(path).write_text(SLICED, encoding="utf-8")
    return path


def make_bare_file(folder):
    """The file of a node that has no device nodes yet: their numbers are in the kernel's tables."""
    driver, system = pathlib.Path(folder, "bare-driver"), pathlib.Path(folder, "bare-system")
    (driver / "dev").mkdir(parents=True)
    shutil.copytree(os.path.join(folder, "driver/usr"), driver / "usr")
    (system / "proc/driver/nvidia-caps").mkdir(parents=True)
    (system / "proc/devices").write_text(
        f"Character devices:\n  1 mem\n{real_node.MAJOR} nvidia\n{UVM_MAJOR} nvidia-uvm\n"
        f"{real_node.CAPS_MAJOR} nvidia-caps\n\nBlock devices:\n  8 sd\n")
    shutil.copy("/proc/driver/nvidia-caps/mig-minors", system / "proc/driver/nvidia-caps")
    return make_file(folder, sliced_machine(folder), str(driver), str(system))


def put_file(folder):
    """Whole at once, where a runtime looks."""
    shutil.copy(os.path.join(folder, "cdi", FILE), "/run/cdi/.writing")
    os.replace("/run/cdi/.writing", "/run/cdi/" + FILE)


def names_of(spec):
    return [device["name"] for device in spec["devices"]]


# ---- the rules -----------------------------------------------------------------------------------


def test_rules(folder):
    root = pathlib.Path(folder, "driver")  # plain files stand for nodes: nobody opens them
    for name in ("dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm",
                 "dev/nvidia-caps/nvidia-cap3",
                 f"usr/lib64/libcuda.so.{real_node.DRIVER_VERSION}", "usr/bin/nvidia-smi"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for machine in (*MACHINES, sliced_machine(folder)):
        for driver_root in ("/", str(root)):
            spec = make_file(folder, machine, driver_root)
            found = cdi_rules.problems(spec)
            assert not found, f"{machine}: " + "; ".join(found)
    names = names_of(spec)
    assert {"0", "1", "2:0", "2:1"} <= set(names), names
    assert len([name for name in names if name.startswith("MIG-")]) == 2, names
    # and the judge is one: what is wrong is found
    for change, what in (({"cdiVersion": "0.9.0"}, "cdiVersion"), ({"kind": "gpu"}, "kind"),
                         ({"devices": []}, "devices"), ({"cdiVersion": "0.3.0"}, "0.5.0")):
        assert any(what in line for line in cdi_rules.problems({**spec, **change})), what


# ---- runc ----------------------------------------------------------------------------------------


def make_rootfs(path):
    """busybox, and folders for the rest."""
    for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/lib64"):
        (path / name).mkdir(parents=True)
    shutil.copy2(real_node.busybox(), path / "bin/busybox")
    for name in ("sh", "env", "stat", "cat", "mknod"):
        os.symlink("busybox", path / "bin" / name)


def bundle(folder):
    """An OCI bundle of busybox, with the configuration that runc itself proposes."""
    root = pathlib.Path(folder, "bundle")
    make_rootfs(root / "rootfs")
    subprocess.run(["runc", "spec", "--bundle", root], check=True)
    config = json.loads((root / "config.json").read_text(encoding="utf-8"))
    config["process"].update(terminal=False, args=["/bin/sh", "-c", LOOK], env=["PATH=/bin"])
    config["process"]["capabilities"] = {
        kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}
    config["root"]["readonly"] = False
    config["linux"]["cgroupsPath"] = f"/{isolation.cgroup_name()}/runc"
    # the network of a container is nothing to us
    config["linux"]["namespaces"] = [one for one in config["linux"]["namespaces"]
                                     if one["type"] != "cgroup"]
    return root, config


def runc(root, config):
    (root / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return subprocess.run(
        ["runc", "--root", root / "state", "run", "--bundle", root, f"c{time.monotonic_ns()}"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)


NODES = ["/dev/nvidia-uvm c3:fe", "/dev/nvidia1 c3:1", "/dev/nvidiactl c3:ff"]
BARE_NODES = ["/dev/nvidia-uvm 1fe:0", "/dev/nvidia-uvm-tools 1fe:1", "/dev/nvidia1 c3:1",
              "/dev/nvidiactl c3:ff"]


def check_said(said, uuid, wanted):
    """What a container with the second GPU has to say."""
    lines = said.splitlines()
    assert f"JOGAK_GPU_1={uuid}" in lines, said
    assert not [line for line in lines if line.startswith("JOGAK_GPU_0")], said
    assert "NVIDIA_VISIBLE_DEVICES=void" in lines, said
    nodes = sorted(line.removeprefix("node ") for line in lines if line.startswith("node "))
    assert nodes == wanted, said
    assert "has libcuda" in lines, said
    # the one that it was given may be opened (no driver answers), another one may not
    assert [line for line in lines if "open '/dev/nvidia1'" in line and "No such dev" in line], said
    assert [line for line in lines if "open '/tmp/n0'" in line and "not permitted" in line], said


def test_runc(folder):
    driver = os.path.join(folder, "driver")
    real_node.make_driver(driver)
    spec = make_file(folder, sliced_machine(folder), driver)
    root, config = bundle(folder)
    plain = runc(root, config)
    if plain.returncode != 0:
        raise Left(f"runc starts no container here: {plain.stderr.strip()}")
    uuid = names_of(spec)[2]
    for one, nodes in ((spec, NODES), (make_bare_file(folder), BARE_NODES)):
        edited = copy.deepcopy(config)
        cdi_rules.apply(edited, one, [uuid])
        done = runc(root, edited)
        assert done.returncode == 0, done.stderr
        check_said(done.stdout, uuid, nodes)


# ---- containerd and CRI-O ------------------------------------------------------------------------


def run_by_cri(runtime, folder, name, *extra):
    """What a container says that is asked for with these fields of its configuration."""
    message = small_grpc.message
    metadata = (1, message((1, name), (2, name), (3, "default")))
    network = message((1, NETWORK_OF_NODE))
    sandbox = message(metadata, (3, folder), (8, message(
        (1, f"/{isolation.cgroup_name()}/{name}"), (2, message((1, network))))))
    (pod,) = small_grpc.texts(runtime.call("RunPodSandbox", (1, sandbox)), 1)
    image = message((1, real_node.IMAGE), (18, real_node.IMAGE))  # as it is named, and as asked for
    config = message((1, message((1, name))), (2, image), (3, "/bin/sh"), (3, "-c"), (3, LOOK),
                     (11, name + ".log"), *extra,
                     (15, message((2, message((1, message((1, "MKNOD"))),
                                              (3, message((1, NETWORK_OF_NODE))))))))
    (container,) = small_grpc.texts(
        runtime.call("CreateContainer", (1, pod), (2, config), (3, sandbox)), 1)
    runtime.call("StartContainer", (1, container))
    log = pathlib.Path(folder, name + ".log")
    real_node.wait_for("the container has spoken", lambda: "/tmp/n0" in log.read_text())
    # "TIME stdout F what it said"
    return "\n".join(line.split(" ", 3)[3] for line in log.read_text().splitlines())


def test_by_cri(kind, folder):
    driver = os.path.join(folder, "driver")
    real_node.make_driver(driver)
    spec = make_file(folder, sliced_machine(folder), driver)
    put_file(folder)
    runtime = kind(folder, real_node.IMAGE)
    with open(os.path.join(folder, "runtime.log"), "wb") as log:
        daemon = subprocess.Popen(runtime.command(), stdout=log, stderr=log,
                                  preexec_fn=control_plane.die_with_parent)
    try:
        real_node.wait_for(f"{runtime.name} answers", runtime.answers)
        archive = os.path.join(folder, "image.tar")
        real_node.test_image(archive)
        runtime.load(archive)
        try:
            run_by_cri(runtime, folder, "plain")
        except OSError as why:
            raise Left(f"{runtime.name} starts no container here: {why}") from why
        uuid = names_of(spec)[2]
        device = f"{spec['kind']}={uuid}"
        message = small_grpc.message
        check_said(run_by_cri(runtime, folder, "field", (17, message((1, device)))), uuid, NODES)
        check_said(run_by_cri(runtime, folder, "annotated", (10, message(
            (1, "cdi.k8s.io/nvidia-device-plugin_x"), (2, device)))), uuid, NODES)
        make_bare_file(folder)
        put_file(folder)
        # the runtime hears of the new file a moment later
        real_node.wait_for("a container with the nodes of the new file", lambda: check_said(
            run_by_cri(runtime, folder, f"bare-{time.monotonic_ns()}",
                       (17, message((1, device)))), uuid, BARE_NODES) is None)
        try:
            run_by_cri(runtime, folder, "unknown", (17, message((1, device + "0"))))
        except OSError:
            return
        raise AssertionError("a device that no file has was taken")
    finally:
        daemon.terminate()
        daemon.wait()


def test_containerd(folder):
    test_by_cri(runtimes.Containerd, folder)


def test_crio(folder):
    test_by_cri(runtimes.Crio, folder)


# ---- podman --------------------------------------------------------------------------------------


def check_slice_said(said, spec, name):
    """What a container with a slice of the third GPU has to say: two access nodes of its own."""
    lines = said.splitlines()
    (edits,) = [one["containerEdits"] for one in spec["devices"] if one["name"] == name]
    caps = sorted(node["path"] for node in edits["deviceNodes"] if "-caps/" in node["path"])
    assert len(caps) == 2 and {"NVIDIA_VISIBLE_DEVICES=void", *edits["env"]} <= set(lines), said
    assert sorted(line.split()[1] for line in lines if line.startswith("cap ")) == caps, said
    nodes = sorted(line.split()[1] for line in lines if line.startswith("node "))
    assert nodes == ["/dev/nvidia-uvm", "/dev/nvidia2", "/dev/nvidiactl"], said
    opened = [line for line in lines if line.startswith("cat: can't open '/dev/nvidia-caps/")]
    assert len(opened) == 2 and all("No such device" in line for line in opened), said


def test_podman(folder):
    driver = os.path.join(folder, "driver")
    real_node.make_driver(driver)
    spec = make_file(folder, sliced_machine(folder), driver)
    put_file(folder)
    root = pathlib.Path(folder, "rootfs")
    make_rootfs(root)
    engine = podman.Podman(folder)
    if engine.why_not():
        raise Left(engine.why_not())

    def look(*devices):
        words = [word for name in devices for word in ("--device", f"{spec['kind']}={name}")]
        return engine.run("--cap-add", "MKNOD", *words, "--rootfs", str(root), "/bin/sh", "-c",
                          LOOK + LOOK_AT_CAPS)
    plain = look()
    if plain.returncode != 0 and "/tmp/n0" not in plain.stdout:
        raise Left(f"podman starts no container here: {plain.stderr.strip()}")
    names = names_of(spec)
    for name in (names[2], "1"):  # one GPU by both of its names
        check_said(look(name).stdout, names[2], NODES)
    for name in ("2:1", next(one for one in names if one.startswith("MIG-"))):
        check_slice_said(look(name).stdout, spec, name)
    make_bare_file(folder)
    put_file(folder)
    check_said(look(names[2]).stdout, names[2], BARE_NODES)
    unknown = look(names[2] + "0")
    assert unknown.returncode != 0 and "unresolvable CDI devices" in unknown.stderr, unknown


def missing(what):
    """Why the reader cannot be tried here."""
    if what == "rules":
        return ""
    if os.geteuid() != 0:
        return "starting containers needs root"
    if what in runtimes.ALL and runtimes.ALL[what].missing():
        return runtimes.ALL[what].missing()
    for name in ("runc", "podman") if what == "podman" else ("runc",):
        if shutil.which(name) is None:
            return f"there is no {name}"
    if real_node.busybox() is None:
        return "there is no static busybox (package busybox-static)"
    return isolation.missing()


TESTS = {"rules": test_rules, "runc": test_runc, "containerd": test_containerd,
         "crio": test_crio, "podman": test_podman}


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in TESTS or not os.environ.get("JOGAK_BINARY"):
        print(f"usage: cdi_test.py {'|'.join(('rules', *TESTS))}, with JOGAK_BINARY set",
              file=sys.stderr)
        return 2
    if what == "rules":
        with tempfile.TemporaryDirectory() as folder:
            test_rules(folder)
        return 0
    if not isolation.is_inside():
        why = missing(what)
        if why:
            print(f"skipped: {why}")
            return SKIPPED
        return isolation.run_inside(os.path.abspath(__file__))
    isolation.set_up()
    try:
        TESTS[what](isolation.folder())
    except Left as why:
        print(f"skipped: {why}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
