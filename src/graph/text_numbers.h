// Elements of constants as text and back, exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/dtype.h"

namespace quartet::graph {

// "1.5", "-7", "true"; "nan", "inf", "-inf"; "bits(0x7fc00001)" for a NaN other than the usual one.
std::string element_text(DType type, const uint8_t* element);

// The element's bytes appended to `out`; false if the text is none of `type`, or an integer out of its range. A decimal
// is rounded once, to nearest even.
bool parse_element(DType type, std::string_view text, Bytes& out);

}  // namespace quartet::graph
