#!/usr/bin/env bash
# verbs.sh QUARTET MODEL: what the verbs print and return, mistakes included. MODEL has one symbolic dim, "batch".
set -euo pipefail
quartet=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# wants CODE PATTERN ARGUMENT...: the command ends with CODE and says PATTERN somewhere.
wants() {
  local code=$1 pattern=$2 got=0
  shift 2
  "$quartet" "$@" >"$work/said" 2>&1 || got=$?
  if ((got != code)) || ! grep -q -e "$pattern" "$work/said"; then
    echo "quartet $*: exit code $got, wanted $code and '$pattern'; it said:" >&2
    cat "$work/said" >&2
    exit 1
  fi
}

wants 0 '^quartet [0-9]' --version
wants 2 "no verb 'nosuch'" nosuch
wants 2 "no verb 'nosuch'" cache nosuch
wants 1 "no dim 'bach'; their symbolic dims are batch" run "$model" --dim bach=2 --cache off
wants 1 "there is no option 'fuse'; there are fusion" run "$model" --option fuse=on --cache off
wants 1 'not enough memory' run "$model" --dim batch=999999999999999999 --cache off
wants 0 '\[3, 10\]' run "$model" --dim batch=3 --cache off

# A file for quartet_program_load, from a fresh compile and from the cache.
wants 0 'kernels in' compile "$model" -o "$work/fresh" --cache "$work/cache"
wants 0 'kernels in' compile "$model" -o "$work/again" --cache "$work/cache"
[[ -s $work/fresh ]] && cmp "$work/fresh" "$work/again"

# A warm start does not open the code generator, as the loader tells; a cold one does.
opens_generator() { LD_DEBUG=files LD_DEBUG_OUTPUT="$work/loader" "$quartet" run "$model" --cache "$work/warm" >/dev/null; }
opens_generator
grep -q libquartet_llvm "$work"/loader.* || { echo "a cold start opened no code generator" >&2; exit 1; }
rm -f "$work"/loader.*
opens_generator
grep -q libquartet_c "$work"/loader.* || { echo "the loader wrote no log" >&2; exit 1; }
if grep -q libquartet_llvm "$work"/loader.*; then
  echo "a warm start opened the code generator" >&2
  exit 1
fi

# Nothing is thrown away unless how much is said; a damaged entry is found once.
wants 2 '--to is required' cache prune --cache "$work/cache"
wants 0 '1 entries checked, 0 damaged, 0 dropped' cache verify --cache "$work/cache"
if command -v sqlite3 >/dev/null; then
  sqlite3 "$work/cache/kernels-1.db" 'UPDATE payload SET bytes = zeroblob(length(bytes))'
  wants 1 '1 entries checked, 1 damaged, 1 dropped' cache verify --cache "$work/cache"
fi
wants 0 ' 0.0 KiB after' cache prune --to 0 --cache "$work/cache"
