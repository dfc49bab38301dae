#include "compiler/backend.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>

namespace quartet::compiler {

namespace {

constexpr size_t kStackBytes = size_t{16} << 20;

// The folder of the shared library (or program) that holds this function.
std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

struct Job {
  std::atomic<size_t> next{0};
  size_t count = 0;
  const std::function<void(size_t)>* work = nullptr;

  std::mutex mutex;
  std::exception_ptr failure;  // the first exception, for the caller

  void run() {
    try {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*work)(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
};

void* run_job(void* job) {
  static_cast<Job*>(job)->run();
  return nullptr;
}

}  // namespace

void run_with_large_stacks(int threads, size_t count, const std::function<void(size_t)>& work) {
  Job job;
  job.count = count;
  job.work = &work;
  pthread_attr_t attributes;
  std::vector<pthread_t> started;
  if (pthread_attr_init(&attributes) == 0) {
    if (pthread_attr_setstacksize(&attributes, kStackBytes) == 0) {
      const size_t wanted = std::min(count, static_cast<size_t>(std::max(threads, 1)));
      for (size_t i = 0; i < wanted; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, run_job, &job) != 0) break;
        started.push_back(thread);
      }
    }
    pthread_attr_destroy(&attributes);
  }
  if (started.empty()) job.run();
  for (const pthread_t thread : started) pthread_join(thread, nullptr);
  if (job.failure) std::rethrow_exception(job.failure);
}

bool LlvmLibrary::loaded() const {
  const std::lock_guard lock(mutex_);
  return function_ != nullptr;
}

Result<codegen::CompileFunction> LlvmLibrary::open() {
  const std::lock_guard lock(mutex_);
  if (function_) return function_;
  const std::string path = path_.empty() ? own_folder() + "libquartet_llvm.so" : path_;
  auto library = os_.open_library(path);
  if (!library.ok())
    return library.status().with_prefix(
        "the CPU code generator cannot be opened (programs already in the cache still run): ");
  QUARTET_ASSIGN(void* const symbol, os_.library_symbol(*library, codegen::kCompileFunctionName));
  function_ = reinterpret_cast<codegen::CompileFunction>(symbol);
  return function_;
}

std::vector<Result<codegen::Response>> LlvmLibrary::generate(const std::vector<codegen::Request>& requests) {
  const auto function = open();
  if (!function.ok()) return std::vector<Result<codegen::Response>>(requests.size(), function.status());
  std::vector<Result<codegen::Response>> responses(requests.size(),
                                                   make_error(Code::internal, "the code generator gave no answer"));
  run_with_large_stacks(threads_, requests.size(), [&](size_t i) {
    const Bytes bytes = codegen::serialize(requests[i]);
    uint8_t* answer = nullptr;
    uint64_t size = 0;
    if ((*function)(bytes.data(), bytes.size(), &answer, &size) != 0) {
      responses[i] = make_error(Code::out_of_memory, "the code generator has no memory for its answer");
      return;
    }
    const std::unique_ptr<uint8_t, void (*)(void*)> owner(answer, std::free);
    responses[i] = codegen::read_response({answer, static_cast<size_t>(size)});
  });
  return responses;
}

}  // namespace quartet::compiler
