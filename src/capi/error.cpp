#include "capi/error.h"

#include <cstring>

#include "capi/call.h"

namespace quartet::capi {

namespace {

// Lives from before the first call to after the last, whatever the host tears down in between.
template <class T>
union Forever {
  template <class... Args>
  constexpr explicit Forever(Args... args) : value(args...) {}
  constexpr ~Forever() {}  // NOLINT: leaves `value` alone
  T value;
};

constinit Forever<quartet_error> out_of_memory(Code::out_of_memory, "out of memory");
constinit Forever<quartet_error> over_budget(Code::resource_exhausted, "the context's memory budget is used up");

const char* text_of(const std::string& text, size_t* size) {
  if (size != nullptr) *size = text.size();
  return text.c_str();
}

const char* text_of(const char* text, size_t* size) {
  if (size != nullptr) *size = text != nullptr ? std::strlen(text) : 0;
  return text;
}

const Error::Attachment* attachment_of(const quartet_error* error, uint32_t index) {
  error = valid_or_null(error);
  if (error == nullptr || error->is_fixed() || index >= error->error->attachments.size()) return nullptr;
  return &error->error->attachments[index];
}

}  // namespace

quartet_error* out_of_memory_error() noexcept { return &out_of_memory.value; }
quartet_error* budget_error() noexcept { return &over_budget.value; }

quartet_error* make_error_object(const Status& status) noexcept {
  // Error objects may outlive the context and must be possible at the end of its budget: they are nobody's memory.
  const MemoryScope scope(nullptr);
  void* place = ::operator new(sizeof(quartet_error), std::nothrow);
  if (place == nullptr) return out_of_memory_error();
  return ::new (place) quartet_error(status.error());
}

int32_t report_internal(const char* what, quartet_error** error) noexcept {
  const MemoryScope scope(nullptr);
  try {
    return report(make_error(Code::internal, "an exception inside Quartet: %s", what), error);
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = out_of_memory_error();
    return QUARTET_E_OUT_OF_MEMORY;
  }
}

}  // namespace quartet::capi

using quartet::Code;
using quartet::capi::attachment_of;
using quartet::capi::text_of;
using quartet::capi::valid_or_null;

int32_t quartet_error_code(const quartet_error* error) {
  error = valid_or_null(error);
  if (error == nullptr) return QUARTET_OK;
  return static_cast<int32_t>(error->is_fixed() ? error->fixed_code : error->error->code);
}

const char* quartet_error_message(const quartet_error* error, size_t* size) {
  error = valid_or_null(error);
  if (error == nullptr) return text_of("", size);
  return error->is_fixed() ? text_of(error->fixed_message, size) : text_of(error->error->message, size);
}

const char* quartet_error_stage(const quartet_error* error, size_t* size) {
  error = valid_or_null(error);
  if (error == nullptr || error->is_fixed()) return text_of("", size);
  return text_of(error->error->stage, size);
}

int64_t quartet_error_node(const quartet_error* error) {
  error = valid_or_null(error);
  return error == nullptr || error->is_fixed() ? -1 : error->error->node;
}

uint32_t quartet_error_attachment_count(const quartet_error* error) {
  error = valid_or_null(error);
  return error == nullptr || error->is_fixed() ? 0 : static_cast<uint32_t>(error->error->attachments.size());
}

const char* quartet_error_attachment_name(const quartet_error* error, uint32_t index, size_t* size) {
  const auto* attachment = attachment_of(error, index);
  return attachment != nullptr ? text_of(attachment->name, size) : text_of(nullptr, size);
}

const char* quartet_error_attachment_text(const quartet_error* error, uint32_t index, size_t* size) {
  const auto* attachment = attachment_of(error, index);
  return attachment != nullptr ? text_of(attachment->text, size) : text_of(nullptr, size);
}

void quartet_error_retain(quartet_error* error) {
  error = valid_or_null(error);
  if (error != nullptr && !error->is_fixed()) error->retain();
}

void quartet_error_release(quartet_error* error) {
  error = valid_or_null(error);
  if (error != nullptr && !error->is_fixed() && error->drop()) delete error;
}
