#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Sends the same random small workloads to two schedulers on one control plane and compares every
# verdict: bound, waiting with which text, or preempting whom. The two worlds of a workload are the
# same but for a letter in their names and exist side by side (random_workload.py says why the texts
# too must agree). Pods come one at a time; where the two schedulers chose different nodes, which
# equal scores allow, the second world is put right after the first before the next pod comes. A
# workload that differs is built anew up to twice, since a verdict may rest on a cache that had not
# heard of everything yet.
# usage: test/e2e/compare_schedulers.py [--seed N] [--workloads N] [--only I] [--kubeconfig FILE]
#          [--other-name NAME] [--start COMMAND...]
#   Without --kubeconfig it starts the control plane of $KUBEBUILDER_ASSETS. COMMAND starts the
#   other scheduler, with {kubeconfig} replaced; without it "--other-name jogak" starts
#   `$JOGAK_BINARY scheduler` with the policy kube, and "--other-name itself" compares
#   kube-scheduler with itself.

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

import control_plane
from direct import Api, Follower, Refused
from random_workload import (PRIORITY_CLASSES, WORLD, Workload, namespace, other_namespace,
                             storage_classes)
from scheduler_process import SchedulerProcess

SKIPPED = 77
VERDICT_SECONDS_MAX = 20
VICTIMS_SECONDS = 0.15
DIFFER_SECONDS = 4
SETTLE_SECONDS = (0.0, 0.5, 2.0)  # before each pod, by attempt
NO_CLAIMS = " no new claims to deallocate,"
# Where volumes keep a pod off before any node is looked at, kube-scheduler 1.36 ends its text so by
# mistake; its own text of preemption would follow there.
MISTAKE = ". not found"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
FORCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
         "propagationPolicy": "Background"}
WORLDS = ("a", "b")


class Difference(Exception):
    """The two schedulers do not agree; the text says about what."""


class Unclear(Exception):
    """A verdict did not come in time."""


def same(a, b):
    """Whether two verdicts agree; the node of a bound pod may be another one."""
    if a[2].endswith(MISTAKE):
        b = b[0], b[1], b[2].split(NO_CLAIMS)[0] + MISTAKE.removeprefix(".")
    return (a[0], a[2]) == (b[0], b[2]) and (a[0] != "preempts" or a[1] == b[1])


def condition(pod, kind):
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == kind), {})


