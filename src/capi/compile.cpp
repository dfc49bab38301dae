// From graphs to programs.
#include "capi/blob.h"
#include "capi/future.h"
#include "capi/graph.h"
#include "capi/json.h"
#include "capi/options.h"
#include "capi/program.h"

namespace quartet::capi {

namespace {

Result<compiler::Request> request_of(const quartet_context& context, const quartet_graph* graph,
                                     const quartet_device* device, const quartet_options* options) {
  QUARTET_TRY(check_handle(graph, "graph"));
  QUARTET_TRY(device_argument(context, device).status());
  compiler::Request request;
  request.graph = graph->graph;
  QUARTET_ASSIGN(request.options, options_argument(options));
  if (context.cache_mode == QUARTET_CACHE_OFF) QUARTET_TRY(request.options.set_text(OptionId::cache_mode, "off"));
  if (request.options.tune() != 0) return Status(Code::unsupported, "option tune: this version measures no plans");
  QUARTET_ASSIGN(request.target, compiler::resolve_target(request.options));
  return request;
}

const char* origin_name(compiler::Origin origin) {
  switch (origin) {
    case compiler::Origin::compiled:
      return "compiled";
    case compiler::Origin::memory:
      return "from memory";
    case compiler::Origin::disk:
      return "from disk";
    case compiler::Origin::bytes:
      return "from bytes";
  }
  return "";
}

void log_program(const Logger& logger, const compiler::CompiledProgram& program) {
  if (!logger.wants(QUARTET_LOG_INFO)) return;
  logger.log(QUARTET_LOG_INFO, "compile",
             format("%s %s: %zu kernels, compile %.3f ms, load %.3f ms", program.key.hex().c_str(),
                    origin_name(program.origin), program.program->program().kernels.size(),
                    program.compile_seconds * 1e3, program.load_seconds * 1e3));
  if (!logger.wants(QUARTET_LOG_DEBUG)) return;
  for (const compiler::StageTime& time : program.times) {
    logger.log(QUARTET_LOG_DEBUG, "compile", format("stage %s: %.3f ms", time.stage.c_str(), time.seconds * 1e3));
  }
}

Result<compiler::ProgramPtr> compile_now(quartet_context& context, const compiler::Request& request,
                                         const std::atomic<bool>* cancelled) {
  auto program = context.engine->compile(request, cancelled);
  if (program.ok()) log_program(*context.logger, **program);
  return program;
}

std::string explain(const std::vector<compiler::KeyPart>& parts) {
  JsonWriter json;
  json.begin_object();
  for (const compiler::KeyPart& part : parts) json.member(part.name, digest_of(part.bytes).hex());
  json.end_object();
  return json.take();
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_compile(quartet_context* context, const quartet_graph* graph, const quartet_device* device,
                        const quartet_options* options, quartet_program** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const compiler::Request request, request_of(*context, graph, device, options));
    const JobSystem::Busy busy(*context->jobs);
    QUARTET_ASSIGN(auto compiled, compile_now(*context, request, nullptr));
    *out = make_program(*context, std::move(compiled), veus_of(*context, request.options));
    return {};
  });
}

int32_t quartet_compile_async(quartet_context* context, const quartet_graph* graph, const quartet_device* device,
                              const quartet_options* options, quartet_future** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(compiler::Request request, request_of(*context, graph, device, options));
    const int vEUs = veus_of(*context, request.options);
    auto work = [context, request = std::move(request)](const std::atomic<bool>& cancelled) {
      return compile_now(*context, request, &cancelled);
    };
    auto future = std::make_unique<quartet_future>();
    future->state = std::make_shared<FutureState>(*context, vEUs, std::move(work));
    future->context = ContextRef(context);
    future->link = context->jobs->submit(future->state);
    *out = future.release();
    return {};
  });
}

int32_t quartet_compile_key(quartet_context* context, const quartet_graph* graph, const quartet_device* device,
                            const quartet_options* options, uint8_t* out16, quartet_blob** out_explain,
                            quartet_error** error) {
  if (out16 != nullptr) std::memset(out16, 0, 16);
  if (out_explain != nullptr) *out_explain = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out16, "out16"));
    QUARTET_ASSIGN(const compiler::Request request, request_of(*context, graph, device, options));
    const Digest key = digest_of(compiler::key_bytes(request));
    if (out_explain != nullptr) *out_explain = make_blob(explain(compiler::key_parts(request)));
    write_digest(key, out16);
    return {};
  });
}
