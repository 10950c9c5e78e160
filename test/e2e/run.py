#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The end-to-end suite: kubectl against whatever is behind a kubeconfig. One line a case, a summary,
# exit code 0 when no case failed and 1 otherwise. It works in namespaces of its own (e2e-*) and
# removes what it made. Cases that need simulated nodes, controllers or a scheduler are skipped
# where there are none, unless --expect says that they must be there. `--jobs` cases run at a time,
# except those that change nodes.
# usage: test/e2e/run.py --kubeconfig FILE [--kubectl PATH] [--filter X] [--list] [--jobs N]
#                        [--scheduler-name NAME] [--expect WORD,...]

import argparse
import concurrent.futures
import json
import random
import shutil
import sys
import tempfile
import time
import xml.sax.saxutils

import case_agent  # noqa: F401  the cases register themselves
import case_deploy  # noqa: F401
import case_gpus  # noqa: F401
import case_kubectl  # noqa: F401
import case_nodes  # noqa: F401
import case_objects  # noqa: F401
import case_owners  # noqa: F401
import case_scheduling  # noqa: F401
import case_volumes  # noqa: F401
import case_workloads  # noqa: F401
from suite import CASES, NEEDS, SIMULATED, Failed, Kubectl, Skipped, eventually


class Cluster:
    """What can be expected of the cluster, and the names made for it."""

    def __init__(self, kubectl, scheduler_name):
        self.kubectl = kubectl
        self.scheduler_name = scheduler_name
        self.suffix = f"{random.SystemRandom().randrange(36 ** 4):x}"
        self.simulated = self.ready_simulated_nodes()
        self.has_agents = bool(kubectl.json("get", "nodes", "-l",
                                            f"{SIMULATED},nvidia.com/gpu.product")["items"])
        self.has_controllers = self.gives_service_accounts()
        self.has_scheduler = self.looks_at_pods()

    def ready_simulated_nodes(self):
        """Only a kubelet makes a node ready: without one pods would wait for ever."""
        nodes = self.kubectl.json("get", "nodes", "-l", SIMULATED)["items"]
        return sorted(node["metadata"]["name"] for node in nodes if any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in node.get("status", {}).get("conditions", [])))

    def gives_service_accounts(self):
        """Only a controller manager gives a new namespace its default service account."""
        name = f"e2e-probe-{self.suffix}"
        self.kubectl("create", "namespace", name)
        try:
            return bool(eventually(
                "a default service account",
                lambda: self.kubectl.names("serviceaccounts", "-n", name), seconds=5))
        except Failed:
            return False
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def looks_at_pods(self):
        """Only a scheduler of that name says of a pod that fits nowhere that it fits nowhere."""
        name = f"e2e-probe-{self.suffix}"
        pod = {"spec": {"schedulerName": self.scheduler_name,
                        "nodeSelector": {"e2e.jogak.io/nowhere": "true"},
                        "automountServiceAccountToken": False}}
        default = self.kubectl.inside("default")
        if default.run("run", name, "--image=example/p", "--overrides", json.dumps(pod))[0] != 0:
            return False  # pods are refused where there are no service accounts
        try:
            return default.run("wait", "--for=condition=PodScheduled=False", "pod/" + name,
                               "--timeout=10s")[0] == 0
        finally:
            default("delete", "pod", name, "--now", "--wait=false")

    def has(self, need):
        return bool({"controllers": self.has_controllers, "simulated": self.simulated,
                     "scheduler": self.has_scheduler, "agents": self.has_agents}[need])

    def lacks(self, needs):
        """What of these comma-separated words is not here, as a reason; "" when all is."""
        lacking = [NEEDS[need] for need in needs.split(",") if need and not self.has(need)]
        return f"needs {', '.join(lacking)}" if lacking else ""

    def simulated_node(self):
        """A simulated node without taints, that pods can be sent to by its host name."""
        for node in self.kubectl.json("get", "nodes", "-l", SIMULATED)["items"]:
            if not node["spec"].get("taints") and not node["spec"].get("unschedulable"):
                return node["metadata"]["name"]
        raise Skipped("needs a simulated node without taints")


