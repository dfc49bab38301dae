// Error objects: a Status that crosses the interface, and two that need no memory.
#pragma once

#include <memory>

#include "base/status.h"
#include "capi/handle.h"
#include "quartet_c.h"

struct quartet_error : quartet::capi::SharedHandle<quartet::capi::HandleKind::error> {
  explicit quartet_error(std::shared_ptr<const quartet::Error> failure) : error(std::move(failure)) {}
  constexpr quartet_error(quartet::Code code, const char* message) : fixed_code(code), fixed_message(message) {}

  bool is_fixed() const { return fixed_message != nullptr; }

  std::shared_ptr<const quartet::Error> error;  // null for the fixed ones, which are never freed
  quartet::Code fixed_code = quartet::Code::ok;
  const char* fixed_message = nullptr;
};

namespace quartet::capi {

// An owned object; the fixed out-of-memory error if there is no memory for one.
quartet_error* make_error_object(const Status& status) noexcept;
quartet_error* out_of_memory_error() noexcept;
quartet_error* budget_error() noexcept;
// A bug: an exception that nothing in Quartet means to throw.
int32_t report_internal(const char* what, quartet_error** error) noexcept;

}  // namespace quartet::capi
