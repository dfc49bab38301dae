#!/usr/bin/env bash
# check_header.sh HEADER LIBRARY CC CXX: the public header compiles alone, as every language it promises, without a warning;
# included twice in each of two translation units it links into one program against the library.
set -euo pipefail
header=$1 library=$2 cc=$3 cxx=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
warnings=(-Wall -Wextra -pedantic -pedantic-errors -Werror -Wconversion -Wshadow -Wundef)
include=$(dirname "$header")
function=$(sed -n 's/^QUARTET_API uint32_t QUARTET_CALL \(quartet_abi_version\)(void);.*/\1/p' "$header")
[[ -n $function ]] || { echo "quartet_abi_version is not declared"; exit 1; }

# try LANGUAGE STANDARD COMPILER: two units and a link.
try() {
  local suffix=$1 standard=$2 compiler=$3 strict=()
  [[ $suffix == c ]] && strict=(-Wstrict-prototypes -Wmissing-prototypes -Wc++-compat)
  printf '#include <quartet_c.h>\n#include <quartet_c.h>\nint other(void);\nint other(void) { return (int)%s(); }\n' "$function" >"$dir/one.$suffix"
  printf '#include <quartet_c.h>\n#include <quartet_c.h>\nint other(void);\nint main(void) { return other() == (int)%s() ? 0 : 1; }\n' "$function" >"$dir/two.$suffix"
  "$compiler" -x "${suffix/cpp/c++}" "-std=$standard" "${warnings[@]}" "${strict[@]}" -I"$include" "$dir/one.$suffix" "$dir/two.$suffix" \
    -x none "$library" -Wl,-rpath,"$(dirname "$library")" -o "$dir/program"
  echo "$standard: compiles and links with $(basename "$compiler")"
}
for standard in c99 c11 c17; do try c $standard "$cc"; "$dir/program"; done
for standard in c++11 c++17 c++20; do try cpp $standard "$cxx"; "$dir/program"; done

# The C++ layer: alone, in two units of one program, with and without exceptions.
layer=$(dirname "$header")/../bindings/cpp/quartet.hpp
[[ -f $layer ]] || exit 0
for options in -std=c++17 "-std=c++17 -fno-exceptions" "-std=c++20 -fno-exceptions -fno-rtti" -std=c++20; do
  printf '#include <quartet.hpp>\nint other();\nint other() { return static_cast<int>(quartet_abi_version()); }\n' >"$dir/one.cpp"
  printf '#include <quartet.hpp>\nint other();\nint main() {
    const auto context = quartet::Context::create();
    if (!context || context->device_count() == 0) return 1;
    const auto made = quartet::Builder::create(*context).value().dim_text("2*3 + 1");
    return made && made.value() == 7 && other() == static_cast<int>(quartet_abi_version()) ? 0 : 1; }\n' >"$dir/two.cpp"
  read -ra flags <<<"$options"
  "$cxx" "${flags[@]}" "${warnings[@]}" -I"$include" -I"$(dirname "$layer")" "$dir/one.cpp" "$dir/two.cpp" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -o "$dir/program"
  "$dir/program"
  echo "quartet.hpp: compiles and links with $options"
done
