#include "graph/text_cursor.h"

#include <algorithm>
#include <charconv>

namespace quartet::graph {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }
bool is_plain(char c) { return is_word(c) || c == '.' || c == '/' || c == '-'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr char kHex[] = "0123456789abcdef";

std::optional<int> hex_digit(char c) {
  const auto* end = kHex + 16;
  const auto* found = std::find(kHex, end, c);
  return found == end ? std::nullopt : std::optional(static_cast<int>(found - kHex));
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && (is_word(name.front()) || name.front() == '/') &&
         std::all_of(name.begin(), name.end(), is_plain) && !std::all_of(name.begin(), name.end(), is_digit);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string identifier_or_quoted(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quote(name);
}

void TextCursor::skip_space() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
    else if (is_space(text_[at_]))
      ++at_;
    else
      return;
  }
}

bool TextCursor::at_end() {
  skip_space();
  return at_ == text_.size();
}

char TextCursor::peek() { return at_end() ? '\0' : text_[at_]; }

bool TextCursor::take(std::string_view punctuation) {
  skip_space();
  if (!text_.substr(at_).starts_with(punctuation)) return false;
  at_ += punctuation.size();
  return true;
}

bool TextCursor::take_word(std::string_view word) {
  const size_t before = at_;
  if (this->word() == word) return true;
  at_ = before;
  return false;
}

Status TextCursor::expect(std::string_view punctuation) {
  if (take(punctuation)) return {};
  return error("'" + std::string(punctuation) + "' expected");
}

std::string_view TextCursor::word() {
  skip_space();
  const size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<std::string> TextCursor::name(bool* quoted) {
  skip_space();
  const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
  if (quoted) *quoted = is_quoted;
  if (is_quoted) return string();
  const size_t begin = at_;
  while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
  if (at_ == begin) return error("a name expected");
  return std::string(text_.substr(begin, at_ - begin));
}

Result<std::string> TextCursor::string() {
  QUARTET_TRY(expect("\""));
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      } else if (c == 'x') {
        const auto high = at_ < text_.size() ? hex_digit(text_[at_]) : std::nullopt;
        const auto low = at_ + 1 < text_.size() ? hex_digit(text_[at_ + 1]) : std::nullopt;
        if (!high || !low) return error("two hexadecimal digits expected");
        c = static_cast<char>(*high * 16 + *low);
        at_ += 2;
      } else if (c != '"' && c != '\\') {
        return error("an unknown escape");
      }
    }
    out += c;
  }
  if (at_ == text_.size()) return error("a text without its end");
  ++at_;
  return out;
}

Result<std::string_view> TextCursor::until(std::string_view stops) {
  skip_space();
  const size_t begin = at_;
  int depth = 0;
  while (at_ < text_.size() && (depth > 0 || stops.find(text_[at_]) == std::string_view::npos)) {
    if (text_[at_] == '(') ++depth;
    if (text_[at_] == ')') --depth;
    if (depth < 0) break;
    ++at_;
  }
  size_t end = at_;
  while (end > begin && is_space(text_[end - 1])) --end;
  if (end == begin) return error("a value expected");
  return text_.substr(begin, end - begin);
}

Result<int64_t> TextCursor::integer() {
  skip_space();
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (failure != std::errc()) return error("an integer expected");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

Status TextCursor::skip_block() {
  QUARTET_TRY(expect("{"));
  for (int depth = 1; depth > 0;) {
    const char c = peek();
    if (c == '\0') return error("a block without its end");
    if (c == '"') {
      QUARTET_TRY(string().status());
      continue;
    }
    if (c == '{') ++depth;
    if (c == '}') --depth;
    ++at_;
  }
  return {};
}

Status TextCursor::error(const std::string& what) const {
  const size_t at = std::min(at_, text_.size());
  const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  const size_t start = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const size_t column = start == std::string_view::npos ? at + 1 : at - start;
  return make_error(Code::invalid_argument, "line %lld, column %zu: %s", static_cast<long long>(line), column,
                    what.c_str());
}

}  // namespace quartet::graph
