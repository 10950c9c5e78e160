#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jogak's own policy beside FGD on the openb experiment, all seventeen variants, held-out seeds
# 47-51, and what it costs when its idea of the mix is wrong. Prints the tables and fails if a floor
# is missed.
# usage: bench/jogak.sh [TRACE_DIR]
#   TRACE_DIR defaults to $JOGAK_TRACES; JOGAK_BINARY names the program (default: the release
#   build); SEEDS (default 47-51; the parameters were tuned on 42-46)
set -euo pipefail

cd "$(dirname "$0")/.."
jogak=${JOGAK_BINARY:-build/release/src/cli/jogak}
dir=${1:-${JOGAK_TRACES:-}}
seeds=${SEEDS:-47-51}
if [ -z "$dir" ] || [ ! -f "$dir/openb_node_list_gpu_node.csv" ]; then
  echo "jogak.sh: no openb traces in '${dir}'; give their folder or set JOGAK_TRACES" >&2
  exit 2
fi
if [ ! -x "$jogak" ]; then
  echo "jogak.sh: $jogak is not built; run make release or set JOGAK_BINARY" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "openb, seeds $seeds, published orders; one run at a time"
"$jogak" sim openb --dir "$dir" --variant all --policy fgd,jogak --seeds "$seeds" --jobs 1 -o json \
  > "$work/all.json"
status=0
python3 bench/jogak_floors.py "$work/all.json" || status=1
echo
echo "With the mix of another variant (allocated % at 90 / 100 / 130 arrived):"
while read -r variant mix; do
  "$jogak" sim openb --dir "$dir" --variant "$variant" --mix "$mix" --policy fgd,jogak \
    --seeds "$seeds" --jobs 1 -o json > "$work/mix.json"
  python3 bench/jogak_floors.py --mix "$mix" "$work/mix.json"
done << 'LIST'
default gpushare100
default multigpu50
default gpuspec33
cpu250 default
gpushare100 default
gpuspec33 default
multigpu50 default
LIST
exit "$status"