def run_case(case, cluster, kubectl):
    """("ok"|"skipped"|"FAILED", why, seconds)"""
    why = cluster.lacks(case.needs)
    if why:
        return "skipped", why, 0.0
    namespace = f"e2e-{case.name.replace('_', '-')}"[:52].rstrip("-") + "-" + cluster.suffix
    start = time.monotonic()
    outcome, why = "ok", ""
    try:
        kubectl("create", "namespace", namespace)
        if cluster.has_controllers:  # pods are refused before
            eventually("the default service account",
                       lambda: kubectl.names("serviceaccounts", "-n", namespace), seconds=20)
        case.function(kubectl.inside(namespace), cluster)
    except Skipped as reason:
        outcome, why = "skipped", str(reason)
    except Failed as reason:
        outcome, why = "FAILED", str(reason)
    except Exception as reason:  # an answer of another shape than expected fails the case alone
        outcome, why = "FAILED", f"{type(reason).__name__}: {reason}"
    # Running sleeps need no 30 s to end here, so that the next case finds the nodes empty.
    kubectl.run("delete", "pods", "--all", "-n", namespace, "--now", "--wait=false")
    kubectl.run("delete", "namespace", namespace, "--wait=false")
    return outcome, why, time.monotonic() - start


def namespaces_left(cluster, kubectl):
    ours = [n for n in kubectl.names("namespaces") if n.endswith("-" + cluster.suffix)]
    if not cluster.has_controllers:
        return []  # nobody is there who could finish the deletion
    return ours


def write_xml(path, results):
    """In the shape of gtest, which tools/run_tests.py counts."""
    quote = xml.sax.saxutils.quoteattr
    lines = ["<testsuites><testsuite name='e2e'>"]
    for name, (outcome, why, seconds) in results.items():
        inner = {"FAILED": f"<failure message={quote(why)}/>", "skipped": "<skipped/>"}
        lines.append(f"<testcase name={quote(name)} time='{seconds:.3f}'>"
                     f"{inner.get(outcome, '')}</testcase>")
    lines.append("</testsuite></testsuites>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def report(name, result, results):
    outcome, why, seconds = result
    results[name] = result
    line = f"{outcome:8}{name}  {seconds:.1f} s"
    print(line + (f": {' '.join(why.split())[:600]}" if why else ""), flush=True)


def run_all(cases, cluster, kubectl, jobs):
    results = {}
    together = [case for case in cases if not case.alone]
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        running = {pool.submit(run_case, case, cluster, kubectl): case for case in together}
        for done in concurrent.futures.as_completed(running):
            report(running[done].name, done.result(), results)
    for case in cases:
        if case.alone:
            report(case.name, run_case(case, cluster, kubectl), results)
    return results


def main():
    parser = argparse.ArgumentParser(description="end-to-end suite for a Kubernetes API")
    parser.add_argument("--kubeconfig", help="how to get in")
    parser.add_argument("--kubectl", default="kubectl", help="the kubectl to use")
    parser.add_argument("--filter", default="", help="only cases with this in their names")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--jobs", type=int, default=3, help="cases at a time")
    parser.add_argument("--scheduler-name", default="default-scheduler", metavar="NAME",
                        help="the schedulerName of the pods of scheduling cases")
    parser.add_argument("--expect", default="", metavar="WORD,...",
                        help=f"fail when the cluster lacks one of: {', '.join(NEEDS)}")
    parser.add_argument("--xml", help="also write the results to this file")
    options = parser.parse_args()
    cases = [case for case in CASES if options.filter in case.name]
    if options.list:
        for case in cases:
            print(f"{case.name:32}{case.needs or '-':22} {case.about}")
        return 0
    if not options.kubeconfig:
        parser.error("--kubeconfig is needed")
    unknown = set(options.expect.split(",")) - set(NEEDS) - {""}
    if unknown:
        parser.error(f"--expect: unknown {', '.join(unknown)}; use {', '.join(NEEDS)}")
    if not cases:
        parser.error(f"no case has '{options.filter}' in its name")

    cache = tempfile.mkdtemp(prefix="e2e-kubectl-")
    kubectl = Kubectl(options.kubectl, options.kubeconfig, cache)
    try:
        cluster = Cluster(kubectl, options.scheduler_name)
        if cluster.lacks(options.expect):
            raise Failed(f"the cluster {cluster.lacks(options.expect)}")
        results = run_all(cases, cluster, kubectl, options.jobs)
        outcomes = [outcome for outcome, _, _ in results.values()]
        try:
            eventually("the namespaces of the suite are gone",
                       lambda: not namespaces_left(cluster, kubectl))
        except Failed as reason:
            outcomes.append("FAILED")
            print(f"FAILED  {reason}: {namespaces_left(cluster, kubectl)}")
    except Failed as reason:
        print(f"FAILED  {reason}")
        return 1
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    if options.xml:
        write_xml(options.xml, results)
    print(f"{outcomes.count('ok')} passed, {outcomes.count('FAILED')} failed, "
          f"{outcomes.count('skipped')} skipped")
    return 1 if "FAILED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
