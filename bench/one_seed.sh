#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One openb run of FGD and one of jogak, seed 42, each as a whole process: reading, deciding,
# reporting. Prints seconds of processor time and the peak memory of five runs each.
# usage: bench/one_seed.sh [TRACE_DIR]
set -euo pipefail

cd "$(dirname "$0")/.."
jogak=${JOGAK_BINARY:-build/release/src/cli/jogak}
dir=${1:-${JOGAK_TRACES:-}}
if [ -z "$dir" ] || [ ! -f "$dir/openb_node_list_gpu_node.csv" ] || [ ! -x "$jogak" ]; then
  echo "one_seed.sh: needs the openb traces (argument or JOGAK_TRACES) and $jogak" >&2
  exit 2
fi
python3 - "$jogak" "$dir" << 'PY'
import os, subprocess, sys

jogak, folder = sys.argv[1:]
for policy in ("fgd", "jogak"):
    for _ in range(5):
        child = subprocess.Popen(
            [jogak, "sim", "openb", "--dir", folder, "--policy", policy, "--seeds", "42",
             "--jobs", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0, status
        seconds = usage.ru_utime + usage.ru_stime
        print(f"{policy:6} {seconds:6.2f} s cpu {usage.ru_maxrss // 1024:5} MiB")
PY
