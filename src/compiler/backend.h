// The code generator as the pipeline sees it: requests in, responses out, perhaps several at once.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/os.h"
#include "codegen/request.h"

namespace quartet::compiler {

class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  // Answers each request, in order. The requests may be worked on in parallel.
  virtual std::vector<Result<codegen::Response>> generate(const std::vector<codegen::Request>& requests) = 0;
};

// libquartet_llvm.so, opened at the first request. Looked for at `path` if given, else beside the library that holds
// this code. Never closed: LLVM does not unload cleanly.
class LlvmLibrary final : public CodeGenerator {
 public:
  // `threads`: how many requests to work on at once, the caller's thread included.
  LlvmLibrary(Os& os, std::string path, int threads) : os_(os), path_(std::move(path)), threads_(threads) {}
  std::vector<Result<codegen::Response>> generate(const std::vector<codegen::Request>& requests) override;
  // Whether the library has been opened: a warm start must not.
  bool loaded() const;

 private:
  Result<codegen::CompileFunction> open();

  Os& os_;
  std::string path_;
  int threads_;
  mutable std::mutex mutex_;
  codegen::CompileFunction function_ = nullptr;
};

// Runs `work(0) .. work(count - 1)` on up to `threads` threads with stacks large enough for LLVM (16 MiB), none of them
// the caller's, and waits. A thread that cannot be made is done without; if none can, the caller does the work. What
// `work` throws is thrown again here.
void run_with_large_stacks(int threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace quartet::compiler
