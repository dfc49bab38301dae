#include "runtime/program.h"

#include <algorithm>
#include <cstring>

#include "artifact/artifact.h"
#include "base/checked.h"
#include "runtime/code.h"
#include "runtime/frame.h"
#include "runtime/frame_pool.h"
#include "runtime/shapes.h"

namespace quartet::runtime {
namespace {

// A copy of the artifact's inline constants, each on a 64-byte boundary, or the constants where they are if `owner`
// keeps them.
std::map<Digest, ConstantData> keep_constants(const artifact::View& view, const std::shared_ptr<const void>& owner) {
  std::map<Digest, ConstantData> kept;
  for (const artifact::InlineConstant& constant : view.constants) {
    if (owner != nullptr) {
      kept[constant.digest] = {constant.data.data(), constant.data.size(), owner};
    } else {
      auto copy = std::make_shared<Bytes>(constant.data.begin(), constant.data.end());
      kept[constant.digest] = {copy->data(), copy->size(), copy};
    }
  }
  return kept;
}

Result<std::vector<KernelFunction>> find_functions(const program::Program& program, const artifact::View& view,
                                                   const CodeImage* image) {
  std::vector<KernelFunction> functions;
  for (const program::KernelInfo& kernel : program.kernels) {
    const auto blob = static_cast<size_t>(kernel.blob);
    if (blob >= view.blobs.size() || kernel.entry >= view.blobs[blob].size)
      return Status(Code::corrupt, "kernel '" + kernel.name + "' begins at byte " + std::to_string(kernel.entry) +
                                       " of code blob " + std::to_string(blob) + ", which the artifact does not have");
    const uint8_t* address = image->data() + view.blobs[blob].offset + kernel.entry;
    KernelFunction function;
    static_assert(sizeof function == sizeof address);
    std::memcpy(&function, &address, sizeof function);
    functions.push_back(function);
  }
  return functions;
}

}  // namespace

LoadedProgram::LoadedProgram() : frames_(std::make_unique<FramePool>()) {}
LoadedProgram::~LoadedProgram() = default;

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(std::span<const uint8_t> bytes,
                                                                 const LoadOptions& options,
                                                                 std::shared_ptr<const void> owner) {
  QUARTET_ASSIGN(const artifact::View view, artifact::read(bytes));
  ByteReader in(view.program, "program");
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram);
  QUARTET_ASSIGN(loaded->program_, program::read(in));
  QUARTET_TRY(in.finish().with_stage("program"));
  QUARTET_TRY(check_features(view.features, options.host != nullptr ? *options.host : host_cpu()));
  std::shared_ptr<const CodeImage> image;
  if (!view.code.empty()) {
    QUARTET_ASSIGN(image, CodeImage::map(view.code, *options.os));
  }
  auto functions = find_functions(loaded->program_, view, image.get());
  if (!functions.ok()) return functions.status().with_stage("runtime");
  loaded->functions_ = functions.take();
  loaded->code_ = std::move(image);
  loaded->code_bytes_ = view.code.size();
  loaded->metadata_ = view.metadata;
  loaded->inline_constants_ = keep_constants(view, owner);
  return finish(std::move(loaded), options);
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::from_functions(program::Program program,
                                                                           std::span<const KernelFunction> functions,
                                                                           const LoadOptions& options) {
  QUARTET_TRY(program::verify(program));
  if (functions.size() != program.kernels.size())
    return make_error(Code::invalid_argument, "%zu functions for %zu kernels", functions.size(),
                      program.kernels.size());
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram);
  loaded->program_ = std::move(program);
  loaded->functions_.assign(functions.begin(), functions.end());
  return finish(std::move(loaded), options);
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::finish(std::shared_ptr<LoadedProgram> loaded,
                                                                   const LoadOptions& options) {
  loaded->allocator_ = options.allocator != nullptr ? options.allocator : system_allocator();
  if (const Status status = loaded->find_constants(options); !status.ok()) return status.with_stage("runtime");
  if (const Status status = loaded->prepare(options); !status.ok()) return status.with_stage("runtime");
  return std::shared_ptr<const LoadedProgram>(std::move(loaded));
}

Status LoadedProgram::find_constants(const LoadOptions& options) {
  for (size_t i = 0; i < program_.constants.size(); ++i) {
    const program::ConstantInfo& info = program_.constants[i];
    ConstantData data{info.inline_data.data(), info.inline_data.size(), nullptr};
    if (info.inline_data.empty() && info.bytes != 0) {
      const auto inlined = inline_constants_.find(info.digest);
      if (inlined != inline_constants_.end()) {
        data = inlined->second;
      } else {
        auto found = options.constants ? options.constants(info.digest) : std::nullopt;
        if (!found)
          return {Code::not_found, "constant " + std::to_string(i) + " (" + info.digest.hex() + ") is not given"};
        data = std::move(*found);
      }
    }
    if (data.bytes != info.bytes)
      return {Code::invalid_argument, "constant " + std::to_string(i) + " (" + info.digest.hex() + ") has " +
                                          std::to_string(data.bytes) + " bytes, expected " +
                                          std::to_string(info.bytes)};
    constants_.push_back(std::move(data));
  }
  return {};
}

Status LoadedProgram::prepare(const LoadOptions& options) {
  std::vector<uint64_t> offsets;
  uint64_t total = 0;
  for (const program::PreparedInfo& info : program_.prepared) {
    offsets.push_back(total);
    const auto bytes = checked_round_up(static_cast<size_t>(info.bytes.constant().value_or(0)), Block::kAlignment);
    const auto sum = bytes ? checked_add<uint64_t>(total, *bytes) : std::nullopt;
    if (!sum) return {Code::resource_exhausted, "the prepared buffers' size overflows"};
    total = *sum;
  }
  QUARTET_ASSIGN(prepared_block_, Block::allocate(allocator_, total, "prepared operands"));
  prepared_bytes_ = total;
  for (const uint64_t offset : offsets)
    prepared_.push_back(prepared_block_.data() == nullptr ? nullptr : prepared_block_.data() + offset);
  if (!program_.prepare.empty()) {
    const int vEUs = options.pool != nullptr ? options.vEUs : 1;
    QUARTET_ASSIGN(const std::unique_ptr<Frame> frame, Frame::make(*this, Frame::List::prepare, {}, vEUs));
    QUARTET_ASSIGN(const Block scratch,
                   Block::allocate(allocator_, frame->workspace_bytes(), "the scratch of prepare stages"));
    frame->set_workspace(scratch.data());
    QUARTET_TRY(frame->run(options.pool.get(), nullptr));
  }
  // What only the prepare stages read need not be kept.
  std::vector<bool> needed(constants_.size());
  for (const program::Stage& stage : program_.stages)
    for (const program::BufferRef& ref : stage.arguments)
      if (ref.storage == program::Storage::constant) needed[static_cast<size_t>(ref.index)] = true;
  const auto need = [&](const std::optional<program::BufferRef>& ref) {
    if (ref && ref->storage == program::Storage::constant) needed[static_cast<size_t>(ref->index)] = true;
  };
  for (const program::View& view : program_.views) need(view.base);
  for (const program::Loop& loop : program_.loops) need(loop.trip), need(loop.condition), need(loop.next);
  for (const program::Instruction& instruction : program_.body)
    if (instruction.kind == program::InstructionKind::branch || instruction.kind == program::InstructionKind::check ||
        instruction.kind == program::InstructionKind::copy || instruction.kind == program::InstructionKind::read)
      need(instruction.from);
  for (const program::Program::Copy& copy : program_.copies)
    if (copy.from.storage == program::Storage::constant) needed[static_cast<size_t>(copy.from.index)] = true;
  for (const program::InputDefault& given : program_.defaults) needed[static_cast<size_t>(given.constant)] = true;
  for (size_t i = 0; i < constants_.size(); ++i)
    if (!needed[i]) constants_[i] = {};
  inline_constants_.clear();
  return {};
}

const program::InputDefault* LoadedProgram::input_default(size_t input) const {
  const auto at = std::lower_bound(
      program_.defaults.begin(), program_.defaults.end(), input,
      [](const program::InputDefault& given, size_t wanted) { return static_cast<size_t>(given.input) < wanted; });
  return at != program_.defaults.end() && static_cast<size_t>(at->input) == input ? &*at : nullptr;
}

Result<std::vector<int64_t>> LoadedProgram::bind_dims(std::span<const std::span<const int64_t>> input_shapes) const {
  std::vector<int64_t> dims(program_.dims.size());
  QUARTET_TRY(runtime::bind_dims(program_, input_shapes, dims));
  return dims;
}

Result<std::vector<Shape>> LoadedProgram::output_shapes(std::span<const std::span<const int64_t>> input_shapes) const {
  QUARTET_ASSIGN(const std::vector<int64_t> dims, bind_dims(input_shapes));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    QUARTET_ASSIGN(Extents extents, planned_extents(program_, program_.outputs[i], dims, output_name(program_, i)));
    shapes.push_back(std::move(extents.shape));
  }
  return shapes;
}

Result<uint64_t> LoadedProgram::workspace_bytes(std::span<const std::span<const int64_t>> input_shapes,
                                                int vEUs) const {
  QUARTET_ASSIGN(const std::vector<int64_t> dims, bind_dims(input_shapes));
  if (vEUs < 1 || vEUs > WorkerPool::kMaxVEUs)
    return make_error(Code::invalid_argument, "%d vEUs; a run has 1 to %d", vEUs, WorkerPool::kMaxVEUs);
  QUARTET_ASSIGN(const WorkspaceLayout layout, workspace_at(program_, program_.stages, true, dims, vEUs));
  return layout.total;
}

double LoadedProgram::library_share(std::span<const int64_t> tasks) const {
  double all = 0, library = 0;
  for (size_t s = 0; s < program_.stages.size() && s < tasks.size(); ++s) {
    const double cost = program_.stages[s].task_cost * static_cast<double>(tasks[s]);
    all += cost;
    if (program_.stages[s].library) library += cost;
  }
  return all > 0 ? library / all : 0;
}

void LoadedProgram::trim() const { frames_->trim(); }

}  // namespace quartet::runtime
