#!/usr/bin/env bash
# setup.sh [--tests]: installs what building Quartet needs, from the distribution, if it is missing; with --tests also what its
# tests and lints need. Debian 12; as root or with sudo. Silent when nothing is missing.
set -euo pipefail

packages=(
  clang-19 lld-19 llvm-19-dev cmake ninja-build ccache # compilers and build
  zlib1g-dev libzstd-dev                               # archives that LLVM's archives need
  libsqlite3-dev libxxhash-dev                         # cache, digests
  libprotozero-dev                                     # ONNX files
  nlohmann-json3-dev libcli11-dev                      # the quartet command
)
tests=(
  libgtest-dev libbenchmark-dev libclang-rt-19-dev llvm-19 # test programs, sanitizers and their symbolizer
  clang-format-19 clang-tidy-19 python3 git binutils       # lints and symbol checks
  sqlite3                                                  # looks into cache files from outside
  libonnx-testdata                                         # ONNX's own cases
)
case ${1:-} in
  '') ;;
  --tests) packages+=("${tests[@]}") ;;
  *) echo "usage: setup.sh [--tests]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

command -v apt-get >/dev/null || { echo "setup: this is not Debian; install by hand: ${missing[*]}" >&2; exit 1; }
sudo=()
if ((EUID)); then
  command -v sudo >/dev/null || { echo "setup: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "setup: failed: $*" >&2; exit 1; }
}
quietly apt-get update
quietly apt-get install -y --no-install-recommends "${missing[@]}"
