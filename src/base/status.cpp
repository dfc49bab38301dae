#include "base/status.h"

#include <cstdarg>
#include <cstdio>

#include "base/utf8.h"

namespace quartet {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::out_of_memory:
      return "out_of_memory";
    case Code::resource_exhausted:
      return "resource_exhausted";
    case Code::unsupported:
      return "unsupported";
    case Code::not_found:
      return "not_found";
    case Code::corrupt:
      return "corrupt";
    case Code::io:
      return "io";
    case Code::cancelled:
      return "cancelled";
    case Code::timeout:
      return "timeout";
    case Code::failed_precondition:
      return "failed_precondition";
    case Code::version_mismatch:
      return "version_mismatch";
    case Code::device:
      return "device";
    case Code::compiler:
      return "compiler";
    case Code::internal:
      return "internal";
    case Code::forked:
      return "forked";
  }
  return "unknown";
}

Status::Status(Code code, std::string message) {
  Error error;
  error.code = code;
  error.message = to_utf8(std::move(message));
  error_ = std::make_shared<const Error>(std::move(error));
}

const std::string& Status::message() const {
  static const std::string none;
  return error_ ? error_->message : none;
}

Status Status::with_stage(std::string_view stage) const {
  if (ok() || !error_->stage.empty()) return *this;
  Error copy = *error_;
  copy.stage = stage;
  return Status(std::move(copy));
}

Status Status::with_node(int64_t node) const {
  if (ok() || error_->node >= 0) return *this;
  Error copy = *error_;
  copy.node = node;
  return Status(std::move(copy));
}

Status Status::with_prefix(std::string_view words) const {
  if (ok()) return *this;
  Error copy = *error_;
  copy.message = to_utf8(std::string(words)) + copy.message;
  return Status(std::move(copy));
}

Status Status::with_attachment(std::string name, std::string text) const {
  if (ok()) return *this;
  Error copy = *error_;
  copy.attachments.push_back({std::move(name), std::move(text)});
  return Status(std::move(copy));
}

namespace {
std::string vformat(const char* pattern, va_list args) {
  va_list again;
  va_copy(again, args);
  const int size = std::vsnprintf(nullptr, 0, pattern, args);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  if (size > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}
}  // namespace

std::string format(const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  std::string text = vformat(pattern, args);
  va_end(args);
  return text;
}

Status make_error(Code code, const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  std::string text = vformat(pattern, args);
  va_end(args);
  return Status(code, std::move(text));
}

}  // namespace quartet
