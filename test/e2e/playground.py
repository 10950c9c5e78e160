# SPDX-License-Identifier: Apache-2.0
#
# Starts `jogak up` for a test and stops it again. The executable is named by the environment
# variable JOGAK_BINARY.

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

START_SECONDS_MAX = 30


class Playground:
    """`with Playground() as kubeconfig:` a playground of its own, on a port of its own."""

    def __init__(self, *flags):
        self.flags = flags
        self.folder = tempfile.TemporaryDirectory(prefix="jogak-e2e-")
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.log = os.path.join(self.folder.name, "log")
        self.process = None

    def __enter__(self):
        binary = os.environ.get("JOGAK_BINARY")
        if not binary:
            sys.exit("JOGAK_BINARY is not set; it names the jogak executable")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [binary, "up", "--port", "0", "--kubeconfig", self.kubeconfig, *self.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS_MAX
        while "ready in" not in self.output():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                sys.exit(f"jogak up did not get ready:\n{self.output()}")
            time.sleep(0.02)
        return self.kubeconfig

    def __exit__(self, *_):
        """Stops it; a server that died on its own or does not stop fails the test."""
        died = self.process.poll()
        if died is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                died = "it did not stop at SIGINT"
        output = self.output()
        self.folder.cleanup()
        if died is not None:
            sys.exit(f"jogak up ended by itself or not at all ({died}):\n{output}")

    def output(self):
        path = pathlib.Path(self.log)
        return path.read_text(errors="replace") if path.exists() else ""