class Comparison:
    """The two worlds on one control plane."""

    def __init__(self, api, schedulers, is_verbose):
        self.api = api
        self.schedulers = dict(zip(WORLDS, schedulers))
        self.is_verbose = is_verbose
        self.pods = Follower(api, "/api/v1/pods?labelSelector=cmp%3Dyes")
        self.claims = Follower(api, "/api/v1/persistentvolumeclaims")
        self.counts = {"bound": 0, "waits": 0, "preempts": 0, "provisions": 0, "refused": 0}
        self.same_node = 0
        self.texts = set()

    # Making and unmaking.

    def prepare(self):
        for world in WORLDS:
            for name, team in ((namespace(world), "own"), (other_namespace(world), "other")):
                self.api.create("/api/v1/namespaces", {
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": {"team": team, "world": world}}},
                    allow=(409,))
            for item in storage_classes(world):
                self.api.create("/apis/storage.k8s.io/v1/storageclasses", item, allow=(409,))
        for name, (value, policy) in PRIORITY_CLASSES.items():
            self.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value, "preemptionPolicy": policy},
                allow=(409,))
        deadline = time.monotonic() + 30
        for world in WORLDS:
            for name in (namespace(world), other_namespace(world)):
                # without a controller manager nobody makes it, and pods are refused
                path = f"/api/v1/namespaces/{name}/serviceaccounts"
                while not self.api.get(path)["items"]:
                    if time.monotonic() > deadline:
                        raise Unclear("no service accounts: no controllers are there")
                    time.sleep(0.05)

    def clean(self):
        for world in WORLDS:
            for name in (namespace(world), other_namespace(world)):
                self.api.delete(f"/api/v1/namespaces/{name}/pods", body=FORCE)
            base = f"/api/v1/namespaces/{namespace(world)}"
            self.api.delete(base + "/persistentvolumeclaims")
            self.api.delete(f"/apis/policy/v1/namespaces/{namespace(world)}/poddisruptionbudgets")
        self.api.delete("/api/v1/persistentvolumes")
        if not self.pods.wait(lambda pods: not pods, 20):
            raise Unclear("pods of the workload before do not go")
        ours = [namespace(world) for world in WORLDS]
        if not self.claims.wait(lambda claims: all(key[0] not in ours for key in claims), 20):
            raise Unclear("claims of the workload before do not go")
        self.api.delete(f"/api/v1/nodes?labelSelector={WORLD.replace('/', '%2F')}")

    def build(self, workload):
        for world in WORLDS:
            for node in workload.nodes:
                self.api.create("/api/v1/nodes", workload.node_object(world, node))
            base = namespace(world)
            for budget in workload.budgets:
                self.api.create(f"/apis/policy/v1/namespaces/{base}/poddisruptionbudgets",
                                workload.budget_object(budget))
            for volume in workload.volumes:
                self.api.create("/api/v1/persistentvolumes",
                                workload.volume_object(world, volume))
            for claim in workload.claims:
                self.api.create(f"/api/v1/namespaces/{base}/persistentvolumeclaims",
                                workload.claim_object(world, claim))
            for pod in workload.running:
                if self.create_pod(workload, world, pod, f"{world}-{pod['node']}"):
                    self.start_pod(workload, world, pod)
        self.wait_for_budgets(workload)

    def wait_for_budgets(self, workload):
        deadline = time.monotonic() + VERDICT_SECONDS_MAX
        for world in WORLDS:
            for budget in workload.budgets:
                path = (f"/apis/policy/v1/namespaces/{namespace(world)}/poddisruptionbudgets/"
                        f"{budget['app']}/status")
                while True:
                    status = self.api.get(path).get("status", {})
                    if (status.get("observedGeneration") and
                            status.get("disruptionsAllowed") == workload.allowed(budget)):
                        break
                    if time.monotonic() > deadline:
                        raise Unclear(f"budget {budget} of {world}: {status}, expected "
                                      f"{workload.allowed(budget)} allowed")
                    time.sleep(0.02)

    def pods_path(self, workload, world, pod, tail=""):
        return f"/api/v1/namespaces/{workload.pod_namespace(world, pod)}/pods{tail}"

    def create_pod(self, workload, world, pod, node=None):
        """False when the API server refuses it as invalid, which is no scheduler's business."""
        body = workload.pod_object(world, pod, self.schedulers[world], node)
        body["metadata"]["labels"]["cmp"] = "yes"
        return self.api.create(self.pods_path(workload, world, pod), body,
                               allow=(400, 422)) is not None

    def start_pod(self, workload, world, pod):
        """What a kubelet would write: it runs, since when, and is ready."""
        self.api.patch(self.pods_path(workload, world, pod, f"/{pod['name']}/status"), {
            "status": {"phase": "Running", "startTime": pod["start"], "conditions": [
                {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]}})

    def remove_pod(self, workload, world, pod):
        self.api.delete(self.pods_path(workload, world, pod, f"/{pod['name']}"), body=FORCE,
                        allow=(404,))
        key = workload.pod_namespace(world, pod), pod["name"]
        if self.pods.wait(lambda pods: key not in pods, 10) is False:
            raise Unclear(f"pod {key} does not go")

    # Verdicts.

    def victims(self, objects, world):
        names = (namespace(world), other_namespace(world))
        return sorted((key[0].replace(f"cmp-{world}", "cmp"), key[1])
                      for key, pod in objects.items()
                      if key[0] in names and pod["metadata"].get("deletionTimestamp"))

    def verdict(self, objects, workload, world, pod):
        """What is known of the pod by now, None when nothing. Names of the world are taken out."""
        found = objects.get((workload.pod_namespace(world, pod), pod["name"]))
        if found is None:
            return None
        if found["spec"].get("nodeName"):
            return "bound", found["spec"]["nodeName"].removeprefix(world + "-"), ""
        if pod["claim"] and pod["claim"]["kind"] == "dynamic":
            claim = self.claims.objects.get((namespace(world), pod["claim"]["name"]), {})
            node = claim.get("metadata", {}).get("annotations", {}).get(SELECTED_NODE)
            if node:
                return "provisions", node.removeprefix(world + "-"), ""
        said = condition(found, "PodScheduled")
        if said.get("reason") == "Unschedulable":
            nominated = found["status"].get("nominatedNodeName", "").removeprefix(world + "-")
            if nominated:  # what is said of preemption changes when it is tried again meanwhile
                text = said["message"].split(" preemption:")[0].removesuffix(NO_CLAIMS)
                return "preempts", nominated, f"{text} | {self.victims(objects, world)}"
            return "waits", "", said["message"]
        if said.get("reason") == "SchedulerError":
            return "error", "", said["message"]
        return None

    def verdicts(self, workload, pod):
        """Both verdicts once they agree, or the last that were seen."""
        seen = {}

        def agree(objects):
            for world in WORLDS:
                seen[world] = self.verdict(objects, workload, world, pod)
            a, b = seen["a"], seen["b"]
            # victims are told one by one after the nomination
            return (a is not None and b is not None and same(a, b) and
                    not (a[0] == "preempts" and a[2].endswith("[]")))

        deadline = time.monotonic() + VERDICT_SECONDS_MAX
        differ_until = None
        while True:
            if self.pods.wait(agree, 0.2):
                # more victims may still be on their way
                if seen["a"][0] != "preempts" or self.pods.wait(
                        lambda objects: not agree(objects), VICTIMS_SECONDS) is False:
                    break
            elif seen["a"] is None or seen["b"] is None:
                if time.monotonic() > deadline:
                    raise Unclear(f"no verdict: a {seen['a']}, b {seen['b']}")
            elif differ_until is None:  # long enough for a try after the first back-off
                differ_until = time.monotonic() + DIFFER_SECONDS
            elif time.monotonic() > differ_until:
                break
        return seen["a"], seen["b"]

    # One workload.

    def step(self, workload, pod, settle):
        if settle:
            time.sleep(settle)
        made = [self.create_pod(workload, world, pod) for world in WORLDS]
        if not all(made):
            if any(made):
                raise Difference(f"pod {pod['name']}: only one world's API accepts it")
            self.counts["refused"] += 1
            return
        a, b = self.verdicts(workload, pod)
        if not same(a, b):
            raise Difference(f"pod {pod['name']}:\n  {self.schedulers['a']}: {a}\n"
                             f"  {self.schedulers['b']}: {b}")
        self.counts[a[0]] = self.counts.get(a[0], 0) + 1
        self.texts.add(a[2].split(" | ")[0])
        self.same_node += a[1] == b[1] and a[0] == "bound"
        if self.is_verbose:
            print(f"  {pod['name']}: {a} {b[1]}")
        if a[0] == "preempts":
            self.finish_preemption(workload, pod)
        elif a[0] == "bound":
            self.level(workload, pod, a[1], b[1])
        else:
            self.remove_both(workload, pod)

    def remove_both(self, workload, pod):
        for world in WORLDS:
            self.remove_pod(workload, world, pod)

    def finish_preemption(self, workload, pod):
        for world in WORLDS:
            for space, name in self.victims(dict(self.pods.objects), world):
                path = f"/api/v1/namespaces/{space.replace('cmp', f'cmp-{world}', 1)}/pods/{name}"
                self.api.delete(path, body=FORCE, allow=(404,))

        def placed(objects):
            found = [self.verdict(objects, workload, world, pod) for world in WORLDS]
            kinds = {verdict and verdict[0] for verdict in found}
            return found if kinds in ({"bound"}, {"provisions"}) else None

        found = self.pods.wait(placed, VERDICT_SECONDS_MAX)
        if not found:
            told = [self.verdict(self.pods.objects, workload, world, pod) for world in WORLDS]
            raise Difference(f"pod {pod['name']} after its victims are gone: {told}")
        if found[0][0] == "provisions":
            self.remove_both(workload, pod)
            return
        self.level(workload, pod, found[0][1], found[1][1])

    def level(self, workload, pod, node_a, node_b):
        """The second world as the first, and both as a kubelet would have them."""
        if node_a != node_b:
            self.remove_pod(workload, "b", pod)
            self.create_pod(workload, "b", pod, f"b-{node_a}")
        for world in WORLDS:
            self.start_pod(workload, world, pod)
        workload.running.append(dict(pod, node=node_a))
        alive = {name for _, name in self.pods.objects}
        workload.running = [p for p in workload.running if p["name"] in alive]
        self.wait_for_budgets(workload)

    def run(self, seed, number):
        """Raises Difference when three attempts differ."""
        for attempt, settle in enumerate(SETTLE_SECONDS):
            workload = Workload(seed, number)
            before = dict(self.counts), self.same_node
            try:
                self.clean()
                self.build(workload)
                for pod in workload.pending:
                    self.step(workload, pod, settle)
                    if pod["claim"] and workload.volumes:
                        break  # which volume was taken may differ with the node: start afresh
                return attempt
            except (Difference, Unclear) as reason:
                self.counts, self.same_node = before
                if self.is_verbose:
                    print(f"  attempt {attempt}: {reason}")
                if attempt + 1 == len(SETTLE_SECONDS):
                    raise
        return None

    def describe(self, seed, number):
        """The workload, to look at by hand."""
        workload = Workload(seed, number)
        items = [workload.node_object("a", node) for node in workload.nodes]
        items += [workload.budget_object(budget) for budget in workload.budgets]
        items += [workload.volume_object("a", volume) for volume in workload.volumes]
        items += [workload.claim_object("a", claim) for claim in workload.claims]
        items += [workload.pod_object("a", pod, "x", f"a-{pod['node']}")
                  for pod in workload.running]
        items += [workload.pod_object("a", pod, "x") for pod in workload.pending]
        return "\n".join(json.dumps(item) for item in items)


def compare(api, options):
    comparison = Comparison(api, ("default-scheduler", options.other_name), options.verbose)
    comparison.prepare()
    numbers = [options.only] if options.only is not None else range(options.workloads)
    different, again, tried, begin = [], 0, 0, time.monotonic()
    for number in numbers:
        tried += 1
        try:
            again += comparison.run(options.seed, number) > 0
        except (Difference, Unclear) as reason:
            different.append(number)
            print(f"DIFFERENT workload {number}: {reason}\n  again: test/e2e/compare_schedulers.py "
                  f"--seed {options.seed} --only {number} --other-name {options.other_name} "
                  f"--verbose\n{comparison.describe(options.seed, number)}", flush=True)
            if len(different) >= options.stop_after:
                break
    comparison.clean()
    counts = comparison.counts
    print(f"{tried - len(different)} of {tried} workloads agree (seed "
          f"{options.seed}, {time.monotonic() - begin:.0f} s, {again} after another attempt); "
          f"pods: {', '.join(f'{count} {name}' for name, count in counts.items())}; "
          f"{comparison.same_node} of {counts['bound']} bound to the same node; "
          f"{len(comparison.texts)} different texts")
    return 1 if different else 0


class Command:
    """The other scheduler, started by a command line."""

    def __init__(self, words, kubeconfig):
        self.words = [word.replace("{kubeconfig}", kubeconfig) for word in words]
        self.log = tempfile.TemporaryFile(mode="w+b")
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
            preexec_fn=control_plane.die_with_parent)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def died(self):
        return self.process.poll() is not None

    def output(self):
        return os.pread(self.log.fileno(), 1 << 22, 0).decode(errors="replace")


