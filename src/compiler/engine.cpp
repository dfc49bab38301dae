#include "compiler/engine.h"

#include <condition_variable>
#include <new>

#include "artifact/artifact.h"
#include "base/compiler_id.h"
#include "program/program.h"

namespace quartet::compiler {

namespace {

// What a program is expected to cost before anything is known of it: leases wait at most twice this.
constexpr uint64_t kExpectedCostUs = 300'000;

double seconds_since(Os& os, int64_t begin_ns) { return static_cast<double>(os.monotonic_ns() - begin_ns) * 1e-9; }

bool is_cancelled(const std::atomic<bool>* cancelled) {
  return cancelled && cancelled->load(std::memory_order_relaxed);
}

Status cancelled_error() { return Status(Code::cancelled, "the compile was cancelled"); }

runtime::ConstantProvider constants_of(std::shared_ptr<const graph::Graph> graph) {
  if (!graph) return {};
  return [graph = std::move(graph)](const Digest& digest) -> std::optional<runtime::ConstantData> {
    for (const graph::Constant& constant : graph->constants)
      if (constant.digest == digest) return runtime::ConstantData{constant.data, constant.bytes, constant.owner};
    return std::nullopt;
  };
}

}  // namespace

// One compile under way, with those who wait for it.
class Engine::Flight {
 public:
  void finish(Result<ProgramPtr> result) {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    done_.notify_all();
  }
  // Nothing when the waiter was cancelled.
  std::optional<Result<ProgramPtr>> wait(const std::atomic<bool>* cancelled) {
    std::unique_lock lock(mutex_);
    while (!result_) {
      if (is_cancelled(cancelled)) return std::nullopt;
      if (cancelled)
        done_.wait_for(lock, std::chrono::milliseconds(5));
      else
        done_.wait(lock);
    }
    return *result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Result<ProgramPtr>> result_;
};

Engine::Engine(Os& os, std::shared_ptr<cache::Cache> cache, EngineOptions options)
    : os_(os),
      cache_(std::move(cache)),
      options_(std::move(options)),
      llvm_(os, options_.llvm_path, options_.compile_threads > 0 ? options_.compile_threads : host_cpu().cores) {}

Engine::~Engine() = default;

ProgramPtr Engine::in_use(const Digest& key) {
  const auto found = programs_.find(key);
  if (found == programs_.end()) return nullptr;
  ProgramPtr program = found->second.lock();
  if (!program) programs_.erase(found);
  return program;
}

Result<ProgramPtr> Engine::compile(const Request& request, const std::atomic<bool>* cancelled) {
  const int64_t begin = os_.monotonic_ns();
  const Bytes key = key_bytes(request);
  const Digest digest = digest_of(key);
  const bool remember = request.options.cache_mode() == "on";
  for (;;) {
    if (is_cancelled(cancelled)) return cancelled_error();
    std::shared_ptr<Flight> flight;
    bool mine = false;
    {
      const std::lock_guard lock(mutex_);
      // A program in use answers for its key: the key's bytes are compared, as the cache does.
      if (remember) {
        if (const ProgramPtr known = in_use(digest); known && key_bytes(known->request) == key) {
          auto again = std::make_shared<CompiledProgram>(*known);
          again->origin = Origin::memory;
          again->times.clear();
          again->load_seconds = seconds_since(os_, begin);
          return ProgramPtr(std::move(again));
        }
      }
      std::shared_ptr<Flight>& slot = flights_[digest];
      if (!slot) {
        slot = std::make_shared<Flight>();
        mine = true;
      }
      flight = slot;
    }
    if (!mine) {
      const auto shared = flight->wait(cancelled);
      if (!shared) return cancelled_error();
      // The other caller gave up, or compiled another key of the same digest: look again.
      if (!shared->ok() && shared->status().code() == Code::cancelled) continue;
      if (shared->ok() && key_bytes((**shared)->request) != key) continue;
      return *shared;
    }
    Result<ProgramPtr> result = Status(Code::out_of_memory, "no memory to compile");
    try {
      result = find_or_compile(request, key, cancelled);
    } catch (const std::bad_alloc&) {
      // The flight must end whatever happens: others wait for it.
    }
    {
      const std::lock_guard lock(mutex_);
      if (result.ok() && remember) programs_[digest] = *result;
      flights_.erase(digest);
    }
    flight->finish(result);
    return result;
  }
}

Result<ProgramPtr> Engine::find_or_compile(const Request& request, const Bytes& key,
                                           const std::atomic<bool>* cancelled) {
  const std::string_view mode = request.options.cache_mode();
  if (!cache_ || mode == "off") return from_pipeline(request, key, cancelled);
  std::optional<cache::Hit> hit = cache_->get(key, cache::Kind::program);
  cache::Lease lease;
  if (!hit) {
    lease = cache_->acquire_lease(key, cache::Kind::program, kExpectedCostUs);
    if (lease.state() == cache::Lease::State::other) hit = cache_->wait(lease, [&] { return is_cancelled(cancelled); });
  }
  if (hit && mode == "on") {
    auto program = from_cache(request, key, *hit);
    if (program.ok()) return program;
    const Code code = program.status().code();
    if (code == Code::out_of_memory || code == Code::resource_exhausted) return program;
    cache_->mark_bad(key, cache::Kind::program, program.status().message());
  }
  auto compiled = from_pipeline(request, key, cancelled);
  if (!compiled.ok()) return compiled;
  const CompiledProgram& program = **compiled;
  if (hit && mode == "verify" && *hit->payload != *program.artifact)
    return make_error(Code::internal, "cache_mode verify: a compile of %s gave other bytes than the cache holds",
                      program.key.hex().c_str());
  cache_->put(key, cache::Kind::program, request.target.target_text(), program.artifact,
              static_cast<uint64_t>(program.compile_seconds * 1e6));
  return compiled;
}

Result<std::shared_ptr<const runtime::LoadedProgram>> Engine::load_artifact(
    std::shared_ptr<const Bytes> artifact, std::shared_ptr<const graph::Graph> graph) const {
  runtime::LoadOptions options;
  options.allocator = options_.allocator;
  options.constants = constants_of(std::move(graph));
  options.pool = options_.pool;
  options.vEUs = options_.vEUs;
  options.os = &os_;
  const std::span<const uint8_t> bytes = *artifact;
  return runtime::LoadedProgram::load(bytes, options, std::move(artifact));
}

Result<ProgramPtr> Engine::from_cache(const Request& request, const Bytes& key, const cache::Hit& hit) {
  const int64_t begin = os_.monotonic_ns();
  auto program = std::make_shared<CompiledProgram>();
  program->request = request;
  program->artifact = hit.payload;
  program->key = digest_of(key);
  program->origin = hit.level == cache::Level::memory ? Origin::memory : Origin::disk;
  program->compile_seconds = static_cast<double>(hit.cost_us) * 1e-6;
  QUARTET_ASSIGN(program->program, load_artifact(hit.payload, request.graph));
  program->load_seconds = seconds_since(os_, begin);
  return ProgramPtr(std::move(program));
}

Result<ProgramPtr> Engine::from_pipeline(const Request& request, const Bytes& key, const std::atomic<bool>* cancelled) {
  const int64_t begin = os_.monotonic_ns();
  std::optional<Result<Compiled>> compiled;
  run_with_large_stacks(1, 1, [&](size_t) { compiled = compiler::compile(request, llvm_, cancelled); });
  if (!compiled->ok()) return compiled->status();
  auto program = std::make_shared<CompiledProgram>();
  program->request = request;
  program->artifact = std::make_shared<const Bytes>(std::move((*compiled)->artifact));
  program->key = digest_of(key);
  program->times = std::move((*compiled)->times);
  program->compile_seconds = seconds_since(os_, begin);
  const int64_t loading = os_.monotonic_ns();
  QUARTET_ASSIGN(program->program, load_artifact(program->artifact, request.graph));
  program->load_seconds = seconds_since(os_, loading);
  return ProgramPtr(std::move(program));
}

Result<Bytes> Engine::serialize(const CompiledProgram& compiled) const {
  QUARTET_ASSIGN(const artifact::View view, artifact::read(*compiled.artifact));
  artifact::Content content;
  content.target = view.target;
  content.features = view.features;
  content.program = view.program;
  for (const artifact::View::CodeBlob& blob : view.blobs)
    content.code.push_back(view.code.subspan(static_cast<size_t>(blob.offset), static_cast<size_t>(blob.size)));
  content.constants = view.constants;
  content.metadata = view.metadata;
  const auto carried = [&](const Digest& digest) {
    for (const artifact::InlineConstant& constant : content.constants)
      if (constant.digest == digest) return true;
    return false;
  };
  // Not from the loaded program, which drops what only its prepare stages read. A program from bytes carries them all.
  const runtime::ConstantProvider of_graph = constants_of(compiled.request.graph);
  for (const program::ConstantInfo& info : compiled.program->program().constants) {
    if (!info.inline_data.empty() || info.bytes == 0 || carried(info.digest)) continue;
    const auto found = of_graph ? of_graph(info.digest) : std::nullopt;
    if (!found) return make_error(Code::internal, "constant %s has no bytes", info.digest.hex().c_str());
    content.constants.push_back({info.digest, {static_cast<const uint8_t*>(found->data), found->bytes}});
  }
  return artifact::write(content);
}

Result<ProgramPtr> Engine::load(std::span<const uint8_t> artifact) {
  const int64_t begin = os_.monotonic_ns();
  auto program = std::make_shared<CompiledProgram>();
  program->artifact = std::make_shared<const Bytes>(artifact.begin(), artifact.end());
  program->origin = Origin::bytes;
  QUARTET_ASSIGN(program->program, load_artifact(program->artifact, nullptr));
  program->load_seconds = seconds_since(os_, begin);
  return ProgramPtr(std::move(program));
}

Result<std::string> Engine::dump(const CompiledProgram& program, std::string_view stage) {
  if (program.request.graph) {
    std::optional<Result<std::string>> text;
    run_with_large_stacks(1, 1, [&](size_t) { text = compiler::dump(program.request, stage, llvm_); });
    return *text;
  }
  if (stage == "program") return program::print(program.program->program());
  return make_error(Code::unsupported, "a program loaded from bytes has no stage '%.*s', only 'program'",
                    static_cast<int>(stage.size()), stage.data());
}

}  // namespace quartet::compiler
