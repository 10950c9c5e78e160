# SPDX-License-Identifier: Apache-2.0
#
# For tests in Python: a `jogak up` of their own, on any free port, that goes when they do.
"""Starts and stops `jogak up`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

START_S = 30
STOP_S = 10
# Objects to start with where a test brings its own nodes: one that is there anyway.
NOTHING = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"


def binary():
    """The program under test: $JOGAK_BINARY, else the everyday build's."""
    path = os.environ.get("JOGAK_BINARY")
    if path:
        return path
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, "build", "dev", "src", "cli", "jogak")


class JogakUp:
    """A running playground: .url, .token, .kubeconfig (a path), .folder (for the test's files)."""

    def __init__(self, *arguments, objects=None):
        self.folder = tempfile.mkdtemp(prefix="jogak-up-")
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        self.token = "token-of-the-test"
        command = [binary(), "up", "--token", self.token, "--kubeconfig", self.kubeconfig]
        command += arguments
        if objects is not None:
            start = os.path.join(self.folder, "objects.yaml")
            with open(start, "w", encoding="utf-8") as file:
                file.write(objects)
            command += ["--cluster", start]
        self.log_path = os.path.join(self.folder, "log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log)
        try:
            self.url = self.wait_for_url()
        except BaseException:
            self.stop()
            raise

    def wait_for_url(self):
        """Reads the screen it opens with; by then it answers."""
        screen = b""
        while line := self.process.stdout.readline():
            screen += line
            found = re.search(rb"https?://[0-9a-z.:\[\]]+", line)
            if found:
                return found.group().decode()
        self.process.wait(STOP_S)
        self.log.flush()
        with open(self.log_path, "rb") as file:
            raise RuntimeError(f"jogak up does not start: {(screen + file.read()).decode()}")

    def stop(self):
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        code = self.stop()
        if code != 0 and kind is None:
            raise RuntimeError(f"jogak up ended with {code}")


def kubectl(*options):
    """The path of a kubectl, from tools/kubectl.sh; None, with its words on stderr, without one."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = subprocess.run([os.path.join(root, "tools", "kubectl.sh"), *options],
                           stdout=subprocess.PIPE, check=False)
    sys.stderr.flush()
    return found.stdout.decode().strip() if found.returncode == 0 else None
