#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The end-to-end suite against a playground of its own, for ctest: starts $JOGAK_BINARY, finds a
# kubectl with tools/kubectl.sh, and passes further arguments to run.py. Exit code 77 (skipped)
# when there is no kubectl.

import os
import subprocess
import sys

from playground import Playground

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def main():
    found = subprocess.run([os.path.join(HERE, "..", "..", "tools", "kubectl.sh")],
                           stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print("skipped: no kubectl, and none could be fetched")
        return SKIPPED
    command = [sys.executable, os.path.join(HERE, "run.py"), "--kubectl", found.stdout.strip(),
               "--expect", "controllers,simulated,scheduler,agents"]
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):  # where tools/run_tests.py looks for the count
        command += ["--xml", output.removeprefix("xml:") + "e2e.xml"]
    with Playground() as kubeconfig:
        return subprocess.run(command + ["--kubeconfig", kubeconfig] + sys.argv[1:]).returncode


if __name__ == "__main__":
    sys.exit(main())
