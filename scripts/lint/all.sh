#!/usr/bin/env bash
# Every lint that needs no build; all of them run, the status tells whether one found something.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0
scripts/lint/format.sh || bad=1
python3 scripts/lint/include_edges.py || bad=1
python3 bindings/gen/quartet_header.py check || bad=1
scripts/lint/shell.sh || bad=1
scripts/lint/words.sh || bad=1
exit "$bad"
