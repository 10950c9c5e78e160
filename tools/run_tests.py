#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Runs ctest in a build folder and ends with one plain line, "N passed, N failed". A gtest
# executable counts as its cases (from the XML it writes), any other test (fuzz smoke, tidy) as one,
# skipped when it ends with the code that says so; a gtest executable that died without writing XML
# counts as one failure.
# usage: tools/run_tests.py BUILD_DIR [ctest options]

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def gtest_counts(path):
    """(passed, failed, skipped) of one XML file of gtest; disabled cases count as skipped."""
    root = ElementTree.parse(path).getroot()
    cases = root.findall("testsuite/testcase")
    failed = sum(1 for case in cases if case.find("failure") is not None)
    skipped = sum(
        1
        for case in cases
        if case.get("status") == "notrun" or case.find("skipped") is not None
    )
    return len(cases) - failed - skipped, failed, skipped


def skip_reason(test):
    """What ctest says of a test that did not run; "" when it ran."""
    skipped = test.find("skipped")
    return "" if skipped is None else skipped.get("message", "")


def skip_line(test):
    """Its name and what it said about why it cannot run here."""
    said = (test.findtext("system-out") or "").strip().splitlines()
    return f"{test.get('name')}: {said[-1] if said else 'skipped'}"


def main():
    if len(sys.argv) < 2:
        print("usage: run_tests.py BUILD_DIR [ctest options]", file=sys.stderr)
        return 2
    build = os.path.abspath(sys.argv[1])
    results = os.path.join(build, "test-results")
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    junit = os.path.join(results, "ctest.junit")

    # a trailing slash makes gtest name the file after the executable
    env = dict(os.environ, GTEST_OUTPUT="xml:" + results + "/", GTEST_COLOR="no")
    command = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error",
               "--output-junit", junit, "-j", "2"] + sys.argv[2:]
    code = subprocess.run(command, env=env).returncode

    passed = failed = skipped = 0
    try:
        tests = ElementTree.parse(junit).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"run_tests: ctest left no report: {error}", file=sys.stderr)
        tests = []
    for test in tests:
        run_ok = test.get("status") == "run"
        xml = os.path.join(results, test.get("name") + ".xml")
        try:
            counts = gtest_counts(xml) if os.path.exists(xml) else None
        except ElementTree.ParseError:
            counts = None
        if counts is None and "SKIP_RETURN_CODE" in skip_reason(test):
            counts = (0, 0, 1)
            print(skip_line(test))
        elif counts is None:
            counts = (1, 0, 0) if run_ok else (0, 1, 0)
        elif not run_ok and counts[1] == 0:
            counts = (counts[0], 1, counts[2])  # it passed its cases and then died
        passed, failed, skipped = (a + b for a, b in zip((passed, failed, skipped), counts))

    if skipped:
        print(f"{skipped} skipped")
    if code != 0 and failed == 0:
        failed = 1  # ctest itself could not do its work
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else code


if __name__ == "__main__":
    sys.exit(main())
