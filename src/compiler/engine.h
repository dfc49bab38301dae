// From requests to loaded programs: the cache in front of the pipeline, one compile per key at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/os.h"
#include "cache/cache.h"
#include "compiler/backend.h"
#include "compiler/pipeline.h"
#include "compiler/request.h"
#include "runtime/program.h"

namespace quartet::compiler {

// Where a program came from; the ABI's QUARTET_ORIGIN_* values.
enum class Origin : int32_t { compiled = 1, memory = 2, disk = 3, loaded = 4 };

// A program with its history. Immutable, shared by threads.
struct CompiledProgram {
  std::shared_ptr<const runtime::LoadedProgram> program;
  Request request;  // graph null when loaded from bytes
  std::shared_ptr<const Bytes> artifact;
  Digest key;  // zero when loaded from bytes
  Origin origin = Origin::compiled;
  std::vector<StageTime> times;  // of the compile, empty when it came from a cache
  double compile_seconds = 0;    // key to artifact
  double load_seconds = 0;       // artifact to program, prepare included
};

struct EngineOptions {
  std::string llvm_path;    // of libquartet_llvm.so; empty: beside this library
  int compile_threads = 0;  // 0: one a usable core
};

// Thread-safe.
class Engine {
 public:
  Engine(Os& os, std::shared_ptr<cache::Cache> cache, std::shared_ptr<runtime::Environment> environment,
         EngineOptions options);
  ~Engine();

  // Looks in the program map, the cache and last the pipeline. Equal requests at the same time share one compile. The
  // pipeline runs on a thread of its own with a large stack, whatever the caller's is.
  Result<std::shared_ptr<const CompiledProgram>> compile(const Request& request,
                                                         const std::atomic<bool>* cancelled = nullptr);

  // The program as bytes that need no graph: constants inside.
  Result<Bytes> serialize(const CompiledProgram& program) const;
  // Trusts the bytes as far as running them; their form is checked.
  Result<std::shared_ptr<const CompiledProgram>> load(std::span<const uint8_t> artifact);

  Result<std::string> dump(const CompiledProgram& program, std::string_view stage);
  CodeGenerator& generator() { return llvm_; }
  bool llvm_loaded() const { return llvm_.loaded(); }

 private:
  struct Flight;
  Result<std::shared_ptr<const CompiledProgram>> compile_once(const Request& request, const Bytes& key,
                                                              const std::atomic<bool>* cancelled);

  Os& os_;
  std::shared_ptr<cache::Cache> cache_;
  std::shared_ptr<runtime::Environment> environment_;
  LlvmLibrary llvm_;
  std::mutex mutex_;
  std::unordered_map<Digest, std::weak_ptr<const CompiledProgram>> programs_;
  std::unordered_map<Digest, std::shared_ptr<Flight>> flights_;
};

}  // namespace quartet::compiler
