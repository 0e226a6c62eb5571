#!/bin/sh
# Installs mailclaim and its own Node for the current user, or removes them:
#
#   curl -fsSL https://github.com/OWNER/mailclaim/releases/latest/download/install.sh | sh
#   curl -fsSL https://github.com/OWNER/mailclaim/releases/latest/download/install.sh | sh -s -- --uninstall
#
# All files are in PREFIX/lib/mailclaim, and PREFIX/bin/mailclaim is a symbolic link. Environment variables, also those that your CI sets:
#
#   PREFIX        directory to install in (~/.local)
#   VERSION       version to install (the newest)
#   INSTALL_FROM  URL or directory with the archives of a release and its SHA256SUMS
set -eu

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

# fetch NAME: downloads or copies a file of the release to $work.
fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        problem=$(curl -fsSL --proto-redir "=${from%%:*}" --connect-timeout 30 --speed-time 60 -o "$work/$1" "$from/$1" 2>&1)
      elif command -v wget >/dev/null; then
        problem=$(wget -O "$work/$1" "$from/$1" 2>&1)
      else
        fail "nothing to download with: install curl or wget"
      fi
      ;;
    *) problem=$(cp "$from/$1" "$work/$1" 2>&1) ;;
  esac || fail "${asked}can't get $from/$1: $(printf '%s\n' "$problem" | grep . | tail -n 1)"
}

# machine: prints the platform and processor in the name of this machine's archive, such as linux-x64.
machine() {
  system=$(uname -s) arch=$(uname -m)
  case $system in Linux) platform=linux ;; Darwin) platform=darwin ;; *) platform= ;; esac
  case $arch in x86_64 | amd64) cpu=x64 ;; aarch64 | arm64) cpu=arm64 ;; *) cpu= ;; esac
  if [ "$platform" = linux ] && ldd --version 2>&1 | grep -qi musl; then system='Linux with musl' cpu=; fi
  case $platform-$cpu in
    -* | *-) fail "no archive for $system on $arch: with Node 20.19, 22.3 or later, npm install --global mailclaim" ;;
    *) echo "$platform-$cpu" ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

install() {
  target=$(machine)
  if ! mkdir -p "$home" "$bin" 2>/dev/null || [ ! -w "$bin" ] || ! work=$(mktemp -d "$home/.new.XXXXXX" 2>/dev/null); then
    fail "can't write to $PREFIX: choose another directory with PREFIX"
  fi
  # Only directories that exist now are removed later: another installer may be running and create others.
  before=$(ls "$home")
  asked=${VERSION:+VERSION=\"$VERSION\": }
  from=${INSTALL_FROM:-https://github.com/OWNER/mailclaim/releases/${VERSION:+download/v}${VERSION:-latest/download}}
  fetch SHA256SUMS
  grep -q '^[0-9a-f]\{64\} [ *]' "$work/SHA256SUMS" ||
    fail "$from/SHA256SUMS isn't a list of checksums: does this network want you to sign in?"
  archive=$(sed -n "s/^[0-9a-f]\{64\} [ *]\(mailclaim-${VERSION:-[0-9][0-9A-Za-z.+-]*}-$target\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
  [ -n "$archive" ] || fail "$asked$from has no archive for $target"
  fetch "$archive"
  grep -q "^$(sha256 "$work/$archive") [ *]$archive\$" "$work/SHA256SUMS" ||
    fail "the checksum of $archive is wrong: it is damaged, or not what was released"
  mkdir "$work/unpacked"
  problem=$(tar -xzf "$work/$archive" -C "$work/unpacked" -o --strip-components 1 2>&1) ||
    fail "can't unpack $archive: $(printf '%s\n' "$problem" | grep . | head -n 1)"
  version=$("$work/unpacked/mailclaim" --version 2>/dev/null) ||
    fail "mailclaim doesn't start on this machine: $("$work/unpacked/mailclaim" --version 2>&1 | head -n 1)"

  # Running processes keep using the earlier version, which the next installation removes. mv replaces the link atomically.
  earlier=$(readlink "$link" || true) new=$home/$version.${work##*.}
  mv "$work/unpacked" "$new"
  ln -s "$new/mailclaim" "$work/link"
  mv -f "$work/link" "$link"
  for directory in $before; do
    case $earlier in */"$directory"/*) ;; *) rm -rf "${home:?}/$directory" ;; esac
  done
  "$link" --version >/dev/null 2>&1 || fail "another installation has removed this one: install again"
  echo "mailclaim $version is installed: $link"
  [ "$(command -v mailclaim)" = "$link" ] ||
    echo "Your shell finds it with this line in ~/.profile, or ~/.zprofile for zsh: export PATH=\"$bin:\$PATH\""
}

uninstall() {
  [ -d "$home" ] || fail "mailclaim isn't installed in $PREFIX: set PREFIX to where it is"
  places=$("$link" config list 2>&1 >/dev/null || true)
  rm -rf "$link" "$home"
  echo "mailclaim is removed from $PREFIX. What \`mailclaim logout --all\` would have removed is still there:"
  echo "the tokens and API keys of all profiles, in the keychain (named mailclaim) or in files. $places"
  echo "Compiled code is in ~/.cache/mailclaim (on macOS, ~/Library/Caches/mailclaim), and may be deleted."
}

main() {
  umask 022
  [ -n "${PREFIX:-${HOME-}}" ] || fail "HOME isn't set: choose a directory with PREFIX"
  PREFIX=${PREFIX:-$HOME/.local} VERSION=${VERSION-}
  VERSION=${VERSION#v}
  case $VERSION in *[!0-9A-Za-z.+-]*) fail "VERSION=\"$VERSION\" isn't a version" ;; esac
  case $PREFIX in /*) ;; *) PREFIX=$PWD/$PREFIX ;; esac
  home=$PREFIX/lib/mailclaim bin=$PREFIX/bin link=$PREFIX/bin/mailclaim work=
  trap 'rm -rf "$work"; rmdir "$home" "$bin" "$PREFIX/lib" "$PREFIX" 2>/dev/null || true' EXIT
  trap 'exit 130' INT TERM HUP
  # The pattern leaves PREFIX out, because an earlier installation may have spelled PREFIX differently.
  case $(readlink "$link" || true) in
    */lib/mailclaim/*/mailclaim) ;;
    *) [ ! -e "$link" ] || fail "$link isn't from this installer: remove it, or choose another PREFIX" ;;
  esac
  case ${1-} in
    '') install ;;
    --uninstall) uninstall ;;
    *) fail "unknown option \"$1\"" ;;
  esac
}

# The last line of the script: a download that is cut off runs nothing.
main "$@"
