#!/usr/bin/env bash
# Words and paths that may not be in the repository: promises instead of work, paths of one machine, package registries and
# proxies (what is installed comes by its name from the system's own sources), files that grew beyond 700 lines.
set -euo pipefail
cd "$(dirname "$0")/../.."
self=':!scripts/lint/words.sh'
bad=0

# forbid WHAT PATTERN [PATHSPEC...]: no text file of the repository matches the extended regular expression.
forbid() {
  local what=$1 pattern=$2
  shift 2
  if git grep --untracked -InE -e "$pattern" -- "$self" "$@"; then
    echo "words: $what (above)"
    bad=1
  fi
}

forbid 'a promise instead of work' '\b(TODO|FIXME|XXX|HACK)\b|[Nn]ot (yet )?implemented|\b[Ff]or now\b' '*.h' '*.hpp' '*.c' '*.cpp' '*.def' \
  '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.md' '*.rs' '*.go' '*.java'
forbid 'a path of one machine' '(^|[^A-Za-z0-9_.])/(work|farm|root|home|Users)/[A-Za-z]|/tmp/build-'
forbid 'a registry, mirror or proxy' 'registry\.npmjs|pypi\.org/simple|files\.pythonhosted|proxy\.golang|index-url|--registry|https?_proxy|[0-9]{1,3}(\.[0-9]{1,3}){3}:[0-9]+'
forbid 'how the tree was made instead of what it is' '\b([Ss]ubagent|[Dd]eveloper session|[Tt]his session|CEO)\b'
forbid 'a test that cannot fail' '(EXPECT|ASSERT)_TRUE\(true\)' 'tests/*'

# A DISABLED_ test is a long one: its folder's CMake code must run it, by --gtest_also_run_disabled_tests, under the label `long`.
while IFS= read -r file; do
  if ! grep -qs 'gtest_also_run_disabled_tests' "$(dirname "$file")"/{folder.cmake,CMakeLists.txt}; then
    echo "words: $file has a DISABLED_ test that ctest never runs"
    bad=1
  fi
done < <(git grep --untracked -lE '\bDISABLED_[A-Z]' -- 'tests/*.cpp')

# The two public headers are one file each for their users' sake.
while IFS= read -r file; do
  [[ -f $file && $file != include/quartet_c.h && $file != bindings/cpp/quartet.hpp ]] || continue
  lines=$(wc -l <"$file")
  if ((lines > 700)); then
    echo "words: $file has $lines lines; one concept per file"
    bad=1
  fi
done < <(git ls-files -co --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp' '*.py' '*.sh')
((bad)) || echo "words: clean"
exit "$bad"
