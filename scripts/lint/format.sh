#!/usr/bin/env bash
# Fails if clang-format would change a C or C++ file of the repository; with --fix it changes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=(--dry-run --Werror)
[[ ${1:-} == --fix ]] && mode=(-i)
mapfile -t files < <(git ls-files -co --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp')
existing=()
for file in "${files[@]}"; do [[ -f $file ]] && existing+=("$file"); done
if ((${#existing[@]})); then clang-format-19 "${mode[@]}" "${existing[@]}"; fi
echo "format: ${#existing[@]} files"
