#!/usr/bin/env bash
# check_exports.sh LIBRARY EXPECTED_FILE [--sanitized] [--foreign ARCHIVE]...
# The shared library exports exactly the names of EXPECTED_FILE (one a line, sorted), needs nothing but libc, libm and the
# loader, imports nothing but what glibc versions, stays mapped after dlclose, and contains none of the strong symbols that the
# foreign archives define.
set -euo pipefail
library=$1 expected=$2
shift 2
sanitized=0 bad=0 foreign=()
while (($#)); do
  case $1 in
    --sanitized) sanitized=1 ;;
    --foreign) foreign+=("$2"); shift ;;
    *) echo "unknown argument $1" >&2; exit 2 ;;
  esac
  shift
done
fail() { echo "$(basename "$library"): $1"; bad=1; }

actual=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort)
if ! difference=$(diff <(sort "$expected") <(printf '%s\n' "$actual")); then
  fail "exports differ from the expected list (< missing, > too many):"
  head -n 40 <<<"$difference"
fi
if leaked=$(grep -E '^(_ZN?4llvm|LLVM|sqlite3|XXH|_ZN?St|_ZNSt|_ZN7quartet)' <<<"$actual"); then fail "leaks names: $(tr '\n' ' ' <<<"$leaked" | cut -c1-300)"; fi

dynamic=$(readelf -dW "$library")
while read -r need; do
  case $need in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) fail "needs $need" ;;
  esac
done < <(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
grep -q 'FLAGS_1.*NODELETE' <<<"$dynamic" || fail "not marked nodelete"
grep -q 'FLAGS).*SYMBOLIC' <<<"$dynamic" || fail "not linked with -Bsymbolic"
grep -qE 'RUNPATH|RPATH|TEXTREL' <<<"$dynamic" && fail "has a run path or text relocations"
readelf -nW "$library" | grep -q 'Build ID' || fail "has no build id"
# A weak import may be missing at run time and so asks for nothing.
if ((!sanitized)); then
  if imports=$(nm -D --undefined-only "$library" | awk '$1 == "U" {print $2}' | grep -v '@GLIBC_'); then
    fail "imports what glibc does not give: $(tr '\n' ' ' <<<"$imports" | cut -c1-300)"
  fi
fi

all=$(nm --defined-only "$library" | awk '{print $3}' | sort -u)
for archive in "${foreign[@]}"; do
  # Operators new and delete are everybody's: libstdc++ has them, and capi replaces them for its library alone.
  strong=$(nm --defined-only --extern-only "$archive" 2>/dev/null | awk '$2 ~ /^[TDBR]$/ {print $3}' |
    grep -vE '^_Z(n[wa]m|d[la]Pv)' | sort -u)
  [[ -n $strong ]] || fail "$(basename "$archive") defines nothing: the check would prove nothing"
  if found=$(comm -12 <(printf '%s\n' "$all") <(printf '%s\n' "$strong") | grep .); then
    fail "contains code of $(basename "$archive"): $(tr '\n' ' ' <<<"$found" | cut -c1-300)"
  fi
done
((bad)) || echo "$(basename "$library"): $(wc -l <"$expected") exports, needs and imports as they must be"
exit "$bad"
