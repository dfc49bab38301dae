#include "capi/json.h"

#include <cstdio>

#include "base/utf8.h"

namespace quartet::capi {

// Bytes that are not UTF-8 become the replacement character.
void JsonWriter::quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    const char c = text[0];
    if (length == 0) {
      out_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out_ += escape;
    } else {
      out_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

}  // namespace quartet::capi
