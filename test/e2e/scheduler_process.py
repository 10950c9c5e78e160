# SPDX-License-Identifier: Apache-2.0
#
# `jogak scheduler` as it would run in a cluster, for tests: with the permissions and the
# configuration of deploy/jogak-scheduler.yaml and with a token of that service account. Only its
# Deployment is left out, whose pods nobody could start.

import json
import os
import re
import subprocess
import tempfile
import textwrap
import time

import control_plane

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = os.path.join(HERE, "..", "..", "deploy", "jogak-scheduler.yaml")
READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 20
READY = "everything has been seen"


class SchedulerProcess:
    """`with SchedulerProcess(binary, kubectl, kubeconfig) as scheduler:`; flags come after those of
    the manifest."""

    def __init__(self, binary, kubectl, kubeconfig, *flags):
        self.binary = binary
        self.command = [kubectl, "--kubeconfig", kubeconfig]
        self.admin = kubeconfig
        self.flags = flags
        self.folder = tempfile.TemporaryDirectory(prefix="jogak-scheduler-")
        self.log = self.path("log")
        self.process = None

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def kubectl(self, *args, stdin=None):
        return subprocess.run([*self.command, *args], input=stdin, text=True, check=True,
                              stdout=subprocess.PIPE).stdout

    def __enter__(self):
        with open(MANIFEST, encoding="utf-8") as file:
            documents = file.read().split("\n---\n")
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(
            text for text in documents if "\nkind: Deployment\n" not in text))
        self.write_config(next(text for text in documents if "\nkind: ConfigMap\n" in text))
        self.write_kubeconfig()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.binary, "scheduler", "--config", self.path("scheduler.yaml"),
                 "--kubeconfig", self.path("kubeconfig"), "--metrics-address", "127.0.0.1:0",
                 "--debug-port", "0", *self.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=control_plane.die_with_parent)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while READY not in self.output():
            if self.process.poll() is not None or time.monotonic() > deadline:
                output = self.output()
                self.__exit__()
                raise control_plane.NotStarted(f"jogak scheduler is not ready:\n{output}")
            time.sleep(0.05)
        return self

    def write_config(self, document):
        """The file in the ConfigMap, as a pod would see it."""
        text = re.search(r"\n  scheduler\.yaml: \|\n((?:    .*\n|\n)+)", document + "\n").group(1)
        with open(self.path("scheduler.yaml"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))

    def write_kubeconfig(self):
        """The administrator's, with the service account's token instead of the credentials."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o",
                                         "json"))
        token = self.kubectl("create", "token", "jogak-scheduler", "-n", "kube-system",
                             "--duration=2h").strip()
        config["users"][0]["user"] = {"token": token}
        with open(self.path("kubeconfig"), "w", encoding="utf-8",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(config, file)

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def died(self):
        return self.process.poll() is not None

    def stop(self):
        """Its exit code when it is asked to stop."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "killed, since it did not stop at SIGTERM"

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.stop()
        self.folder.cleanup()
