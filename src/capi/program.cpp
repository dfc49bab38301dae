#include "capi/program.h"

#include <algorithm>
#include <span>

#include "capi/blob.h"
#include "capi/options.h"
#include "capi/tensor.h"

namespace quartet::capi {

int veus_of(const quartet_context& context, const Options& options) {
  const int available = context.pool->vEUs();
  const auto asked = static_cast<int>(options.threads());
  return asked == 0 ? available : std::min(asked, runtime::WorkerPool::kMaxVEUs);
}

quartet_program* make_program(quartet_context& context, compiler::ProgramPtr compiled, int vEUs) {
  auto handle = std::make_unique<quartet_program>();
  const program::Program& program = compiled->program->program();
  const auto name_of = [&](Symbol symbol) {
    const auto index = static_cast<size_t>(symbol);
    return index < program.dims.size() ? program.dims[index].name : std::string("?");
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const program::TensorInfo& info = program.inputs[i];
    const bool optional = compiled->program->input_default(i) != nullptr;
    handle->inputs.emplace_back(info.name, info.dtype, info.shape, name_of, optional);
  }
  for (const auto& info : program.outputs) handle->outputs.emplace_back(info.name, info.dtype, info.shape, name_of);
  handle->vEUs = vEUs;
  context.remember(compiled->program);
  handle->compiled = std::move(compiled);
  handle->context = ContextRef(&context);
  return handle.release();
}

Status check_program(const quartet_program* program) {
  QUARTET_TRY(check_handle(program, "program"));
  return check_process(*program->context);
}

HostMemory* memory_of(const quartet_program* program) {
  program = valid_or_null(program);
  return program != nullptr ? program->context->memory : nullptr;
}

namespace {

quartet_program_info info_of(const quartet_program& program) {
  const compiler::CompiledProgram& compiled = *program.compiled;
  const runtime::LoadedProgram& loaded = program.loaded();
  quartet_program_info info{};
  info.origin = static_cast<int32_t>(compiled.origin);
  info.kernels = static_cast<uint32_t>(loaded.program().kernels.size());
  info.stages = static_cast<uint32_t>(loaded.program().stages.size());
  info.code_bytes = loaded.code_bytes();
  info.constant_bytes = loaded.prepared_bytes();
  for (const program::ConstantInfo& constant : loaded.program().constants) info.constant_bytes += constant.bytes;
  info.compile_ns = static_cast<uint64_t>(compiled.compile_seconds * 1e9);
  info.load_ns = static_cast<uint64_t>(compiled.load_seconds * 1e9);
  return info;
}

// What depends on the dims, where there are none.
Status add_static_info(const quartet_program& program, quartet_program_info& info) {
  const runtime::LoadedProgram& loaded = program.loaded();
  if (!loaded.is_static()) return {};
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::span<const int64_t>> views;
  for (const program::TensorInfo& input : loaded.inputs()) {
    shapes.emplace_back();
    for (const IntExpr& dim : input.shape) shapes.back().push_back(dim.constant().value_or(0));
  }
  for (const auto& shape : shapes) views.emplace_back(shape);
  QUARTET_ASSIGN(info.workspace_bytes, loaded.workspace_bytes(views, program.vEUs));
  std::vector<int64_t> tasks;
  for (const program::Stage& stage : loaded.program().stages) tasks.push_back(stage.tasks.constant().value_or(1));
  info.library_share = loaded.library_share(tasks);
  return {};
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

void quartet_program_retain(quartet_program* program) {
  if ((program = valid_or_null(program)) != nullptr) program->retain();
}

void quartet_program_release(quartet_program* program) {
  if ((program = valid_or_null(program)) != nullptr && program->drop()) delete_with_context(program);
}

int32_t quartet_program_get_info(const quartet_program* program, quartet_program_info* out, quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_handle(program, "program"));
    QUARTET_TRY(check_struct(out, "out"));
    quartet_program_info info = info_of(*program);
    QUARTET_TRY(add_static_info(*program, info));
    write_struct(out, info);
    return {};
  });
}

uint32_t quartet_program_input_count(const quartet_program* program) {
  program = valid_or_null(program);
  return program != nullptr ? static_cast<uint32_t>(program->inputs.size()) : 0;
}

uint32_t quartet_program_output_count(const quartet_program* program) {
  program = valid_or_null(program);
  return program != nullptr ? static_cast<uint32_t>(program->outputs.size()) : 0;
}

int32_t quartet_program_input_info(const quartet_program* program, uint32_t index, quartet_tensor_info* out,
                                   quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_handle(program, "program"));
    QUARTET_TRY(check_struct(out, "out"));
    return give_info(program->inputs, index, out).with_prefix("inputs: ");
  });
}

int32_t quartet_program_output_info(const quartet_program* program, uint32_t index, quartet_tensor_info* out,
                                    quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_handle(program, "program"));
    QUARTET_TRY(check_struct(out, "out"));
    return give_info(program->outputs, index, out).with_prefix("outputs: ");
  });
}

int32_t quartet_program_dump(const quartet_program* program, const char* stage, size_t stage_size, quartet_blob** out,
                             quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_program(program));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const std::string_view name, name_argument(stage, stage_size, "stage"));
    QUARTET_ASSIGN(std::string text, program->context->engine->dump(*program->compiled, name));
    *out = make_blob(std::move(text));
    return {};
  });
}

int32_t quartet_program_serialize(const quartet_program* program, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_program(program));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const Bytes bytes, program->context->engine->serialize(*program->compiled));
    *out = make_blob(bytes);
    return {};
  });
}

int32_t quartet_program_load(quartet_context* context, const void* bytes, size_t size, const quartet_device* device,
                             const quartet_options* options, uint32_t flags, quartet_program** out,
                             quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_TRY(device_argument(*context, device).status());
    QUARTET_ASSIGN(const Options values, options_argument(options));
    if ((flags & ~uint32_t{QUARTET_LOAD_TRUSTED}) != 0) return make_error(Code::unsupported, "flags is 0x%x", flags);
    if (flags != QUARTET_LOAD_TRUSTED) {
      return {Code::invalid_argument, "flags lacks QUARTET_LOAD_TRUSTED: the bytes hold code that will be run"};
    }
    QUARTET_ASSIGN(const auto view, bytes_argument(bytes, size));
    QUARTET_ASSIGN(auto compiled, context->engine->load(view));
    *out = make_program(*context, std::move(compiled), veus_of(*context, values));
    return {};
  });
}
