#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program of a thread sanitizer build and judges its reports one by one. gRPC, protobuf and
# abseil come compiled without the sanitizer, so what their threads hand each other looks like a
# race. test/tsan.supp hides every report with a frame of theirs anywhere, and with it races of code
# that they call. Here a report is let pass only where one of the two accesses is made by their own
# code (the innermost frame that is not the standard library's). Else it is a race: exit code 1.
"""tools/tsan_run.py build/tsan/test/jogak_test_kubelet --gtest_filter='DevicePlugin*'"""

import os
import re
import subprocess
import sys
import tempfile

STANDARD = re.compile(r"libsanitizer|/include/c\+\+/|libstdc\+\+|libc\.so|libtsan")
LIBRARIES = re.compile(
    r"/include/(grpcpp|google|absl)/|lib(grpc|gpr|protobuf|absl|upb|address_sorting)|\.pb\.(h|cc)")
ACCESS = re.compile(r"^  .*(?:[Ww]rite|[Rr]ead) of size \d+ at", re.M)


def is_of_libraries(stack):
    """Whether the innermost frame that says anything is theirs; one that cannot be read is not."""
    for frame in re.findall(r"^\s+#\d+ (.*)$", stack, re.M):
        if not STANDARD.search(frame):
            return bool(LIBRARIES.search(frame))
    return False


def accesses(report):
    """The stacks of the accesses, without those of where memory and threads were made."""
    stacks = []
    for part in re.split(r"\n\s*\n", report):
        if ACCESS.search(part):
            stacks.append(part)
    return stacks


def is_let_pass(report):
    stacks = accesses(report)
    if "data race" not in report:
        return bool(LIBRARIES.search(report))  # the order of their locks, a thread of theirs
    return any(is_of_libraries(stack) for stack in stacks)


def main(words):
    if not words:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment["TSAN_OPTIONS"] = f"log_path={folder}/report history_size=4 exitcode=0"
        code = subprocess.run(words, env=environment, check=False).returncode
        reports = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                reports += [r for r in file.read().split("=" * 18) if "WARNING: Thread" in r]
    ours = [report for report in reports if not is_let_pass(report)]
    for report in ours:
        print(report)
    print(f"{len(reports)} reports of the thread sanitizer, {len(ours)} of them of code of ours")
    return code or (1 if ours else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
