#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a kubectl of 1.30 or newer: one that is there, else Debian's package from a
# newer suite, fetched into build/kubectl/ and not installed.
# usage: tools/kubectl.sh [--exact MAJOR.MINOR] [--no-download]
set -euo pipefail

oldest=1.30
exact=""
may_download=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --exact) exact=${2:-}; shift ;;
    --no-download) may_download=no ;;
    *) echo "kubectl.sh: unknown option $1; use --exact MAJOR.MINOR or --no-download" >&2; exit 2 ;;
  esac
  shift
done
if ! [[ ${exact:-$oldest} =~ ^1\.[0-9]+$ ]]; then
  echo "kubectl.sh: --exact: expected a version like 1.36, got '$exact'" >&2
  exit 2
fi

tools=$(cd "$(dirname "$0")" && pwd)
source "$tools/debian_packages.sh"
cache=$(dirname "$tools")/build/kubectl

fail() {
  echo "kubectl.sh: $1" >&2
  exit 1
}

# MAJOR.MINOR of a program, "" when it does not say. A dispatcher stands for whatever the server
# wants, so it has no version of its own.
version_of() {
  local text
  text=$("$1" version --client -o json 2>/dev/null) || return 0
  grep -v dispatcher <<<"$text" |
    sed -nE 's/.*"gitVersion": *"v([0-9]+\.[0-9]+)\.[^"]*".*/\1/p' | head -n 1
}

fits() {
  local version
  [ -x "$1" ] || return 1
  version=$(version_of "$1")
  [ -n "$version" ] || return 1
  if [ -n "$exact" ]; then
    [ "$version" = "$exact" ]
  else
    [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ]
  fi
}

# kubectl on PATH, and its brothers by version (kubectl.1.32, kubectl-1.32) beside the real file.
candidates() {
  local found folder
  while read -r found; do
    [ -n "$found" ] || continue
    echo "$found"
    folder=$(dirname "$(readlink -f "$found")")
    find "$folder" -maxdepth 1 -name 'kubectl[.-]1.*' | sort -rV
  done < <(type -ap kubectl | sort -u)
  find "$cache" -path '*/usr/bin/kubectl' 2>/dev/null | sort -rV
}

while read -r path; do
  if fits "$path"; then
    echo "$path"
    exit 0
  fi
done < <(candidates)

wanted=${exact:-1.36}
[ "$may_download" = yes ] || fail "no kubectl ${exact:-of $oldest or newer} here"
case "$wanted" in
  1.36) suite=sid package=kubectl ;;
  1.32) suite=trixie package=kubernetes-client ;;
  *) fail "no kubectl $wanted here, and Debian has no package of it; put one on PATH" ;;
esac
can_fetch_packages && command -v flock >/dev/null ||
  fail "no kubectl $wanted here; install one (no apt-get, dpkg-deb or flock to fetch it)"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || fail "no kubectl $wanted here; install one (no $keys to check a package with)"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' |
         grep -v security | sort -u | head -n 1)
[ -n "$mirror" ] || fail "no kubectl $wanted here; install one (apt knows no mirror of Debian)"

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
target=$cache/$wanted
if fits "$target/usr/bin/kubectl"; then  # another got it meanwhile
  echo "$target/usr/bin/kubectl"
  exit 0
fi

work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial"
echo "deb [signed-by=$keys] $mirror $suite main" >"$work/sources.list"
apt=(-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=-
     -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" -o Dir::Cache::pkgcache=
     -o Dir::Cache::srcpkgcache= -o Dir::State::status=/dev/null
     -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root -o Acquire::Languages=none)
apt-get -q "${apt[@]}" update >"$work/log" 2>&1 ||
  fail "$mirror does not answer: $(tail -n 1 "$work/log")"
why=$(fetch_packages "$work/root" "$package" "${apt[@]}") ||
  fail "no package $package in $suite: $why"
fits "$work/root/usr/bin/kubectl" ||
  fail "$package in $suite is $(version_of "$work/root/usr/bin/kubectl") by now, not $wanted"
rm -rf "$target"
mv "$work/root" "$target"
echo "$target/usr/bin/kubectl"
