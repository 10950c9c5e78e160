#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# `jogak scheduler` ($JOGAK_BINARY) on a real control plane, for ctest: the scheduling cases of the
# suite with its name, under the permissions of deploy/jogak-scheduler.yaml and beside
# kube-scheduler where that is there. Exit code 77 (skipped) without a control plane. Further
# arguments go to run.py.

import os
import subprocess
import sys

import control_plane
from scheduler_process import SchedulerProcess

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def run_suite(plane, arguments):
    kubectl = control_plane.asset("kubectl")
    command = [sys.executable, os.path.join(HERE, "run.py"), "--kubectl", kubectl,
               "--kubeconfig", plane.kubeconfig, "--scheduler-name", "jogak",
               "--expect", "controllers,scheduler", "--filter", "scheduling_"]
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):  # where tools/run_tests.py looks for the count
        command += ["--xml", output.removeprefix("xml:") + "scheduler_e2e.xml"]
    with SchedulerProcess(os.environ["JOGAK_BINARY"], kubectl, plane.kubeconfig) as scheduler:
        code = subprocess.run(command + arguments).returncode
        stopped = scheduler.process.returncode if scheduler.died() else scheduler.stop()
        if stopped != 0:
            print(f"FAILED  jogak scheduler ended with {stopped}")
            code = 1
        if code != 0:
            print(scheduler.output()[-6000:])
        return code


def main():
    why = control_plane.missing()
    if not why and not control_plane.asset("kube-controller-manager"):
        why = f"{os.environ['KUBEBUILDER_ASSETS']} has no kube-controller-manager"
    if why:
        print(f"skipped: no real control plane here: {why}; {control_plane.HOW_TO_GET}")
        return SKIPPED
    control_plane.stop_when_told()
    try:
        with control_plane.ControlPlane() as plane:
            code = run_suite(plane, sys.argv[1:])
            if plane.died():
                print(f"FAILED  {', '.join(plane.died())} ended")
                code = 1
            if code != 0:
                print(plane.tails())
            return code
    except control_plane.NotStarted as reason:
        print(f"FAILED  {reason}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
