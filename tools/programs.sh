#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that tests use where they are there: runc and a static busybox (containers), containerd
# (from 1.7, which knows CDI), podman, promtool and prometheus. Those that are not on PATH are
# fetched from Debian into build/programs/ and not installed, so no daemon starts. Prints the
# folders for PATH, with ":" between; what cannot be had is left out, and the tests say so.
# usage: tools/programs.sh
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
source "$tools/debian_packages.sh"
cache=$(dirname "$tools")/build/programs
containerd_oldest=1.7

# package, and the program that tells whether it is there
wanted=(runc:runc busybox-static:busybox prometheus:promtool podman:podman)
candidate=$(apt-cache policy containerd 2>/dev/null | sed -n 's/^ *Candidate: //p') || candidate=""
if [[ $candidate =~ ^[0-9] ]] &&
   [ "$(printf '%s\n' "$containerd_oldest" "$candidate" | sort -V | head -n 1)" = \
     "$containerd_oldest" ]; then
  wanted+=(containerd:containerd)
fi

# The package, for podman with all that it needs and this machine does not have.
with_needs() {
  echo "$1"
  [ "$1" != podman ] || apt-get -s install --no-install-recommends "$1" 2>/dev/null |
    sed -nE 's/^Inst ([^ ]+) \(.*/\1/p'
}

folders=()
for pair in "${wanted[@]}"; do
  package=${pair%%:*}
  program=${pair##*:}
  command -v "$program" >/dev/null && continue
  root=$cache/$package
  if [ ! -d "$root" ]; then
    can_fetch_packages || continue
    why=$(fetch_packages "$root" "$(with_needs "$package" | sort -u | tr '\n' ' ')") ||
      echo "programs.sh: no package $package: $why" >&2
  fi
  for folder in usr/bin usr/sbin bin sbin; do
    [ ! -x "$root/$folder/$program" ] || folders+=("$(cd "$root/$folder" && pwd)")
  done
done
(IFS=:; echo "${folders[*]}")
