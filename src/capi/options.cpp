#include "capi/options.h"

#include <cstring>
#include <memory>

#include "capi/call.h"

namespace quartet::capi {

Result<Options> options_argument(const quartet_options* options) {
  if (options == nullptr) return Options();
  QUARTET_TRY(check_handle(options, "options"));
  return options->values;
}

}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_options_create(quartet_options** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(not_null(out, "out"));
    *out = new quartet_options;
    return {};
  });
}

void quartet_options_destroy(quartet_options* options) { delete valid_or_null(options); }

int32_t quartet_options_set_i64(quartet_options* options, int32_t id, int64_t value, quartet_error** error) {
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_handle(options, "options"));
    return options->values.set(static_cast<OptionId>(id), value);
  });
}

int32_t quartet_options_set_text(quartet_options* options, int32_t id, const char* value, size_t value_size,
                                 quartet_error** error) {
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_handle(options, "options"));
    QUARTET_ASSIGN(const std::string_view text, text_argument(value, value_size, "value"));
    return options->values.set_text(static_cast<OptionId>(id), text);
  });
}

int32_t quartet_options_set_named(quartet_options* options, const char* name, size_t name_size, const char* value,
                                  size_t value_size, quartet_error** error) {
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_handle(options, "options"));
    QUARTET_ASSIGN(const std::string_view key, name_argument(name, name_size, "name"));
    QUARTET_ASSIGN(const std::string_view text, text_argument(value, value_size, "value"));
    return options->values.set_named(key, text);
  });
}

int32_t quartet_options_get_i64(const quartet_options* options, int32_t id, int64_t* out, quartet_error** error) {
  if (out != nullptr) *out = 0;
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_handle(options, "options"));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(*out, options->values.get(static_cast<OptionId>(id)));
    return {};
  });
}

int32_t quartet_options_digest(const quartet_options* options, uint8_t* out16, quartet_error** error) {
  if (out16 != nullptr) std::memset(out16, 0, 16);
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_handle(options, "options"));
    QUARTET_TRY(not_null(out16, "out16"));
    write_digest(options->values.code_digest(), out16);
    return {};
  });
}

uint32_t quartet_option_count() { return static_cast<uint32_t>(option_table().size()); }

int32_t quartet_option_describe(uint32_t index, quartet_option_info* out, quartet_error** error) {
  clear_struct(out);
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_struct(out, "out"));
    if (index >= option_table().size()) {
      return make_error(Code::invalid_argument, "index is %u, but there are %zu options", index, option_table().size());
    }
    const OptionInfo& row = option_table()[index];
    quartet_option_info info{};
    info.id = static_cast<int32_t>(row.id);
    info.type = static_cast<int32_t>(row.type);
    info.affects_code = row.affects_code ? 1 : 0;
    info.affects_load = row.affects_load ? 1 : 0;
    info.name = row.name;
    info.doc = row.doc;
    info.choices = row.choices;
    info.default_value = row.default_value;
    info.least = row.least;
    info.most = row.most;
    write_struct(out, info);
    return {};
  });
}
