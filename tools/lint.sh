#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-format and clang-tidy on C++ files: those changed since the last commit, or those named.
# tools/clang_tidy.py reads the files of a folder together: one by one they would be two thirds of
# the time that a change has to wait for its checks.
# usage: tools/lint.sh [--fix | --all | --ci] [FILES...]
#   --fix  rewrite to .clang-format instead of checking (changed files, or FILES; --fix --all)
#   --all  every file of src, test and bench
#   --ci   --all, and every header compiled alone
set -euo pipefail
cd "$(dirname "$0")/.."

format=clang-format-19
jobs=${JOBS:-$(nproc)}
fix=no
mode=changed
files=()
for word in "$@"; do
  case "$word" in
    --fix) fix=yes ;;
    --all) mode=all ;;
    --ci) mode=ci ;;
    -*) echo "lint.sh: unknown flag $word" >&2; exit 2 ;;
    *) mode=named; files+=("$word") ;;
  esac
done

all_files() { find src test bench -name '*.cc' -o -name '*.h' 2>/dev/null | sort; }
changed_files() {
  { git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } |
    grep -E '^(src|test|bench)/.*\.(cc|h)$' | sort -u || true
}
case "$mode" in
  all|ci) mapfile -t files < <(all_files) ;;
  changed) mapfile -t files < <(changed_files) ;;
esac
if [ ${#files[@]} -eq 0 ]; then
  echo "lint: no C++ file has changed"
  exit 0
fi

if [ "$fix" = yes ]; then
  printf '%s\0' "${files[@]}" | xargs -0 "$format" -i
  echo "lint: ${#files[@]} files in form"
  exit 0
fi

status=0
echo "lint: format of ${#files[@]} files"
if ! printf '%s\0' "${files[@]}" | xargs -0 "$format" --dry-run -Werror; then
  echo "lint: run \`make format\` and look at what it changed" >&2
  status=1
fi

# clang-tidy wants compile commands: those of the dev build, which a bench is not part of.
cmake --preset dev > /dev/null
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '^(src|test)/.*\.cc$' || true)
if [ ${#sources[@]} -gt 0 ]; then
  cmake --build build/dev --target jogak_api -j "$jobs" > /dev/null  # headers that are generated
  echo "lint: clang-tidy on ${#sources[@]} files, $jobs at a time"
  tools/clang_tidy.py -j "$jobs" build/dev "${sources[@]}" || status=1
fi

if [ "$mode" = ci ]; then
  echo "lint: every header compiles alone"
  cmake --build build/dev --target checkheaders -j "$jobs" || status=1
fi
[ $status -eq 0 ] && echo "lint: clean"
exit $status
