#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The image that deploy/image.py makes: the same bytes each time, the name that the manifests ask
# for, and all that the executable needs to run, which it does out of the image and nothing else.

import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "deploy" / "image.py"


def make(path, *words):
    return subprocess.run([sys.executable, TOOL, "--output", path, *words], capture_output=True,
                          text=True)


def test_content(folder, binary):
    first, second = (os.path.join(folder, name) for name in ("one.tar", "two.tar"))
    for path in (first, second):
        done = make(path, "--binary", binary)
        assert done.returncode == 0, done.stderr
    data = pathlib.Path(first).read_bytes()
    assert data == pathlib.Path(second).read_bytes(), "the bytes differ from one time to the next"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        (entry,) = json.load(archive.extractfile("manifest.json"))
        config = json.load(archive.extractfile(entry["Config"]))
        layer = archive.extractfile(entry["Layers"][0]).read()
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
    named = set()
    for manifest in (ROOT / "deploy").glob("*.yaml"):
        named.update(re.findall(r"^\s+image: (\S+jogak:\S+)", manifest.read_text(), re.MULTILINE))
    # with the registry: CRI-O takes no short names, unless told of registries
    assert named == set(entry["RepoTags"]), named
    root = pathlib.Path(folder, "root")
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert all(one.uid == one.mtime == 0 for one in files), "owners or times"
        files.extractall(root)
    return root


def test_runs(root):
    """By the image's own loader and libraries."""
    loader = next(path for path in root.rglob("ld-*") if os.access(path, os.X_OK))
    folders = sorted({str(path.parent) for path in root.rglob("*.so*")})
    done = subprocess.run([loader, "--inhibit-cache", "--library-path", ":".join(folders),
                           root / "usr/bin/jogak", "version"], capture_output=True, text=True,
                          env={})
    assert done.returncode == 0 and "0." in done.stdout, done.stderr


def test_refusals(folder):
    path = os.path.join(folder, "none.tar")
    done = make(path, "--binary", os.path.join(folder, "nothing"))
    assert done.returncode == 1 and "is no executable; build jogak" in done.stderr, done.stderr
    assert not os.path.exists(path)


def main():
    binary = os.environ.get("JOGAK_BINARY")
    if not binary:
        print("JOGAK_BINARY: the path of the jogak executable", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        test_runs(test_content(folder, binary))
        test_refusals(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
