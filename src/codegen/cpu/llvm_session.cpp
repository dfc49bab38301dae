#include "codegen/cpu/llvm_session.h"

#include <csetjmp>
#include <iterator>
#include <mutex>

#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>

namespace quartet::codegen {
namespace {

// Where a fatal error of this thread's work goes.
struct Escape {
  std::jmp_buf target;
  std::string reason;
};
thread_local Escape* current_escape = nullptr;

void on_fatal_error(void* /*user_data*/, const char* reason, bool /*wants_crash_report*/) {
  Escape* const escape = current_escape;
  if (!escape) return;  // not in our work: LLVM ends the process, as it would have
  escape->reason = reason ? reason : "unknown reason";
  std::longjmp(escape->target, 1);  // NOLINT: LLVM is built without exceptions, there is no other way out
}

void set_up() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  // Loop strength reduction undoes the addressing of contractions (spills in their inner loop) and takes a fifth of the
  // time.
  const char* const options[] = {"quartet", "-disable-lsr"};
  llvm::cl::ParseCommandLineOptions(static_cast<int>(std::size(options)), options);
  llvm::install_fatal_error_handler(on_fatal_error);
  llvm::install_bad_alloc_error_handler(on_fatal_error);
}

}  // namespace

Status with_llvm(const std::function<Status()>& work) {
  static std::once_flag once;
  std::call_once(once, set_up);
  Escape escape;
  Escape* const outer = std::exchange(current_escape, &escape);
  Status status;
  if (setjmp(escape.target) == 0) {  // NOLINT: see above
    status = work();
  } else {
    status = Status(Code::compiler, "LLVM gave up: " + escape.reason);
  }
  current_escape = outer;
  return status;
}

}  // namespace quartet::codegen
