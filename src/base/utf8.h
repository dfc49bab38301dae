// UTF-8: what texts that leave the library are in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quartet {

// The length of the UTF-8 sequence at the start of a text that is not empty, 0 if it is none.
size_t utf8_sequence(std::string_view text);
bool is_utf8(std::string_view text);
// The text with the replacement character for each byte that is no part of a sequence.
std::string to_utf8(std::string text);

}  // namespace quartet
