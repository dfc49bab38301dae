#!/usr/bin/env bash
# real_models.sh QUARTET SHARED DIR (--all | NAME...): fetches the real models described in SHARED/models into DIR and runs `check` on
# every golden case of the named ones, compiled code against the expected outputs and every value against the reference
# interpreter; with --all on every case there is, against the expected outputs alone. Says so and gives 77 (skipped) where SHARED or the models cannot be had.
set -euo pipefail
quartet=$1 shared=$2 dir=$3
shift 3
[[ -x $shared/models/fetch.sh ]] || { echo "skipped: no real models beside the repository ($shared)"; exit 77; }
command -v npm >/dev/null || { echo "skipped: the real models come from npm packages, and npm is not here"; exit 77; }
mkdir -p "$dir"
if ! (flock 9 && timeout 300 "$shared/models/fetch.sh" "$dir") >"$dir/fetch.log" 2>&1 9>"$dir/lock"; then
  echo "skipped: the real models could not be fetched:"
  tail -n 3 "$dir/fetch.log"
  exit 77
fi
if [[ $1 == --all ]]; then
  status=0 models=0
  for golden in "$shared"/models/golden/*/; do
    name=$(basename "$golden") cases=("$golden"*/)
    echo "$name"
    "$quartet" check "$dir/$name.onnx" "${cases[@]%/}" --cache off || status=1
    models=$((models + 1))
  done
  echo "$models models"
  ((models > 0)) || status=1
  exit "$status"
fi
for name in "$@"; do
  cases=("$shared/models/golden/$name"/*/)
  [[ -d ${cases[0]} ]] || { echo "no golden case of $name" >&2; exit 1; }
  "$quartet" check "$dir/$name.onnx" "${cases[@]%/}" --cache off --reference
  "$quartet" check "$dir/$name.onnx" --cache off --reference --rounds 5
done
