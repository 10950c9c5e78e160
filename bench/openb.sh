#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the openb placement experiment on every variant with published results, six baselines, ten
# seeds (1,020 runs), and fails if a mean at 100 or 130 % arrived is off by more than three
# published standard deviations. The traces are not in the tree: docs/policies.md says where they
# come from.
# usage: bench/openb.sh [TRACE_DIR] [further flags of `jogak sim openb`]
#   TRACE_DIR defaults to $JOGAK_TRACES; JOGAK_BINARY names the program (default: the release build)
set -euo pipefail

cd "$(dirname "$0")/.."
jogak=${JOGAK_BINARY:-build/release/src/cli/jogak}
dir=${JOGAK_TRACES:-}
if [ $# -gt 0 ] && [ -d "$1" ]; then
  dir=$1
  shift
fi
if [ -z "$dir" ] || [ ! -f "$dir/openb_node_list_gpu_node.csv" ]; then
  echo "openb.sh: no openb traces in '${dir}'; give their folder or set JOGAK_TRACES" >&2
  exit 2
fi
if [ ! -x "$jogak" ]; then
  echo "openb.sh: $jogak is not built; run make release or set JOGAK_BINARY" >&2
  exit 2
fi
exec "$jogak" sim openb --dir "$dir" --variant all --seeds 42-51 --check-published \
  --policy random,dot-product,clustering,packing,best-fit,fgd "$@"
