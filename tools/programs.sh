#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that tests use where they are there: runc and a static busybox (containers), containerd
# (from 1.7, which knows CDI), promtool and prometheus. Those that are not on PATH are fetched from
# Debian into build/programs/ and not installed, so no daemon starts. Prints the folders for PATH,
# with ":" between; what cannot be had is left out, and the tests say so.
# usage: tools/programs.sh
set -euo pipefail

cache=$(cd "$(dirname "$0")/.." && pwd)/build/programs
containerd_oldest=1.7

# package, and the program that tells whether it is there
wanted=(runc:runc busybox-static:busybox prometheus:promtool)
candidate=$(apt-cache policy containerd 2>/dev/null | sed -n 's/^ *Candidate: //p') || candidate=""
if [[ $candidate =~ ^[0-9] ]] &&
   [ "$(printf '%s\n' "$containerd_oldest" "$candidate" | sort -V | head -n 1)" = \
     "$containerd_oldest" ]; then
  wanted+=(containerd:containerd)
fi

folders=()
for pair in "${wanted[@]}"; do
  package=${pair%%:*}
  program=${pair##*:}
  command -v "$program" >/dev/null && continue
  root=$cache/$package
  if [ ! -d "$root" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || continue
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    if (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package") \
         >"$work/log" 2>&1; then
      dpkg-deb -x "$work/$package"_*.deb "$work/root"
      mv -T "$work/root" "$root" 2>/dev/null || true  # another was faster
    else
      echo "programs.sh: no package $package: $(tail -n 1 "$work/log")" >&2
    fi
    rm -rf "$work"
  fi
  for folder in bin sbin usr/bin usr/sbin; do
    [ ! -x "$root/$folder/$program" ] || folders+=("$root/$folder")
  done
done
(IFS=:; echo "${folders[*]}")
