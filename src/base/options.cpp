#include "base/options.h"

#include <algorithm>
#include <charconv>

namespace quartet {

namespace {

constexpr bool yes = true;
constexpr bool no = false;

constexpr int64_t word_count(std::string_view list) { return std::count(list.begin(), list.end(), ',') + 1; }

constexpr OptionInfo kTable[] = {
#define QUARTET_OPTION_BOOL(id, name, initial, code, load, doc) \
  {OptionId::name, #name, OptionType::boolean, initial, 0, 1, "", code, load, doc},
#define QUARTET_OPTION_INTEGER(id, name, initial, least, most, code, load, doc) \
  {OptionId::name, #name, OptionType::integer, initial, least, most, "", code, load, doc},
#define QUARTET_OPTION_CHOICE(id, name, initial, words, code, load, doc) \
  {OptionId::name, #name, OptionType::choice, initial, 0, word_count(words) - 1, words, code, load, doc},
#include "base/options.def"
#undef QUARTET_OPTION_BOOL
#undef QUARTET_OPTION_INTEGER
#undef QUARTET_OPTION_CHOICE
};

constexpr bool table_is_sound() {
  for (size_t i = 0; i < std::size(kTable); ++i) {
    const OptionInfo& row = kTable[i];
    if (row.default_value < row.least || row.default_value > row.most) return false;
    for (size_t j = 0; j < i; ++j) {
      if (kTable[j].id == row.id || std::string_view(kTable[j].name) == row.name) return false;
    }
  }
  return true;
}
static_assert(table_is_sound(), "options.def: an id or name occurs twice, or a default is out of range");

std::string_view nth_word(std::string_view list, int64_t index) {
  for (; index > 0; --index) list.remove_prefix(list.find(',') + 1);
  return list.substr(0, list.find(','));
}

Status unknown_value(const OptionInfo& info, std::string_view text) {
  const int size = static_cast<int>(std::min<size_t>(text.size(), 80));
  switch (info.type) {
    case OptionType::boolean:
      return make_error(Code::invalid_argument, "option %s: '%.*s' is neither on nor off", info.name, size,
                        text.data());
    case OptionType::integer:
      return make_error(Code::invalid_argument, "option %s: '%.*s' is not a whole number from %lld to %lld", info.name,
                        size, text.data(), static_cast<long long>(info.least), static_cast<long long>(info.most));
    case OptionType::choice:
      break;
  }
  return make_error(Code::invalid_argument, "option %s: '%.*s' is none of %s", info.name, size, text.data(),
                    info.choices);
}

Result<int64_t> parse_value(const OptionInfo& info, std::string_view text) {
  switch (info.type) {
    case OptionType::boolean:
      if (text == "on" || text == "true" || text == "1") return int64_t{1};
      if (text == "off" || text == "false" || text == "0") return int64_t{0};
      break;
    case OptionType::integer: {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) return value;
      break;
    }
    case OptionType::choice:
      for (int64_t i = 0; i <= info.most; ++i) {
        if (nth_word(info.choices, i) == text) return i;
      }
      break;
  }
  return unknown_value(info, text);
}

Status unknown_option(OptionId id) {
  return make_error(Code::unsupported, "there is no option number %d", static_cast<int>(id));
}

}  // namespace

std::span<const OptionInfo> option_table() { return kTable; }

const OptionInfo* find_option(OptionId id) {
  for (const OptionInfo& row : kTable) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

const OptionInfo* find_option(std::string_view name) {
  for (const OptionInfo& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string option_text(const OptionInfo& info, int64_t value) {
  switch (info.type) {
    case OptionType::boolean:
      return value != 0 ? "on" : "off";
    case OptionType::integer:
      return std::to_string(value);
    case OptionType::choice:
      break;
  }
  return std::string(nth_word(info.choices, std::clamp(value, info.least, info.most)));
}

Options::Options() {
  static_assert(std::size(kTable) == kCount);
  for (size_t i = 0; i < kCount; ++i) values_[i] = kTable[i].default_value;
}

Status Options::set(OptionId id, int64_t value) {
  const OptionInfo* info = find_option(id);
  if (info == nullptr) return unknown_option(id);
  if (value < info->least || value > info->most) return unknown_value(*info, std::to_string(value));
  values_[static_cast<size_t>(info - kTable)] = value;
  return {};
}

Status Options::set_text(OptionId id, std::string_view text) {
  const OptionInfo* info = find_option(id);
  if (info == nullptr) return unknown_option(id);
  QUARTET_ASSIGN(const int64_t value, parse_value(*info, text));
  return set(id, value);
}

Status Options::set_named(std::string_view name, std::string_view text) {
  const OptionInfo* info = find_option(name);
  if (info == nullptr) {
    std::string names;
    for (const OptionInfo& row : kTable) names += (names.empty() ? "" : ", ") + std::string(row.name);
    return make_error(Code::unsupported, "there is no option '%.*s'; there are %s",
                      static_cast<int>(std::min<size_t>(name.size(), 80)), name.data(), names.c_str());
  }
  return set_text(info->id, text);
}

Result<int64_t> Options::get(OptionId id) const {
  const OptionInfo* info = find_option(id);
  if (info == nullptr) return unknown_option(id);
  return values_[static_cast<size_t>(info - kTable)];
}

int64_t Options::value(OptionId id) const { return values_[static_cast<size_t>(find_option(id) - kTable)]; }

std::string_view Options::word(OptionId id) const { return nth_word(find_option(id)->choices, value(id)); }

void Options::write_code_options(ByteWriter& out) const {
  for (size_t i = 0; i < kCount; ++i) {
    if (!kTable[i].affects_code) continue;
    out.i32(static_cast<int32_t>(kTable[i].id));
    out.i64(values_[i]);
  }
}

Digest Options::code_digest() const {
  ByteWriter out;
  write_code_options(out);
  return digest_of(out.data());
}

}  // namespace quartet
