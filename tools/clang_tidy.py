#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy on many files. Most of its time goes into headers that every file includes, so files
# of one folder are read together, as one unit that includes them all: 8 times less work. Where two
# files give different things one name, the compiler says so, and the file in which it does is read
# again with fewer others, at last alone; nothing is said about a file that did not compile.
# usage: tools/clang_tidy.py [-j N] BUILD_DIR FILES...

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

PROGRAM = "clang-tidy-19"
ROUNDS = (16, 4, 1)  # files in a unit at most, in each round
FINDING = re.compile(r"^(/[^:\n]+):\d+:\d+: (?:error|warning): .*\[([^\]]+)\]$")


def arguments_of(entry):
    """What the compiler is told about a file, without the names of the file and its object."""
    words = shlex.split(entry["command"])[1:]
    out = words.index("-o")
    del words[out:out + 2]
    at = words.index("-c")
    del words[at:at + 2]
    return tuple(words)


def units_of(files, arguments, limit):
    """Files of one folder that are compiled the same way, tests apart, at most `limit` together."""
    groups = collections.defaultdict(list)
    for path in files:
        is_test = path.endswith("_test.cc")
        groups[os.path.dirname(path), is_test, arguments[path]].append(path)
    for group in groups.values():
        count = -(-len(group) // limit)
        for i in range(count):
            yield group[i::count]


def read_unit(number, unit, arguments, folder):
    """(findings, files that must be read again) of one run of clang-tidy."""
    path = unit[0]
    if len(unit) > 1:
        path = os.path.join(folder, f"unit_{number}.cc")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f'#include "{name}"\n' for name in unit))
    run = subprocess.run(
        [PROGRAM, "--quiet", "--config-file=.clang-tidy",
         r"--header-filter=/(src|test|bench)/.*\.(h|cc)$", path,
         "--", *arguments[unit[0]], "-ferror-limit=0"],
        capture_output=True, text=True, check=False)
    blocks = []  # (file, its check, lines)
    for line in run.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            blocks.append((match.group(1), match.group(2), [line]))
        elif blocks:
            blocks[-1][2].append(line)
    broken = {where for where, check, _ in blocks if "clang-diagnostic-error" in check}
    if len(unit) == 1:
        if run.returncode != 0 and not blocks:
            return [run.stdout + run.stderr], []
        return ["\n".join(lines) for _, _, lines in blocks], []
    if run.returncode != 0 and not blocks or not broken <= set(unit):
        return [], unit
    return (["\n".join(lines) for where, _, lines in blocks if where not in broken],
            sorted(broken))


def main():
    parser = argparse.ArgumentParser(description="clang-tidy on many files")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("build", help="a build folder with compile_commands.json")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()

    with open(os.path.join(args.build, "compile_commands.json"), encoding="utf-8") as file:
        arguments = {entry["file"]: arguments_of(entry) for entry in json.load(file)}
    files = [os.path.abspath(path) for path in args.files]
    folder = os.path.join(args.build, "lint")
    os.makedirs(folder, exist_ok=True)

    # in order, and once: what is in a header is found by every unit
    findings = {f"{path}: no target compiles it": None for path in files if path not in arguments}
    for text in findings:
        print(text)
    files = [path for path in files if path in arguments]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for limit in ROUNDS:
            units = list(units_of(files, arguments, limit))
            jobs = [pool.submit(read_unit, i, unit, arguments, folder)
                    for i, unit in enumerate(units)]
            if files:
                print(f"clang-tidy: {len(files)} files in {len(units)} runs", flush=True)
            files = []
            for job in jobs:
                found, again = job.result()
                files += again
                for text in found:
                    if text not in findings:
                        findings[text] = None
                        print(text, flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
