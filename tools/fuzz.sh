#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each libFuzzer program of a folder for some seconds. New inputs are kept under build/, the
# corpus of the tree is only read; a crash leaves its input there and fails the run.
# usage: tools/fuzz.sh FOLDER SECONDS [NAME...]     (NAME without _fuzz; default all)
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
seconds=$2
shift 2
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for program in "$folder"/*_fuzz; do
    name=$(basename "$program" _fuzz)
    [ "$name" = canary ] || names+=("$name")
  done
fi

[ -x "$folder/canary_fuzz" ] || { echo "fuzz: no fuzzers in $folder" >&2; exit 1; }

# The canary must be found, or the rest proves nothing.
if "$folder/canary_fuzz" -runs=1000000 -max_len=8 -artifact_prefix="$folder/" > /dev/null 2>&1; then
  echo "fuzz: the canary was not found; the fuzzers do not report failures" >&2
  exit 1
fi

status=0
for name in "${names[@]}"; do
  echo "fuzz: $name for $seconds s"
  found=$folder/found/$name
  mkdir -p "$found"
  corpus=()
  [ ! -d "test/fuzz/corpus/$name" ] || corpus=("test/fuzz/corpus/$name")
  if ! "$folder/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -print_final_stats=0 \
      -verbosity=0 -artifact_prefix="$found/" "$found" "${corpus[@]}"; then
    echo "fuzz: $name failed; the input is in $found" >&2
    status=1
  fi
done
exit $status
