#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Runs the recorded kubectl commands against `jogak up` and compares exit codes, stdout and stderr
# by the rules of kube-apiserver-1.36/README.md, section 5. Every transcript has its own server.
# usage: kubectl_transcripts.py [--version 1.36|1.32] [--jobs N] [TRANSCRIPT...]
"""Replays kubectl transcripts."""

import argparse
import concurrent.futures
import difflib
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "kube-apiserver-1.36")
sys.path[:0] = [GOLDEN, os.path.join(os.path.dirname(HERE), "e2e")]
import playground  # noqa: E402
import replay  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
TOKEN = "token-of-the-test"
# What the server starts with, as the transcripts bring their own nodes: what is there anyway.
NOTHING = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"
COMMAND_S = 60
REPEAT_S = 30
MEANWHILE_S = 0.8
KLOG = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n?", re.M)
# kubectl explain: whatever is not one of these is description, and descriptions may differ
EXPLAIN = re.compile(r"^(?:[A-Z]+:.*|\s*\S+\t<.+>.*|\s*enum: .*)$")
# where a version was recorded in the middle of a text
VERSION = re.compile(r'(resourceVersion"?:"?)\d+')
UNTOUCHED_OUTPUT = ("yaml", "json", "jsonpath", "go-template", "name")
KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: {url}
    insecure-skip-tls-verify: true
contexts:
- name: c
  context:
    cluster: c
    namespace: {namespace}
    user: u
current-context: c
users:
- name: u
  user:
    token: {token}
