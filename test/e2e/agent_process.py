# SPDX-License-Identifier: Apache-2.0
#
# `jogak agent run` as it would run on a node, for tests: with the permissions of
# deploy/jogak-agent.yaml and a token of that service account, on a simulated machine whose faults
# a file stands for. Only its DaemonSet is left out, whose pods nobody could start.

import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = os.path.join(HERE, "..", "..", "deploy", "jogak-agent.yaml")
STOP_SECONDS_MAX = 20
MACHINE = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: e2e
gpus:
- {model: A100-SXM4-40GB, count: 4}
"""


def permissions_only():
    """The manifest's documents but for the DaemonSet."""
    with open(MANIFEST, encoding="utf-8") as file:
        documents = file.read().split("\n---\n")
    return "\n---\n".join(text for text in documents if "\nkind: DaemonSet\n" not in text)


def account_config(kubectl, has_tokens):
    """The administrator's kubeconfig, with a token of the service account in place of the
    credentials where the API server gives tokens."""
    config = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
    if has_tokens:
        token = kubectl("create", "token", "jogak-agent", "-n", "kube-system", "--duration=1h")
        config["users"][0]["user"] = {"token": token.strip()}
    return config


class AgentProcess:
    """`with AgentProcess(binary, config, node) as agent:`; config as of account_config()."""

    def __init__(self, binary, config, node, *flags):
        self.folder = tempfile.TemporaryDirectory(prefix="jogak-agent-")
        self.binary = binary
        self.node = node
        self.flags = flags
        self.process = None
        self.faults = self.path("faults")
        self.write("machine.yaml", MACHINE)
        self.write("faults", "")
        self.write("kubeconfig", json.dumps(config))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        """Whole or not at all: the agent may be reading it."""
        with open(self.path(name + ".new"), "w", encoding="utf-8",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        os.rename(self.path(name + ".new"), self.path(name))

    def __enter__(self):
        with open(self.path("log"), "wb") as log:
            self.process = subprocess.Popen(
                [self.binary, "agent", "run", "--nvml", "sim:" + self.path("machine.yaml"),
                 "--kubeconfig", self.path("kubeconfig"), "--node-name", self.node,
                 "--device-plugin=false", "--exporter-address", "off", "--kubelet-dir",
                 self.folder.name, "--mig-journal", self.path("journal.json"), *self.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=dict(os.environ, JOGAK_NVML_SIM_FAULTS=self.faults))
        return self

    def output(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()
