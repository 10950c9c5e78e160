#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes the container image that the manifests name, without a container engine: the jogak
# executable and the shared libraries that it needs, as one layer. The same binary and libraries
# give the same bytes. Load the file with `ctr -n k8s.io images import`, `docker load -i` or
# `podman load -i`, then push it where your nodes find it.

import argparse
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
BINARY_IN_IMAGE = "usr/bin/jogak"
FOLDERS = ("etc", "tmp", "var", "run")
EPOCH = "1970-01-01T00:00:00Z"


class CannotMake(Exception):
    """One line: what is wrong and what to do."""


def libraries(binary):
    """Paths of the shared libraries, the loader among them, as this machine resolves them."""
    try:
        done = subprocess.run(["ldd", binary], capture_output=True, text=True)
    except OSError as error:
        raise CannotMake(f"ldd: {error.strerror}; it comes with the C library") from error
    if done.returncode != 0:
        if "not a dynamic executable" in done.stderr + done.stdout:
            return []
        raise CannotMake(f"ldd {binary}: {(done.stderr or done.stdout).strip()}")
    lacking = re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)
    if lacking:
        raise CannotMake(f"{binary} needs {', '.join(lacking)}; install what has them")
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)
    return sorted(set(found))


def add(tar, name, kind=tarfile.REGTYPE, mode=0o644, data=b"", target=""):
    entry = tarfile.TarInfo(name)  # owner 0, time 0
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), target
    tar.addfile(entry, io.BytesIO(data))


def layer(files, folders=FOLDERS, links=()):
    """A tar of {name in the image: path here}, (name, target) links and empty folders."""
    made = io.BytesIO()
    parents = set(folders)
    for name in [*files, *(name for name, _ in links)]:
        parents.update(str(parent) for parent in pathlib.PurePosixPath(name).parents)
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in sorted(parents - {"."}):
            add(tar, folder, tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755)
        for name in sorted(files):
            mode = 0o755 if os.access(files[name], os.X_OK) else 0o644
            add(tar, name, mode=mode, data=pathlib.Path(files[name]).read_bytes())
        for name, target in sorted(links):
            add(tar, name, tarfile.SYMTYPE, 0o777, target=target)
    return made.getvalue()


def write_archive(path, tag, data, config):
    """A docker archive of one layer."""
    digest = hashlib.sha256(data).hexdigest()
    text = json.dumps({
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
        "created": EPOCH, "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    temporary = path + ".writing"
    with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
        for entry, content in ((name, text), ("layer.tar", data), ("manifest.json", manifest)):
            add(tar, entry, data=content)
    os.replace(temporary, path)


def make(binary, path, tag):
    """Writes the image of a jogak executable; gives the number of its libraries."""
    if not os.access(binary, os.X_OK):
        raise CannotMake(f"{binary} is no executable; build jogak, or name one with --binary")
    needed = libraries(binary)
    # A link is followed: the loader asks for the name that the binary knows.
    files = {library.lstrip("/"): library for library in needed}
    files[BINARY_IN_IMAGE] = binary
    write_archive(path, tag, layer(files), {
        "Entrypoint": ["/usr/bin/jogak"], "Env": ["PATH=/usr/bin"],
        "Labels": {"org.opencontainers.image.title": "jogak",
                   "org.opencontainers.image.licenses": "Apache-2.0"}})
    return len(needed)


def main():
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    parser = argparse.ArgumentParser(
        description="Writes the container image of jogak as a file, without a container engine.",
        epilog="ctr -n k8s.io images import FILE, docker load -i FILE and podman load -i FILE "
               "take it.")
    parser.add_argument("--binary", metavar="FILE", default=shutil.which("jogak"),
                        help="the jogak executable (default: the one in $PATH)")
    parser.add_argument("--tag", metavar="NAME", default=f"docker.io/library/jogak:{version}",
                        help="name of the image (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE", default=f"jogak-{version}.tar",
                        help="where the image goes (default: %(default)s)")
    options = parser.parse_args()
    try:
        if not options.binary:
            raise CannotMake("there is no jogak in $PATH; name one with --binary")
        count = make(options.binary, options.output, options.tag)
    except (CannotMake, OSError) as error:
        print(f"image.py: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {options.tag}, jogak and {count} libraries, "
          f"{os.path.getsize(options.output) >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
