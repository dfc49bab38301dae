// What the tests of the C interface share: owned handles, a counting heap, small graphs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "quartet_c.h"

namespace quartet::capi_test {

// An error slot that reads as words and frees what it got.
class Error {
 public:
  ~Error() { quartet_error_release(error_); }
  quartet_error** out() {
    quartet_error_release(error_);
    error_ = nullptr;
    return &error_;
  }
  quartet_error* get() const { return error_; }
  int32_t code() const { return quartet_error_code(error_); }
  std::string message() const { return quartet_error_message(error_, nullptr); }

 private:
  quartet_error* error_ = nullptr;
};

// ok(status, error): a gtest assertion with the error's words.
inline testing::AssertionResult is_ok(int32_t status, const Error& error) {
  if (status == QUARTET_OK && error.get() == nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << quartet_status_name(status, nullptr) << ": " << error.message();
}
inline testing::AssertionResult fails(int32_t status, const Error& error, int32_t wanted, std::string_view words) {
  if (status != wanted) {
    return testing::AssertionFailure() << quartet_status_name(status, nullptr) << " instead of "
                                       << quartet_status_name(wanted, nullptr) << ": " << error.message();
  }
  if (error.code() != wanted) return testing::AssertionFailure() << "error object says " << error.code();
  if (error.message().find(words) == std::string::npos) {
    return testing::AssertionFailure() << "'" << error.message() << "' lacks '" << words << "'";
  }
  return testing::AssertionSuccess();
}

template <auto Release>
struct Releaser {
  template <class T>
  void operator()(T* handle) const {
    Release(handle);
  }
};
using Blob = std::unique_ptr<quartet_blob, Releaser<quartet_blob_release>>;
using OptionsHandle = std::unique_ptr<quartet_options, Releaser<quartet_options_destroy>>;
using Context = std::unique_ptr<quartet_context, Releaser<quartet_context_release>>;
using Builder = std::unique_ptr<quartet_builder, Releaser<quartet_builder_destroy>>;
using Graph = std::unique_ptr<quartet_graph, Releaser<quartet_graph_release>>;
using Program = std::unique_ptr<quartet_program, Releaser<quartet_program_release>>;
using Buffer = std::unique_ptr<quartet_buffer, Releaser<quartet_buffer_release>>;
using Binding = std::unique_ptr<quartet_binding, Releaser<quartet_binding_destroy>>;
using Future = std::unique_ptr<quartet_future, Releaser<quartet_future_release>>;

template <class T>
T make_struct() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

inline std::string text_of(const Blob& blob) {
  size_t size = 0;
  const auto* data = static_cast<const char*>(quartet_blob_data(blob.get(), &size));
  return data != nullptr ? std::string(data, size) : std::string();
}

// A description with the code generator of this build.
quartet_context_desc context_desc();
Context make_context(const quartet_context_desc* desc = nullptr);
Graph parse_graph(quartet_context* context, std::string_view text);
// relu(x * w + b) over [rows, 4] with weights [4, 3].
Graph make_mlp(quartet_context* context);
inline constexpr std::string_view kExpGraph =
    "graph @main(%x: f32[4]) -> (f32[4]) {\n  %y = exp %x : f32[4]\n  return %y as \"y\"\n}\n";

// A host's allocator that counts, checks sizes on free, and can refuse.
class HostHeap {
 public:
  quartet_allocator allocator();
  // The n-th allocation from now (0 is the next), and all after it if `persistent`, gets nothing. Negative: none.
  void fail_at(int64_t n, bool persistent = false) {
    persistent_ = persistent;
    countdown_ = n;
  }
  bool refused() const { return refused_.load(); }
  void forget_refusal() { refused_ = false; }
  size_t live() const;
  int frees_of_user() const { return user_frees_.load(); }
  int mistakes() const { return mistakes_.load(); }

 private:
  static void* QUARTET_CALL alloc(void* user, size_t size, size_t align);
  static void QUARTET_CALL dealloc(void* user, void* memory, size_t size, size_t align);
  static void QUARTET_CALL free_user(void* user);

  mutable std::mutex mutex_;
  std::map<void*, std::pair<size_t, size_t>> blocks_;
  std::atomic<int64_t> countdown_{-1};
  std::atomic<bool> persistent_{false}, refused_{false};
  std::atomic<int> user_frees_{0}, mistakes_{0};
};

// Tensors over host memory.
quartet_tensor tensor_of(std::vector<float>& values, std::initializer_list<int64_t> dims);
quartet_tensor empty_tensor();

}  // namespace quartet::capi_test
