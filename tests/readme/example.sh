#!/usr/bin/env bash
# example.sh SOURCE_DIR BUILD_DIR COMPILER FLAG...: takes the first C block out of README.md, compiles it, runs it where it
# says it runs, and wants ten probabilities that add up to one.
set -euo pipefail
source=$1 build=$2 compiler=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/README.md" >"$work/example.c"
[[ -s $work/example.c ]] || { echo "README.md has no C example" >&2; exit 1; }
lines=$(wc -l <"$work/example.c")
((lines <= 24)) || { echo "the example grew to $lines lines" >&2; exit 1; }
"$compiler" -std=c99 -pedantic -Wall -Wextra -Werror "$@" "$work/example.c" -o "$work/example" -I"$source/include" \
  -L"$build/lib" -lquartet_c -Wl,-rpath,"$build/lib"
cd "$source"
"$work/example" | tee "$work/out"
awk '{ n++; sum += $2 } END { exit !(n == 10 && sum > 0.99 && sum < 1.01) }' "$work/out"
