#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Two schedulers and a bare loop of binding calls on one real control plane, side by side in one
# run: pods a second, CPU time, memory. The control plane is that of the end-to-end tests
# (KUBEBUILDER_ASSETS with etcd, kube-apiserver, kubectl and kube-scheduler); all share the machine.
# Each round makes the pods first and starts the scheduler then; the clock runs from the first to
# the last binding that a watch shows.
# usage: bench/scheduler_bench.py --jogak PATH --load PATH [--nodes N] [--pods N] [--rounds N]

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "e2e"))
from control_plane import ControlPlane, asset, missing  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
GPUS = 8


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024


class Bench:
    def __init__(self, options, plane):
        self.options, self.plane = options, plane

    def load(self, *words):
        done = subprocess.run([self.options.load, self.plane.kubeconfig, *map(str, words)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"cluster_load {words}: {done.stdout}{done.stderr}")
        return float(re.search(r"([\d.]+)/s", done.stdout).group(1)) if "/s" in done.stdout else 0

    def prepare(self, scheduler):
        self.load("clear")
        self.load("nodes", self.options.nodes, GPUS)
        self.load("pods", self.options.pods, scheduler)

    def bare_loop(self):
        self.prepare("nobody")
        watch = self.stopwatch()  # its watch costs the server something, so it runs here as well
        rate = self.load("bind")
        watch.communicate()
        return {"rate": rate}

    def stopwatch(self):
        watch = subprocess.Popen(
            [self.options.load, self.plane.kubeconfig, "watch", str(self.options.pods)],
            stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        return watch

    def scheduler(self, name, start):
        self.prepare(name)
        watch = self.stopwatch()
        process = start()
        out, _ = watch.communicate()
        result = {"rate": float(re.search(r"([\d.]+)/s", out).group(1)),
                  "cpu": cpu_seconds(process.pid)}
        if watch.returncode != 0:
            sys.exit(f"not all pods were bound: {out}")
        time.sleep(2)  # what it does after the last binding counts as memory too
        result["mib"] = peak_mib(process.pid)
        process.terminate()
        process.wait(timeout=30)
        return result

    def start_jogak(self):
        return subprocess.Popen(
            [self.options.jogak, "scheduler",
             "--kubeconfig", self.plane.path("kube-scheduler.conf"),  # the same user for both
             "--leader-elect", "false", "-n", "jogak", "--policy", self.options.policy,
             "--metrics-address", "127.0.0.1:0", "--debug-port", "off", "--log-level", "warn"])

    def start_kube(self):
        self.plane.start_scheduler()
        return self.plane.processes.pop("kube-scheduler")


def median(results, key):
    return statistics.median(result[key] for result in results)


def main():
    parser = argparse.ArgumentParser(description="schedulers side by side on a real control plane")
    parser.add_argument("--jogak", required=True, help="the jogak executable")
    parser.add_argument("--load", required=True, help="the cluster_load_bench executable")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policy", default="jogak")
    parser.add_argument("--kube-qps", type=int, default=5000,
                        help="request limit of kube-scheduler's client")
    options = parser.parse_args()
    if missing() or not asset("kube-scheduler"):
        sys.exit(missing() or "KUBEBUILDER_ASSETS has no kube-scheduler")
    bare, jogak, kube = [], [], []
    with ControlPlane(controllers=False, scheduler=False) as plane:
        # Nobody else makes the account that every pod runs as.
        subprocess.run([asset("kubectl"), "--kubeconfig", plane.kubeconfig, "create",
                        "serviceaccount", "default"], check=True, stdout=subprocess.DEVNULL)
        # Its own default of 50 requests a second would be all that is measured.
        plane.scheduler_config = {"clientConnection": {
            "kubeconfig": plane.path("kube-scheduler.conf"),
            "qps": options.kube_qps, "burst": 2 * options.kube_qps}}
        bench = Bench(options, plane)
        for round_number in range(options.rounds):
            bare.append(bench.bare_loop())
            jogak.append(bench.scheduler("jogak", bench.start_jogak))
            kube.append(bench.scheduler("default-scheduler", bench.start_kube))
            print(f"round {round_number + 1}: bare {bare[-1]}, jogak {jogak[-1]}, "
                  f"kube-scheduler {kube[-1]}", flush=True)
    print(f"{options.nodes} nodes x {GPUS} GPUs, {options.pods} pods, medians of "
          f"{options.rounds} rounds")
    print(f"{'':16}{'pods/s':>10}{'CPU s':>10}{'MiB':>10}")
    print(f"{'bare loop':16}{median(bare, 'rate'):10.0f}")
    for name, results in (("jogak", jogak), ("kube-scheduler", kube)):
        print(f"{name:16}{median(results, 'rate'):10.0f}{median(results, 'cpu'):10.2f}"
              f"{median(results, 'mib'):10.0f}")
    print(f"jogak: {median(jogak, 'rate') / median(kube, 'rate'):.2f} x the pods/s of "
          f"kube-scheduler, {median(jogak, 'cpu') / median(kube, 'cpu'):.3f} of its CPU, "
          f"{median(jogak, 'mib') / median(kube, 'mib'):.3f} of its memory, "
          f"{median(jogak, 'rate') / median(bare, 'rate'):.2f} of the bare loop")


if __name__ == "__main__":
    main()
