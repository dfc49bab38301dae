#pragma once

namespace quartet {

/// 32 hexadecimal digits that name this build of the compile path: a hash of its sources, the compiler's flags and the
/// version of LLVM. Part of every cache key; two libraries of ours work together only if they agree on it.
const char* compiler_id();

}  // namespace quartet
