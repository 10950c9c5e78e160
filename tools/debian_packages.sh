# SPDX-License-Identifier: Apache-2.0
#
# For the other scripts here, which source this: files of Debian packages without an installation,
# so that no daemon starts and nothing of the machine changes.

# Whether this machine can fetch packages at all.
can_fetch_packages() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null
}

# fetch_packages ROOT "PACKAGE..." [APT_OPTION...]
# Makes the folder ROOT with what the packages have below usr/; it appears whole or not at all. On
# failure prints why, one line, and gives 1. Whoever comes second keeps what the first one made.
fetch_packages() {
  local root=$1 packages work package
  read -ra packages <<<"$2"
  shift 2
  mkdir -p "$(dirname "$root")"
  work=$(mktemp -d "$root.XXXXXX")
  if ! (cd "$work" && apt-get -q -o APT::Sandbox::User=root "$@" download "${packages[@]}") \
       >"$work/log" 2>&1; then
    tail -n 1 "$work/log"
    rm -rf "$work"
    return 1
  fi
  local files=$work/files folder
  for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$files"
  done
  for folder in bin sbin lib; do  # of packages that do not know yet that these are links
    [ -d "$files/$folder" ] || continue
    mkdir -p "$files/usr/$folder"
    cp -a "$files/$folder/." "$files/usr/$folder/"
    rm -rf "${files:?}/$folder"
  done
  mv -T "$files" "$root" 2>/dev/null || true
  rm -rf "$work"
}
