#include "base/utf8.h"

namespace quartet {

size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_great = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_great ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string text) {
  if (is_utf8(text)) return text;
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = utf8_sequence(rest);
    if (length == 0)
      out += "\xef\xbf\xbd";
    else
      out += rest.substr(0, length);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace quartet
