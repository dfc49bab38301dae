#!/usr/bin/env bash
# demo.sh: builds the quartet command, then lets it recognise a handwritten digit twice: compiled on this machine, and from the
# cache. Writes under build/ only (and installs what is missing to build).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
echo "Building (build/release), which takes some minutes ..."
output=$(cmake --preset release -DQUARTET_TESTS=OFF 2>&1) || { echo "$output"; exit 1; }
cmake --build build/release -j "$(nproc)" --target quartet quartet_llvm

quartet=build/release/bin/quartet
model=tests/models/digits/digits.onnx
sample=tests/models/digits/sample.npy
work=build/demo
rm -rf "$work"
mkdir -p "$work"

# floats FILE: the numbers of a little-endian f32 .npy file, one a line.
floats() {
  local header
  header=$(od -An -tu2 -j8 -N2 "$1")
  od -An -v -w4 -tf4 -j "$((10 + header))" "$1"
}

# field NAME FILE: the value of a field of a JSON object.
field() {
  sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' "$2" | head -n 1
}

# recognise ROUND: runs the model on the sample; leaves ROUND.json and ROUND/probabilities.npy in the work folder.
recognise() {
  "$quartet" run "$model" --input "pixels=$sample" --out "$work/$1" --cache "$work/cache" --json >"$work/$1.json"
}

echo
echo "The digit, 8x8 pixels of ink ($sample):"
echo
floats "$sample" | awk '
  { shade = substr(" .:-=+*#%@", int($1 / 16 * 9) + 1, 1); line = line shade shade }
  NR % 8 == 0 { print "    |" line "|"; line = "" }'

recognise first
echo
echo "What $model makes of it:"
echo
floats "$work/first/probabilities.npy" | awk '
  { p[NR - 1] = $1; if ($1 > p[best]) best = NR - 1 }
  END {
    for (digit = 0; digit < 10; ++digit) {
      bar = ""
      for (i = 0; i < int(p[digit] * 40 + 0.5); ++i) bar = bar "#"
      printf "    %d  %6.2f %%  %s\n", digit, 100 * p[digit], bar
    }
    printf "\n    It is a %d.\n", best
  }'

recognise second
cmp -s "$work/first/probabilities.npy" "$work/second/probabilities.npy" || { echo "demo: the two runs differ" >&2; exit 1; }

# A program's way to being ready: the compile when it was compiled here, the look-up and load when it was cached.
report() {
  printf '    %-11s origin %-9s  ready after %8.3f ms\n' "$1 run:" "$(field origin "$work/$2.json")" "$(field ready_ms "$work/$2.json")"
}
echo
report First first
report Second second
awk -v a="$(field ready_ms "$work/first.json")" -v b="$(field ready_ms "$work/second.json")" \
  'BEGIN { printf "\n    The second run came from the cache, %.0f times faster, with the same bits.\n", a / b }'
[[ $(field origin "$work/second.json") == disk ]] || { echo "demo: the second run did not come from the cache" >&2; exit 1; }
