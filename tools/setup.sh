#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian 12 packages that a job needs and that dpkg does not have yet.
# usage: tools/setup.sh [build] [lint] [fuzz]     (build when nothing is named)
set -euo pipefail

build=(g++ cmake ninja-build make python3 python3-venv libfmt-dev libsimdjson-dev libyaml-cpp-dev
       nlohmann-json3-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev zlib1g-dev
       libssl-dev libhttp-parser-dev libsqlite3-dev libre2-dev libcurl4-openssl-dev ccache
       mold openssl pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler
       protobuf-compiler-grpc)
lint=(clang-format-19 clang-tidy-19)
fuzz=(clang-19 libclang-rt-19-dev)

[ $# -gt 0 ] || set -- build
wanted=()
for job in "$@"; do
  case "$job" in
    build) wanted+=("${build[@]}") ;;
    lint) wanted+=("${lint[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    *) echo "setup.sh: unknown job $job; use build, lint or fuzz" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: this is not Debian; make sure of the equivalents of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qx installed <<<"$status" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: missing packages: ${missing[*]}" >&2
    echo "setup.sh: neither root nor sudo here; as root run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup.sh: installing ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q
         --no-install-recommends "${missing[@]}")
"${install[@]}" || { "${as_root[@]}" apt-get update -q && "${install[@]}"; }
