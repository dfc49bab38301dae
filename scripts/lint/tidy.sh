#!/usr/bin/env bash
# tidy.sh BUILD_DIR [--all | --changed | --sample N] [--seconds S]: clang-tidy with the list in .clang-tidy over the .cpp files
# that BUILD_DIR compiles: all of them, those that differ from the last commit's parent, or N spread over the folders by name
# (another N every day of the year, so that a sample a day sees the whole house). Stops taking up files after S seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: tidy.sh BUILD_DIR [--all|--changed|--sample N] [--seconds S]}
shift
mode=all count=0 seconds=0
while (($#)); do
  case $1 in
    --all) mode=all ;;
    --changed) mode=changed ;;
    --sample) mode=sample count=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    *) echo "tidy: unknown argument $1" >&2; exit 2 ;;
  esac
  shift
done
[[ -f $build/compile_commands.json ]] || { echo "tidy: $build has no compile_commands.json" >&2; exit 2; }

mapfile -t compiled < <(python3 - "$build/compile_commands.json" "$PWD" <<'PY'
import json, os, sys
commands, root = json.load(open(sys.argv[1])), sys.argv[2]
files = {os.path.relpath(os.path.realpath(os.path.join(c["directory"], c["file"])), root) for c in commands}
print("\n".join(sorted(f for f in files if f.endswith(".cpp") and not f.startswith(("..", "build/")))))
PY
)
files=("${compiled[@]}")
if [[ $mode == changed ]]; then
  mapfile -t changed < <({ git diff --name-only HEAD~1 2>/dev/null || git ls-files; git ls-files -o --exclude-standard; } | sort -u)
  mapfile -t files < <(comm -12 <(printf '%s\n' "${compiled[@]}" | sort) <(printf '%s\n' "${changed[@]}" | sort))
elif [[ $mode == sample && $count -lt ${#compiled[@]} ]]; then
  files=()
  step=$((${#compiled[@]} / count)) offset=$((10#$(date +%j)))
  for ((i = 0; i < count; i++)); do files+=("${compiled[(i * step + offset % step) % ${#compiled[@]}]}"); done
fi

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export build log seconds start=$SECONDS
started=$(date +%s)
export started
check() {
  if ((seconds && $(date +%s) - started > seconds)); then return 0; fi
  touch "$log/$(tr / + <<<"$1").seen"
  clang-tidy-19 -p "$build" --quiet "$1" >"$log/$(tr / + <<<"$1").out" 2>/dev/null || touch "$log/failed"
}
export -f check
printf '%s\n' "${files[@]}" | sed '/^$/d' | xargs -r -P "$(nproc)" -I{} bash -c 'check {}'
seen=$(find "$log" -name '*.seen' | wc -l)
cat "$log"/*.out 2>/dev/null || true
echo "tidy: $seen of ${#compiled[@]} files looked at"
if ((seen == 0 && ${#files[@]} > 0)) && [[ -n ${files[0]} ]]; then
  echo "tidy: no file was looked at, which proves nothing" >&2
  exit 1
fi
[[ ! -e $log/failed ]]