def other_scheduler(options, kubectl, kubeconfig):
    """What starts it, None when it runs already."""
    if options.start:
        return Command(options.start, kubeconfig)
    if options.other_name == "jogak" and not options.kubeconfig:
        binary = os.environ.get("JOGAK_BINARY")
        if not binary:
            sys.exit("JOGAK_BINARY is not set; it names the jogak executable")
        return SchedulerProcess(binary, kubectl, kubeconfig, "--policy", "kube")
    return None


def with_other(options, kubectl, kubeconfig):
    other = other_scheduler(options, kubectl, kubeconfig)
    with other or contextlib.nullcontext():
        with Api(kubectl, kubeconfig) as api:
            code = compare(api, options)
        if other and other.died():
            print("FAILED  the other scheduler ended by itself")
            code = 1
        if code and other:
            print(other.output()[-4000:])
        return code


def main():
    parser = argparse.ArgumentParser(description="two schedulers, the same workloads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--only", type=int, help="this workload alone")
    parser.add_argument("--stop-after", type=int, default=5, help="differences, then stop")
    parser.add_argument("--kubeconfig", help="a control plane that runs already")
    parser.add_argument("--kubectl", help="the kubectl to use")
    parser.add_argument("--other-name", default="jogak", help="the other's schedulerName")
    parser.add_argument("--other-profile", type=json.loads, default={}, metavar="JSON",
                        help="with --other-name itself: fields of its profile, to see that what "
                        "differs is found")
    parser.add_argument("--verbose", action="store_true", help="print each verdict")
    parser.add_argument("--start", nargs=argparse.REMAINDER, help="starts the other scheduler")
    options = parser.parse_args()
    kubectl = options.kubectl or control_plane.asset("kubectl") or "kubectl"
    if options.kubeconfig:
        return with_other(options, kubectl, options.kubeconfig)
    why = control_plane.missing()
    if not why and not control_plane.asset("kube-scheduler"):
        why = f"KUBEBUILDER_ASSETS: {os.environ['KUBEBUILDER_ASSETS']} has no kube-scheduler"
    if why:
        print(f"skipped: nothing to compare with: {why}; {control_plane.HOW_TO_GET}")
        return SKIPPED
    config = None
    if options.other_name == "itself":
        config = {"profiles": [{"schedulerName": "default-scheduler"},
                               {"schedulerName": "itself", **options.other_profile}]}
    control_plane.stop_when_told()
    try:
        with control_plane.ControlPlane(scheduler_config=config) as plane:
            return with_other(options, kubectl, plane.kubeconfig)
    except (control_plane.NotStarted, Refused) as reason:
        print(f"FAILED  {reason}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
