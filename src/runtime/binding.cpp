#include <algorithm>

#include "runtime/arguments.h"
#include "runtime/executor.h"
#include "runtime/frame.h"
#include "runtime/shapes.h"

namespace quartet::runtime {

struct Binding::State {
  struct Input {
    const void* data = nullptr;
    uint64_t bytes = 0;
    Shape shape;
    bool set = false;
  };
  struct Output {
    void* data = nullptr;
    uint64_t bytes = 0;
    std::optional<Shape> shape;
    bool set = false;  // else `own` is used
    Block own;
  };

  Options options;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::unique_ptr<Frame> frame;
  Block own_workspace;
  void* workspace = nullptr;  // lent by the caller
  uint64_t workspace_bytes = 0;
  bool ready = false;  // nothing was set since the last successful prepare
  // Kept so that preparing again for the same shapes allocates nothing.
  std::vector<std::span<const int64_t>> shapes;
  std::vector<int64_t> dims;
  std::vector<Stretch> read, written;

  Status prepare(const LoadedProgram& program);
  Status renew_frame(const LoadedProgram& program);
  Status place_inputs(const LoadedProgram& program);
  Status place_outputs(const LoadedProgram& program);
  Status place_workspace(const LoadedProgram& program);
};

Binding::Binding(std::shared_ptr<const LoadedProgram> program, Options options)
    : program_(std::move(program)), state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->inputs.resize(program_->inputs().size());
  state_->outputs.resize(program_->outputs().size());
  state_->shapes.resize(program_->inputs().size());
  state_->dims.resize(program_->program().dims.size());
  state_->read.resize(program_->inputs().size());
  state_->written.resize(program_->outputs().size());
}
Binding::~Binding() = default;

Result<std::unique_ptr<Binding>> Binding::create(std::shared_ptr<const LoadedProgram> program, Options options) {
  if (options.vEUs < 1 || options.vEUs > WorkerPool::kMaxVEUs)
    return make_error(Code::invalid_argument, "%d vEUs; a binding has 1 to %d", options.vEUs, WorkerPool::kMaxVEUs);
  return std::unique_ptr<Binding>(new Binding(std::move(program), std::move(options)));
}

namespace {

Status check_index(int index, size_t count, const char* kind) {
  if (index >= 0 && static_cast<size_t>(index) < count) return {};
  return make_error(Code::invalid_argument, "%s %d is out of range; the program has %zu", kind, index, count);
}

}  // namespace

Status Binding::set_input(int index, const InputTensor& tensor) {
  QUARTET_TRY(check_index(index, state_->inputs.size(), "input"));
  State::Input& input = state_->inputs[static_cast<size_t>(index)];
  input.data = tensor.data;
  input.bytes = tensor.bytes;
  input.shape.assign(tensor.shape.begin(), tensor.shape.end());
  input.set = true;
  state_->ready = false;
  return {};
}

Status Binding::set_output(int index, const OutputTensor& tensor) {
  QUARTET_TRY(check_index(index, state_->outputs.size(), "output"));
  State::Output& output = state_->outputs[static_cast<size_t>(index)];
  output.data = tensor.data;
  output.bytes = tensor.bytes;
  if (!tensor.shape)
    output.shape.reset();
  else if (output.shape)
    output.shape->assign(tensor.shape->begin(), tensor.shape->end());
  else
    output.shape.emplace(tensor.shape->begin(), tensor.shape->end());
  output.set = true;
  state_->ready = false;
  return {};
}

Status Binding::clear_output(int index) {
  QUARTET_TRY(check_index(index, state_->outputs.size(), "output"));
  State::Output& output = state_->outputs[static_cast<size_t>(index)];
  output.set = false;
  output.shape.reset();
  state_->ready = false;
  return {};
}

Status Binding::set_workspace(void* data, uint64_t bytes) {
  state_->workspace = data;
  state_->workspace_bytes = data != nullptr ? bytes : 0;
  state_->ready = false;
  return {};
}

Result<uint64_t> Binding::workspace_bytes() const {
  std::vector<std::span<const int64_t>> shapes;
  for (size_t i = 0; i < state_->inputs.size(); ++i) {
    if (!state_->inputs[i].set && !program_->is_static())
      return Status(Code::failed_precondition, input_name(program_->program(), i) + " is not set");
    shapes.push_back(state_->inputs[i].shape);
  }
  if (!program_->is_static()) return program_->workspace_bytes(shapes, state_->options.vEUs);
  QUARTET_ASSIGN(const WorkspaceLayout layout,
                 workspace_at(program_->program(), program_->program().stages, true, {}, state_->options.vEUs));
  return layout.total;
}

