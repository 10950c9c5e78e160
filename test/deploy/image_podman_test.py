#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The image that deploy/image.py makes, loaded and run by podman: what a container engine makes of
# its archive, its entry point and its libraries. Exit code 77 (skipped) says what is missing.
# usage: image_podman_test.py     with JOGAK_BINARY set

import json
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("test/real-node", "deploy")]
import image  # noqa: E402
import isolation  # noqa: E402
import podman  # noqa: E402

SKIPPED = 77
TAG = "localhost/jogak-test:1"
MACHINE = "h100-80gb-x8"


def check(done, what):
    assert done.returncode == 0, f"{what}: {done.stdout}{done.stderr}"
    return done.stdout


def test(folder, engine):
    """Why it cannot be told here, "" when all is well."""
    if engine.why_not():
        return engine.why_not()
    archive = os.path.join(folder, "jogak.tar")
    image.make(os.environ["JOGAK_BINARY"], archive, TAG)
    assert TAG in check(engine.load(archive), "podman load")
    plain = engine.run("--entrypoint", "/usr/bin/jogak", TAG, "--version")
    if plain.returncode != 0 and "OCI runtime error" in plain.stderr:
        return f"podman starts no container here: {plain.stderr.strip()}"
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    assert version in check(plain, "jogak --version"), plain.stdout
    assert version in check(engine.run(TAG, "version"), "the entry point")
    said = json.loads(check(engine.run(TAG, "agent", "inspect", "--nvml", "sim:" + MACHINE, "-o",
                                       "json"), "jogak agent inspect"))
    assert [gpu["name"] for gpu in said["gpus"]] == ["NVIDIA H100 80GB HBM3"] * 8, said
    nothing = engine.run(TAG, "agent", "inspect")
    assert nothing.returncode != 0 and "sim:" in nothing.stderr, nothing
    return ""


def missing():
    if os.geteuid() != 0:
        return "starting containers needs root"
    for name in ("podman", "runc"):
        if shutil.which(name) is None:
            return f"there is no {name}"
    return isolation.missing()


def main():
    if not os.environ.get("JOGAK_BINARY"):
        print("JOGAK_BINARY: the path of the jogak executable", file=sys.stderr)
        return 2
    if not isolation.is_inside():
        why = missing()
        if why:
            print(f"skipped: {why}")
            return SKIPPED
        return isolation.run_inside(os.path.abspath(__file__))
    isolation.set_up()
    why = test(isolation.folder(), podman.Podman(isolation.folder()))
    if why:
        print(f"skipped: {why}")
    return SKIPPED if why else 0


if __name__ == "__main__":
    sys.exit(main())
