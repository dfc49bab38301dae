// Status and Result: how every fallible function in Quartet reports failure.
//
// A failure carries a code, a sentence for a person that names the op, the value and the reason, and optionally the
// stage and graph node it belongs to and attached logs. Statuses are cheap when ok (a null pointer) and shared when
// not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quartet {

// The numbers are the ABI's QUARTET_* status values; append only.
enum class Code : int32_t {
  ok = 0,
  invalid_argument = 1,      // the caller's value is wrong: null, shape, type, name
  out_of_memory = 2,         // an allocation failed
  resource_exhausted = 3,    // a stated limit or budget would be passed
  unsupported = 4,           // well formed, but this build or target cannot do it
  not_found = 5,             // no such name, file, device or entry
  corrupt = 6,               // bytes that are not what they claim to be
  io = 7,                    // the operating system refused
  cancelled = 8,             // the caller asked to stop
  timeout = 9,               // not finished within the given time
  failed_precondition = 10,  // right call, wrong state (a spent builder, an unset binding)
  version_mismatch = 11,     // two parts that do not belong together
  device = 12,               // a driver or device failed
  compiler = 13,             // a backend compiler failed
  internal = 14,             // a Quartet invariant broke: a bug
  forked = 15,               // the object belongs to the parent process
};

// Lower-case name of a code, e.g. "invalid_argument"; static storage.
const char* code_name(Code code);

struct Error {
  Code code = Code::internal;
  std::string message;
  std::string stage;  // "import", "graph", "codegen", ... or empty
  int64_t node = -1;  // graph op the error is about, or -1
  struct Attachment {
    std::string name, text;
  };
  std::vector<Attachment> attachments;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  explicit Status(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  Code code() const { return error_ ? error_->code : Code::ok; }
  const std::string& message() const;
  // Null when ok.
  const std::shared_ptr<const Error>& error() const { return error_; }

  // The same failure with a stage or node added where none was set, or with words before the message. No-ops when ok.
  Status with_stage(std::string_view stage) const;
  Status with_node(int64_t node) const;
  Status with_prefix(std::string_view words) const;
  Status with_attachment(std::string name, std::string text) const;

 private:
  std::shared_ptr<const Error> error_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status(Code::internal, "a Result was made from an ok Status");
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// printf-style message building.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);
[[gnu::format(printf, 2, 3)]] Status make_error(Code code, const char* pattern, ...);

#define QUARTET_CONCAT_INNER(a, b) a##b
#define QUARTET_CONCAT(a, b) QUARTET_CONCAT_INNER(a, b)

// Returns the failure of a Status expression from the enclosing function.
#define QUARTET_TRY(expression)                                                                       \
  do {                                                                                                \
    if (::quartet::Status quartet_status = (expression); !quartet_status.ok()) return quartet_status; \
  } while (false)

// Declares `variable` from a Result expression, or returns its failure.
#define QUARTET_ASSIGN(variable, expression)                                                                      \
  auto QUARTET_CONCAT(quartet_result_, __LINE__) = (expression);                                                  \
  if (!QUARTET_CONCAT(quartet_result_, __LINE__).ok()) return QUARTET_CONCAT(quartet_result_, __LINE__).status(); \
  variable = QUARTET_CONCAT(quartet_result_, __LINE__).take()

}  // namespace quartet