// A frame for the shapes at hand; the one there is if the dims are the same.
Status Binding::State::renew_frame(const LoadedProgram& program) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].set) return {Code::failed_precondition, input_name(program.program(), i) + " is not set"};
    shapes[i] = inputs[i].shape;
  }
  QUARTET_TRY(bind_dims(program.program(), shapes, dims));
  if (frame != nullptr && std::ranges::equal(frame->dims(), dims)) return {};
  QUARTET_ASSIGN(frame, Frame::make(program, Frame::List::stages, dims, options.vEUs));
  if (options.pool != nullptr && options.vEUs > 1) options.pool->start();
  return {};
}

Status Binding::State::place_inputs(const LoadedProgram& program) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t needed = frame->input_bytes(i);
    QUARTET_TRY(check_memory(inputs[i].data, inputs[i].bytes, needed, {program.program(), false, i}));
    read[i] = stretch(inputs[i].data, needed);
    frame->set_input(i, inputs[i].data);
  }
  return {};
}

Status Binding::State::place_outputs(const LoadedProgram& program) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output& output = outputs[i];
    const Extents& extents = frame->output(i);
    if (output.shape) QUARTET_TRY(check_shape(extents.shape, *output.shape, {program.program(), true, i}));
    if (frame->output_grows(i) && !output.set) {
      frame->own_output(i);
      written[i] = Stretch();
      continue;
    }
    if (frame->output_grows(i)) {
      QUARTET_TRY(check_memory(output.data, output.bytes, output.bytes, {program.program(), true, i}));
      written[i] = stretch(output.data, output.bytes);
      frame->lend_output(i, output.data, output.bytes);
      continue;
    }
    if (!output.set && output.own.size() < extents.bytes) {
      output.own = Block();
      QUARTET_ASSIGN(output.own, Block::allocate(program.allocator(), extents.bytes, "an output of a binding"));
    }
    void* const data = output.set ? output.data : output.own.data();
    const uint64_t given = output.set ? output.bytes : output.own.size();
    QUARTET_TRY(check_memory(data, given, extents.bytes, {program.program(), true, i}));
    written[i] = stretch(data, extents.bytes);
    frame->set_output(i, data);
  }
  return {};
}

Status Binding::State::place_workspace(const LoadedProgram& program) {
  const uint64_t needed = frame->workspace_bytes();
  if (workspace != nullptr) {
    QUARTET_TRY(check_workspace(workspace, workspace_bytes, needed));
  } else if (own_workspace.size() < needed) {
    own_workspace = Block();
    QUARTET_ASSIGN(own_workspace, Block::allocate(program.allocator(), needed, "the workspace of a binding"));
  }
  frame->set_workspace(workspace != nullptr ? workspace : own_workspace.data());
  return {};
}

Status Binding::State::prepare(const LoadedProgram& program) {
  QUARTET_TRY(renew_frame(program));
  QUARTET_TRY(place_inputs(program));
  QUARTET_TRY(place_outputs(program));
  QUARTET_TRY(place_workspace(program));
  const Stretch lent = workspace != nullptr ? stretch(workspace, frame->workspace_bytes()) : Stretch();
  return check_overlaps(program.program(), read, written, lent);
}

Status Binding::prepare() {
  if (state_->ready) return {};
  QUARTET_TRY(state_->prepare(*program_).with_stage("run"));
  state_->ready = true;
  return {};
}

Status Binding::run(std::vector<RangeTime>* times) {
  QUARTET_TRY(prepare());
  return state_->frame->run(state_->options.pool.get(), times).with_stage("run");
}

const Shape& Binding::output_shape(int index) const {
  return state_->frame->actual_output(static_cast<size_t>(index)).shape;
}
void* Binding::output_data(int index) const {
  const State::Output& output = state_->outputs[static_cast<size_t>(index)];
  if (output.set) return output.data;
  const auto i = static_cast<size_t>(index);
  return state_->frame->output_grows(i) ? state_->frame->output_memory(i) : output.own.data();
}
uint64_t Binding::output_bytes(int index) const {
  return state_->frame->actual_output(static_cast<size_t>(index)).bytes;
}

}  // namespace quartet::runtime
