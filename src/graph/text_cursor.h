// Reading text: a place in it, and the small things of the graph's text form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quartet::graph {

// Letters, digits, '_', '.', '/' and '-', not only digits and no '.' or '-' first: what needs no quotes as a name.
bool is_plain_name(std::string_view name);
// In double quotes; '"', '\' and bytes below space are escaped (\" \\ \n \t \xNN).
std::string quote(std::string_view text);
std::string identifier_or_quoted(std::string_view name);

class TextCursor {
 public:
  explicit TextCursor(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  size_t offset() const { return at_; }
  // Past white space and comments ('#' to the end of the line).
  void skip_space();
  bool at_end();
  // The next character after white space, or 0.
  char peek();
  // Takes a punctuation text if it comes next.
  bool take(std::string_view punctuation);
  // Takes a word (letters, digits, '_') if it comes next, whole.
  bool take_word(std::string_view word);
  Status expect(std::string_view punctuation);
  // A word; empty if none comes.
  std::string_view word();
  // A plain or quoted name; `quoted`, if given, says which.
  Result<std::string> name(bool* quoted = nullptr);
  Result<std::string> string();
  // The text up to the first of `stops` outside parentheses; at least one character, without white space around it.
  Result<std::string_view> until(std::string_view stops);
  Result<int64_t> integer();
  // Past a block: from '{' to its '}'.
  Status skip_block();

  // "line 3, column 7: " and the words.
  Status error(const std::string& what) const;

 private:
  std::string_view text_;
  size_t at_;
};

}  // namespace quartet::graph