"""


def is_untouched(args):
    """Whether blanks count: in YAML, JSON and diffs, not in tables and descriptions."""
    if args[0] in ("diff", "edit", "explain"):
        return True
    for i, word in enumerate(args):
        value = word[len("-o"):].lstrip("=") if word.startswith("-o") else None
        if word == "-o" and i + 1 < len(args):
            value = args[i + 1]
        if word.startswith("--output="):
            value = word[len("--output="):]
        if value and value.split("=")[0] in UNTOUCHED_OUTPUT:
            return True
    return False


def squeezed(text):
    """Runs of blanks are two, indentation stays, trailing blanks go."""
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" ")
        indentation = line[:len(line) - len(body)]
        lines.append(indentation + re.sub(r" {2,}", "  ", body).rstrip())
    return "\n".join(lines)


def form_of(args, text):
    text = VERSION.sub(r"\1N", text)
    if args[0] == "explain":
        return "\n".join(line for line in text.split("\n") if EXPLAIN.match(line))
    return text if is_untouched(args) else squeezed(text)


class Transcript:
    def __init__(self, path, kubectl, url, folder):
        with open(path, encoding="utf-8") as file:
            self.header, *self.commands = [json.loads(line) for line in file]
        self.kubectl, self.server = kubectl, url.split("//")[1]
        self.name = os.path.basename(path).removesuffix(".jsonl")
        self.bindings = replay.Bindings(True, True)
        self.home = os.path.join(folder, "home")
        self.work = os.path.join(folder, "files")
        self.temporary = os.path.join(folder, "tmp")
        for folder in (self.home, self.work, self.temporary):
            os.mkdir(folder)
        for name, text in self.header["files"].items():
            with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
                file.write(text)
        config = os.path.join(self.home, "config")
        with open(config, "w", encoding="utf-8") as file:
            file.write(KUBECONFIG.format(url=url, token=TOKEN,
                                         namespace=self.header["namespace"]))
        self.environment = {"HOME": self.home, "KUBECONFIG": config, "TERM": "dumb", "TZ": "UTC",
                            "PATH": os.environ["PATH"], "TMPDIR": self.temporary}

    def run(self, args, stdin="", env=None):
        """(exit code, stdout, stderr)"""
        done = subprocess.run([self.kubectl, *args], input=stdin.encode(), cwd=self.work,
                              env={**self.environment, **(env or {})}, capture_output=True,
                              timeout=COMMAND_S, check=False)
        return done.returncode, self.plain(done.stdout), self.plain(done.stderr)

    def plain(self, output):
        text = output.decode("utf-8", "replace")
        for path, name in ((self.temporary, "<tmp>"), (self.work, "."),
                           (self.server, "<server>")):
            text = text.replace(path, name)
        return KLOG.sub("", text)

    def prepare(self):
        """The namespace with all that controllers put into it."""
        namespace = self.header["namespace"]
        self.expect(["create", "namespace", namespace])
        for what in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
            self.expect(["wait", "--for=create", what, "--timeout=20s"])

    def expect(self, args):
        code, out, err = self.run(args)
        if code != 0:
            raise RuntimeError(f"{self.name}: kubectl {' '.join(args)}: {out}{err}")

    def answer(self, command, args):
        others = None
        if "meanwhile" in command:
            others = threading.Thread(target=self.run_meanwhile, args=(command["meanwhile"],))
            others.start()
        answer = self.run(args, self.bindings.fill(command.get("stdin", "")), command.get("env"))
        if others is not None:
            others.join()
        return answer

    def run_meanwhile(self, commands):
        time.sleep(MEANWHILE_S)
        for args in commands:
            self.run([self.bindings.fill(word) for word in args])

    def differences(self, command, args, answer):
        code, out, err = answer
        found, bindings = [], self.bindings.copy()
        if code != command["exit"]:
            found.append(f"exit code {code}, recorded {command['exit']}: {err or out}")
        for name, golden, actual in (("stdout", command["stdout"], out),
                                     ("stderr", KLOG.sub("", command["stderr"]), err)):
            golden, actual = form_of(args, golden), form_of(args, actual)
            if not bindings.match_lines(golden, actual):
                lines = difflib.unified_diff(golden.split("\n"), actual.split("\n"), "recorded",
                                             name, lineterm="", n=1)
                found.append("\n".join(line[:400] for line in lines))
        return found, bindings

    def play(self):
        """What differs, as one text a command."""
        self.prepare()
        reports = []
        for command in self.commands:
            args = [self.bindings.fill(word) for word in command["args"]]
            deadline = time.monotonic() + (REPEAT_S if command.get("repeat") else 0)
            while True:
                found, bindings = self.differences(command, args, self.answer(command, args))
                if not found or time.monotonic() > deadline:
                    break
                time.sleep(0.2)
            self.bindings = bindings
            if found:
                title = f"{self.name} #{command['n']} kubectl {' '.join(args)}"
                reports.append(title + "\n    " + "\n".join(found).replace("\n", "\n    "))
        return reports


def play(path, kubectl):
    """(number of commands, reports). Watches are ended by a clock that starts before kubectl has:
    on a machine that is busy just then they see too little, and get a second try."""
    outcome = play_once(path, kubectl)
    is_timed = os.path.basename(path).startswith("watch.")
    return play_once(path, kubectl) if outcome[1] and is_timed else outcome


def play_once(path, kubectl):
    with tempfile.TemporaryDirectory(prefix="jogak-transcript-") as folder:
        start = os.path.join(folder, "objects.yaml")
        with open(start, "w", encoding="utf-8") as file:
            file.write(NOTHING)
        with playground.Playground("--no-kubelets", "--no-scheduler", "--token", TOKEN,
                                   "--cluster", start) as kubeconfig:
            with open(kubeconfig, encoding="utf-8") as file:
                url = re.search(r"server: *\"?(https://[^\s\"]+)", file.read()).group(1)
            transcript = Transcript(path, kubectl, url, folder)
            return len(transcript.commands), transcript.play()


def kubectl_of(*options):
    """The path of a kubectl, from tools/kubectl.sh; None, with its words on stderr, without one."""
    found = subprocess.run([os.path.join(ROOT, "tools", "kubectl.sh"), *options],
                           stdout=subprocess.PIPE, check=False)
    return found.stdout.decode().strip() if found.returncode == 0 else None


def selected(version, names):
    paths = sorted(glob.glob(os.path.join(GOLDEN, "kubectl", f"*.kubectl-{version}.jsonl")))
    return [p for p in paths if not names or os.path.basename(p).split(".")[0] in names]


def main():
    parser = argparse.ArgumentParser(description="replays kubectl transcripts on jogak up")
    parser.add_argument("--version", choices=["1.36", "1.32"], action="append",
                        help="only those of this kubectl; all when not given")
    parser.add_argument("--jobs", type=int, default=4, help="transcripts at once")
    parser.add_argument("names", metavar="TRANSCRIPT", nargs="*")
    options = parser.parse_args()

    tasks, skipped = [], []
    for version in options.version or ["1.36", "1.32"]:
        # 1.36 is fetched when it is missing; the older one is a second opinion
        rest = [] if version == "1.36" else ["--no-download"]
        kubectl = kubectl_of("--exact", version, *rest)
        paths = selected(version, options.names)
        if kubectl is None:
            skipped.append(f"skipped: {len(paths)} transcripts of kubectl {version}, none is here")
        else:
            tasks += [(path, kubectl) for path in paths]
    differing = commands = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for count, reports in pool.map(lambda task: play(*task), tasks):
            commands += count
            differing += len(reports)
            for report in reports:
                print(report)
    for line in skipped:
        print(line)
    print(commands, "commands compared,", differing, "differ")
    return 1 if differing else 0 if commands else 77


if __name__ == "__main__":
    sys.exit(main())
