#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The end-to-end suite against a real control plane of its own, for ctest: starts what
# $KUBEBUILDER_ASSETS holds and passes further arguments to run.py. Exit code 77 (skipped) when the
# programs are not there. Cases that need a kubelet are skipped, since none is there.

import os
import subprocess
import sys

import control_plane

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def main():
    why = control_plane.missing()
    if why:
        print(f"skipped: no real control plane here: {why}; {control_plane.HOW_TO_GET}")
        return SKIPPED
    command = [sys.executable, os.path.join(HERE, "run.py"),
               "--kubectl", control_plane.asset("kubectl")]
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):  # where tools/run_tests.py looks for the count
        command += ["--xml", output.removeprefix("xml:") + "real_e2e.xml"]
    control_plane.stop_when_told()
    try:
        with control_plane.ControlPlane() as plane:
            expected = [word for word, is_there in (
                ("controllers", plane.controllers), ("scheduler", plane.scheduler)) if is_there]
            code = subprocess.run(
                command + ["--kubeconfig", plane.kubeconfig, "--expect", ",".join(expected)] +
                sys.argv[1:]).returncode
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
