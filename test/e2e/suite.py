# SPDX-License-Identifier: Apache-2.0
#
# What the cases of the end-to-end suite are made of: kubectl as a function, waiting for something
# to become true, and the list of cases. It knows a cluster by its kubeconfig and by nothing else.

import json
import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFESTS = os.path.join(HERE, "manifests")
EXAMPLES = os.path.join(HERE, "..", "..", "examples", "playground")
SIMULATED = "jogak.io/simulated=true"
WAIT_SECONDS = 60
# What a case may need of the cluster, and how a skipped one names it.
NEEDS = {"controllers": "the controllers of Kubernetes",
         "simulated": f"simulated nodes that are ready ({SIMULATED})",
         "scheduler": "a scheduler that answers to the name --scheduler-name",
         "agents": "simulated nodes whose agents tell of GPUs"}


class Failed(Exception):
    """A case says no; the text is what was expected and what came."""


class Skipped(Exception):
    """A case cannot be tried here; the text says why."""


class Kubectl:
    """One kubectl with one kubeconfig, in one namespace when `namespace` is given."""

    def __init__(self, program, kubeconfig, cache, namespace=None):
        self.program = program
        self.kubeconfig = kubeconfig
        self.cache = cache
        self.namespace = namespace

    def inside(self, namespace):
        return Kubectl(self.program, self.kubeconfig, self.cache, namespace)

    def command(self, args):
        command = [self.program, "--kubeconfig", self.kubeconfig, "--cache-dir", self.cache]
        if self.namespace:
            command += ["--namespace", self.namespace]
        return command + [str(arg) for arg in args]

    def run(self, *args, stdin=None, timeout=90, env=None):
        """(exit code, stdout, stderr)"""
        try:
            done = subprocess.run(
                self.command(args), input=stdin, capture_output=True, text=True,
                timeout=timeout, env=dict(os.environ, **env) if env else None)
        except subprocess.TimeoutExpired:
            raise Failed(f"kubectl {' '.join(args)} did not end in {timeout} s") from None
        return done.returncode, done.stdout, done.stderr

    def __call__(self, *args, **more):
        """stdout of a command that must succeed"""
        code, out, err = self.run(*args, **more)
        if code != 0:
            raise Failed(f"kubectl {' '.join(map(str, args))}: exit code {code}: {err or out}")
        return out

    def refused(self, *args, saying="", **more):
        """stderr of a command that must fail, and mention every word of `saying`"""
        code, out, err = self.run(*args, **more)
        told = f"kubectl {' '.join(map(str, args))}"
        if code == 0:
            raise Failed(f"{told} was not refused: {out}")
        for word in saying if isinstance(saying, (list, tuple)) else [saying]:
            if word.lower() not in (out + err).lower():
                raise Failed(f"{told}: expected '{word}' in: {out + err}")
        return out + err

    def json(self, *args):
        return json.loads(self(*args, "-o", "json"))

    def value(self, what, path):
        """One value by JSONPath, "" when it is absent."""
        return self("get", what, "-o", "jsonpath={" + path + "}")

    def names(self, *args):
        out = self("get", *args, "-o", "name")
        return sorted(line.split("/", 1)[1] for line in out.split())

    def apply(self, text):
        return self("apply", "-f", "-", stdin=text)

    def apply_file(self, name):
        return self("apply", "-f", os.path.join(MANIFESTS, name))

    def follow(self, *args):
        """A command that goes on, its output line by line in a temporary file."""
        return Following(self.command(args))


class Following:
    """A running kubectl; `text()` is what it has written so far."""

    def __init__(self, command):
        self.file = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdout=self.file, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.file.close()

    def text(self):
        # pread leaves the offset alone, which the running program shares
        return os.pread(self.file.fileno(), 1 << 22, 0).decode(errors="replace")


def check(claim, told):
    if not claim:
        raise Failed(told)


def equal(got, expected, what):
    if got != expected:
        raise Failed(f"{what}: expected {expected!r}, got {got!r}")


def contains(text, *words):
    for word in words:
        if word not in text:
            raise Failed(f"expected '{word}' in: {text}")


def eventually(what, claim, seconds=WAIT_SECONDS):
    """Asks again until `claim()` is true; returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        last = claim()
        if last:
            return last
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds} s in vain: {what}")
        time.sleep(0.1)


class Case:
    def __init__(self, function, needs, alone):
        self.name = function.__name__
        self.function = function
        self.needs = needs  # words of NEEDS with commas, "" when an API server alone is enough
        self.alone = alone  # changes nodes or fills them: no other case at the same time
        self.about = (function.__doc__ or "").strip()


CASES = []


def case(needs="", alone=False):
    """Marks a function(kubectl, cluster); kubectl works in a namespace made for this case."""

    def add(function):
        CASES.append(Case(function, needs, alone))
        return function

    return add
