#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The node agent under a real kubelet and container runtime, on simulated GPUs: what test/kubelet
# checks with a stand-in. Needs root, $KUBEBUILDER_ASSETS with a kubelet beside the control plane, a
# runtime that knows CDI, runc, and a static busybox for images without a network. Exit code 77
# (skipped) says what is missing. See README.md.
# usage: real_node.py [--runtime containerd|crio] [CASE...]     (all when none is named)

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import isolation  # noqa: E402
import mps  # noqa: E402
import node as real_node  # noqa: E402
import cases  # noqa: E402
import daemonset  # noqa: E402
import runtimes  # noqa: E402
import topology  # noqa: E402
from isolation import control_plane  # noqa: E402

SKIPPED = 77
ALL = {case.__name__.removeprefix("case_"): case
       for case in cases.CASES + topology.CASES + mps.CASES + daemonset.CASES}


def run(runtime, wanted):
    control_plane.stop_when_told()
    isolation.set_up()
    with control_plane.ControlPlane() as plane:
        node = real_node.Node(plane, runtime)
        begin = time.monotonic()
        try:
            node.start()
        except AssertionError as failure:
            print(f"FAILED  start of the node: {failure}\n{node.tails()}")
            return 1
        print(f"# a node after {time.monotonic() - begin:.1f} s", flush=True)
        for name in wanted:
            begin = time.monotonic()
            try:
                ALL[name](node)
            except (AssertionError, OSError, LookupError, ValueError, AttributeError,
                    StopIteration, subprocess.SubprocessError) as failure:
                print(f"FAILED  {name}: {type(failure).__name__}: {failure}\n{node.tails()}")
                return 1
            print(f"ok      {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description="The node agent under a real kubelet.")
    parser.add_argument("--runtime", choices=list(runtimes.ALL), default="containerd",
                        help="what starts the containers (default: %(default)s)")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(ALL)}")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in ALL]
    if unknown:
        print(f"real_node.py: no case {', '.join(unknown)}; there are {', '.join(ALL)}")
        return 2
    if isolation.is_inside():
        return run(options.runtime, options.cases or list(ALL))
    why = real_node.missing(options.runtime)
    if why:
        print(f"skipped: no real node here: {why}")
        return SKIPPED
    return isolation.run_inside(os.path.abspath(__file__))


if __name__ == "__main__":
    sys.exit(main())
