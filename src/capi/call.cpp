#include "capi/call.h"

#include <algorithm>
#include <new>

#include "capi/error.h"

namespace quartet::capi {

namespace {

// No struct of the interface comes near this: more is a struct_size never set.
constexpr uint32_t kLargestStruct = 4096;

}  // namespace

int32_t report(const Status& status, quartet_error** error) noexcept {
  if (status.ok()) return QUARTET_OK;
  if (error != nullptr) *error = make_error_object(status);
  return static_cast<int32_t>(status.code());
}

int32_t report_exception(quartet_error** error) noexcept {
  try {
    throw;
  } catch (const BudgetExceeded&) {
    if (error != nullptr) *error = budget_error();
    return QUARTET_E_RESOURCE_EXHAUSTED;
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = out_of_memory_error();
    return QUARTET_E_OUT_OF_MEMORY;
  } catch (const std::exception& problem) {
    return report_internal(problem.what(), error);
  } catch (...) {
    return report_internal("an exception of unknown type", error);
  }
}

namespace {

struct FixedStatuses {
  Status out_of_memory{Code::out_of_memory, "out of memory"};
  Status over_budget{Code::resource_exhausted, "the context's memory budget is used up"};
};

const FixedStatuses& fixed_statuses() {
  static const FixedStatuses* const statuses = [] {
    const MemoryScope nobody(nullptr);
    return new FixedStatuses;  // for the life of the process
  }();
  return *statuses;
}

}  // namespace

void prepare_for_failure() { fixed_statuses(); }

Status status_of_exception() noexcept {
  try {
    throw;
  } catch (const BudgetExceeded&) {
    return fixed_statuses().over_budget;
  } catch (const std::bad_alloc&) {
    return fixed_statuses().out_of_memory;
  } catch (const std::exception& problem) {
    const MemoryScope nobody(nullptr);
    try {
      return make_error(Code::internal, "an exception inside Quartet: %s", problem.what());
    } catch (const std::bad_alloc&) {
      return fixed_statuses().out_of_memory;
    }
  }
}

Status not_null(const void* pointer, const char* parameter) {
  if (pointer != nullptr) return {};
  return make_error(Code::invalid_argument, "%s is NULL", parameter);
}

void write_digest(const Digest& digest, uint8_t* out16) {
  for (size_t i = 0; i < 8; ++i) {
    out16[i] = static_cast<uint8_t>(digest.hi >> (56 - 8 * i));
    out16[8 + i] = static_cast<uint8_t>(digest.lo >> (56 - 8 * i));
  }
}

Result<std::string_view> text_argument(const char* text, size_t size, const char* parameter) {
  if (text == nullptr) {
    if (size == 0) return std::string_view();
    return make_error(Code::invalid_argument, "%s is NULL", parameter);
  }
  if (size == SIZE_MAX) return std::string_view(text);
  if (size > PTRDIFF_MAX) return make_error(Code::invalid_argument, "%s: a size of %zu bytes", parameter, size);
  return std::string_view(text, size);
}

Result<std::string_view> name_argument(const char* text, size_t size, const char* parameter) {
  QUARTET_ASSIGN(const std::string_view view, text_argument(text, size, parameter));
  if (text == nullptr) return make_error(Code::invalid_argument, "%s is NULL", parameter);
  if (view.empty()) return make_error(Code::invalid_argument, "%s is empty", parameter);
  if (view.find('\0') != std::string_view::npos) {
    return make_error(Code::invalid_argument, "%s has a NUL at byte %zu", parameter, view.find('\0'));
  }
  return view;
}

Result<std::span<const uint8_t>> bytes_argument(const void* bytes, size_t size) {
  if (bytes == nullptr && size != 0) return Status(Code::invalid_argument, "bytes is NULL");
  if (size > PTRDIFF_MAX) return make_error(Code::invalid_argument, "size is %zu", size);
  return std::span(static_cast<const uint8_t*>(bytes), size);
}

bool is_struct_size(uint32_t size, size_t least) noexcept { return size >= least && size <= kLargestStruct; }

Status check_struct_size(uint32_t size, size_t least, const char* name) {
  if (is_struct_size(size, least)) return {};
  return make_error(Code::invalid_argument, "%s: struct_size is %u; set it to sizeof, at least %zu", name, size, least);
}

Status check_struct_tail(const void* data, uint32_t size, size_t known, const char* name) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return make_error(Code::unsupported, "%s: byte %zu is set, but this library knows %zu bytes only", name, i,
                        known);
    }
  }
  return {};
}

}  // namespace quartet::capi
