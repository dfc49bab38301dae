// The options of a compile as one value, and the table that describes them (options.def). The table makes the setters,
// the text parser, the documentation and the part of the cache key that options contribute.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"

namespace quartet {

// The numbers are the ABI's QUARTET_OPTION_* values.
enum class OptionId : int32_t {
#define QUARTET_OPTION_BOOL(id, name, ...) name = id,
#define QUARTET_OPTION_INTEGER(id, name, ...) name = id,
#define QUARTET_OPTION_CHOICE(id, name, ...) name = id,
#include "base/options.def"
#undef QUARTET_OPTION_BOOL
#undef QUARTET_OPTION_INTEGER
#undef QUARTET_OPTION_CHOICE
};

enum class OptionType : uint8_t { boolean = 1, integer = 2, choice = 3 };

struct OptionInfo {
  OptionId id{};
  const char* name = "";
  OptionType type = OptionType::boolean;
  int64_t default_value = 0;
  int64_t least = 0, most = 0;  // inclusive; for a choice the indices of its words
  const char* choices = "";     // comma-separated words of a choice
  bool affects_code = false;
  bool affects_load = false;
  const char* doc = "";
};

// In the order of options.def; static storage.
std::span<const OptionInfo> option_table();
const OptionInfo* find_option(OptionId id);
const OptionInfo* find_option(std::string_view name);

// "on" or "off", a decimal number, or a choice's word.
std::string option_text(const OptionInfo& info, int64_t value);

class Options {
 public:
  Options();  // every option at its default

  // unsupported: no such option; invalid_argument: the value is out of range or not understood.
  Status set(OptionId id, int64_t value);
  Status set_text(OptionId id, std::string_view text);
  Status set_named(std::string_view name, std::string_view text);
  Result<int64_t> get(OptionId id) const;

  // One accessor an option: bool, int64_t, or the word of a choice (static storage).
#define QUARTET_OPTION_BOOL(id, name, ...) \
  bool name() const { return value(OptionId::name) != 0; }
#define QUARTET_OPTION_INTEGER(id, name, ...) \
  int64_t name() const { return value(OptionId::name); }
#define QUARTET_OPTION_CHOICE(id, name, ...) \
  std::string_view name() const { return word(OptionId::name); }
#include "base/options.def"
#undef QUARTET_OPTION_BOOL
#undef QUARTET_OPTION_INTEGER
#undef QUARTET_OPTION_CHOICE

  // Every option that affects code, as (id, value) in the table's order: what enters a cache key.
  void write_code_options(ByteWriter& out) const;
  Digest code_digest() const;
  bool operator==(const Options&) const = default;

 private:
  static constexpr size_t kCount = 0
#define QUARTET_OPTION_BOOL(...) +1
#define QUARTET_OPTION_INTEGER(...) +1
#define QUARTET_OPTION_CHOICE(...) +1
#include "base/options.def"
#undef QUARTET_OPTION_BOOL
#undef QUARTET_OPTION_INTEGER
#undef QUARTET_OPTION_CHOICE
      ;
  int64_t value(OptionId id) const;
  std::string_view word(OptionId id) const;

  std::array<int64_t, kCount> values_{};
};

}  // namespace quartet
