#!/usr/bin/env bash
# Every shell script parses, stops at the first error and can be executed.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0 count=0
while IFS= read -r file; do
  [[ -f $file ]] || continue
  count=$((count + 1))
  bash -n "$file" || bad=1
  grep -q '^set -euo pipefail' "$file" || { echo "$file: no 'set -euo pipefail'"; bad=1; }
  [[ -x $file ]] || { echo "$file: not executable"; bad=1; }
done < <(git ls-files -co --exclude-standard -- '*.sh' .ci/run)
echo "shell: $count scripts"
exit "$bad"
