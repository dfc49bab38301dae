// From requests to loaded programs: the cache in front of the pipeline, one compile per key at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/os.h"
#include "cache/cache.h"
#include "compiler/backend.h"
#include "compiler/pipeline.h"
#include "compiler/request.h"
#include "runtime/program.h"

namespace quartet::compiler {

// Where a program came from; the ABI's QUARTET_ORIGIN_* values.
enum class Origin : int32_t { compiled = 1, memory = 2, disk = 3, bytes = 4 };

// A program with its history. Immutable, shared by threads.
struct CompiledProgram {
  std::shared_ptr<const runtime::LoadedProgram> program;
  Request request;                        // graph null when loaded from bytes
  std::shared_ptr<const Bytes> artifact;  // as compiled: constants by digest
  Digest key;                             // zero when loaded from bytes
  Origin origin = Origin::compiled;
  std::vector<StageTime> times;  // of the compile, empty when it came from a cache
  double compile_seconds = 0;    // of the compile that made the code, wherever that happened
  double load_seconds = 0;       // from the look-up or the bytes to a program ready to run
};
using ProgramPtr = std::shared_ptr<const CompiledProgram>;

struct EngineOptions {
  std::string llvm_path;                          // of libquartet_llvm.so; empty: beside this library
  int compile_threads = 0;                        // 0: one a usable core
  std::shared_ptr<runtime::Allocator> allocator;  // null: the system's
  std::shared_ptr<runtime::WorkerPool> pool;      // for prepare; null: the calling thread alone
  int vEUs = 1;
};

// Thread-safe.
class Engine {
 public:
  // `cache` null: nothing is remembered beyond programs in use.
  Engine(Os& os, std::shared_ptr<cache::Cache> cache, EngineOptions options);
  ~Engine();

  // Looks for the program among those in use, in the cache, and last in the pipeline. Equal requests at the same time
  // share one compile, within the process and (through the cache's lease) across processes. The pipeline runs on
  // threads of its own with large stacks, whatever the caller's is. A `cancelled` compile gives Code::cancelled to its
  // own caller; others waiting for the same key go on.
  Result<ProgramPtr> compile(const Request& request, const std::atomic<bool>* cancelled = nullptr);

  // The program as bytes that need no graph: constants inside.
  Result<Bytes> serialize(const CompiledProgram& program) const;
  // Trusts the bytes as far as running them; their form is checked.
  Result<ProgramPtr> load(std::span<const uint8_t> artifact);

  // The text of a stage (pipeline.h). A program from bytes has "program" alone.
  Result<std::string> dump(const CompiledProgram& program, std::string_view stage);
  // Whether the code generator has been opened; a warm start does not.
  bool llvm_loaded() const { return llvm_.loaded(); }

 private:
  class Flight;
  Result<ProgramPtr> find_or_compile(const Request& request, const Bytes& key, const std::atomic<bool>* cancelled);
  Result<ProgramPtr> from_cache(const Request& request, const Bytes& key, const cache::Hit& hit);
  Result<ProgramPtr> from_pipeline(const Request& request, const Bytes& key, const std::atomic<bool>* cancelled);
  Result<std::shared_ptr<const runtime::LoadedProgram>> load_artifact(std::shared_ptr<const Bytes> artifact,
                                                                      std::shared_ptr<const graph::Graph> graph) const;
  ProgramPtr in_use(const Digest& key);

  Os& os_;
  std::shared_ptr<cache::Cache> cache_;
  EngineOptions options_;
  LlvmLibrary llvm_;
  std::mutex mutex_;
  std::unordered_map<Digest, std::weak_ptr<const CompiledProgram>> programs_;
  std::unordered_map<Digest, std::shared_ptr<Flight>> flights_;
};

}  // namespace quartet::compiler
