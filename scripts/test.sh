#!/usr/bin/env bash
# test.sh [--full | --sanitizers] [--no-setup]
# Builds everything and runs the lints and the tests; ends with ctest's summary; status 0 only if all is well.
#   (nothing)      release build in build/release, lints, clang-tidy on a sample, every test not labelled `long`
#   --full         the same with the long tests and clang-tidy on every file
#   --sanitizers   the tests under ASan and UBSan (build/asan), those labelled `threads` under TSan (build/tsan)
#   --no-setup     installs nothing
set -euo pipefail
cd "$(dirname "$0")/.."

mode=default setup=1
for argument in "$@"; do
  case $argument in
    --full) mode=full ;;
    --sanitizers) mode=sanitizers ;;
    --no-setup) setup=0 ;;
    *) echo "usage: test.sh [--full | --sanitizers] [--no-setup]" >&2; exit 2 ;;
  esac
done
((setup)) && scripts/setup.sh --tests
jobs=$(nproc)

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# build PRESET: configures build/PRESET and builds all of it.
build() {
  step "build $1"
  local output
  output=$(cmake --preset "$1" -DQUARTET_TESTS=ON -DQUARTET_LLVM=ON 2>&1) || { echo "$output"; return 1; }
  cmake --build "build/$1" -j "$jobs"
}

# tests PRESET CTEST_ARGUMENT...: runs them; a run that finds no test fails.
tests() {
  local preset=$1
  shift
  step "tests $preset"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$jobs" "$@"
}

case $mode in
  sanitizers)
    symbolizer=$(command -v llvm-symbolizer-19)
    export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:external_symbolizer_path=$symbolizer"
    export UBSAN_OPTIONS="print_stacktrace=1:external_symbolizer_path=$symbolizer"
    export TSAN_OPTIONS="second_deadlock_stack=1:external_symbolizer_path=$symbolizer"
    build asan
    build tsan
    status=0
    tests asan -LE long || status=1
    tests tsan -L threads -LE long || status=1
    exit "$status"
    ;;
  full)
    step lints
    scripts/lint/all.sh
    build release
    step clang-tidy
    scripts/lint/tidy.sh build/release --all
    QUARTET_TEST_FULL=1 tests release
    ;;
  default)
    step lints
    scripts/lint/all.sh
    build release
    step "clang-tidy, a sample"
    scripts/lint/tidy.sh build/release --sample 40 --seconds 120
    tests release -LE long
    ;;
esac
