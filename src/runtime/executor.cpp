#include "runtime/executor.h"

#include "runtime/arguments.h"
#include "runtime/frame.h"
#include "runtime/frame_pool.h"
#include "runtime/shapes.h"

namespace quartet::runtime {
namespace {

// Checks the arguments against the frame and puts them into it.
Status set_arguments(const LoadedProgram& program, Frame& frame, std::span<const InputTensor> inputs,
                     std::span<const OutputTensor> outputs, const RunOptions& options) {
  const program::Program& p = program.program();
  std::vector<Stretch> read, written;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t needed = frame.input_bytes(i);
    QUARTET_TRY(check_memory(inputs[i].data, inputs[i].bytes, needed, {p, false, i}));
    read.push_back(stretch(inputs[i].data, needed));
    frame.set_input(i, inputs[i].data);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Extents& extents = frame.output(i);
    if (outputs[i].shape) QUARTET_TRY(check_shape(extents.shape, *outputs[i].shape, {p, true, i}));
    const bool grows = frame.output_grows(i);
    if (grows && outputs[i].data == nullptr && outputs[i].made != nullptr) {
      frame.own_output(i);
      continue;
    }
    const uint64_t needed = grows ? outputs[i].bytes : extents.bytes;
    QUARTET_TRY(check_memory(outputs[i].data, outputs[i].bytes, needed, {p, true, i}));
    written.push_back(stretch(outputs[i].data, needed));
    if (grows)
      frame.lend_output(i, outputs[i].data, outputs[i].bytes);
    else
      frame.set_output(i, outputs[i].data);
  }
  Stretch workspace;
  if (options.workspace != nullptr) {
    QUARTET_TRY(check_workspace(options.workspace, options.workspace_bytes, frame.workspace_bytes()));
    workspace = stretch(options.workspace, frame.workspace_bytes());
    frame.set_workspace(options.workspace);
  }
  return check_overlaps(p, read, written, workspace);
}

Status run_checked(const LoadedProgram& program, std::span<const InputTensor> inputs,
                   std::span<const OutputTensor> outputs, const RunOptions& options) {
  if (outputs.size() != program.outputs().size())
    return make_error(Code::invalid_argument, "the program has %zu outputs, %zu are given", program.outputs().size(),
                      outputs.size());
  std::vector<std::span<const int64_t>> shapes;
  for (const InputTensor& input : inputs) shapes.push_back(input.shape);
  QUARTET_ASSIGN(const std::vector<int64_t> dims, program.bind_dims(shapes));
  auto taken = program.frames().take(program, dims, options.vEUs, options.workspace == nullptr);
  if (!taken.ok()) return taken.status();
  FramePool::Lease lease = taken.take();
  Status status = set_arguments(program, *lease.frame, inputs, outputs, options);
  if (status.ok()) status = lease.frame->run(options.pool, options.times);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!lease.frame->output_grows(i)) continue;
    Block made = lease.frame->release_output(i);
    if (status.ok() && outputs[i].made != nullptr && outputs[i].data == nullptr) *outputs[i].made = std::move(made);
  }
  if (status.ok() && options.output_shapes != nullptr) {
    options.output_shapes->clear();
    for (size_t i = 0; i < outputs.size(); ++i) options.output_shapes->push_back(lease.frame->actual_output(i).shape);
  }
  program.frames().give_back(std::move(lease));
  return status;
}

}  // namespace

Status run(const LoadedProgram& program, std::span<const InputTensor> inputs, std::span<const OutputTensor> outputs,
           const RunOptions& options) {
  return run_checked(program, inputs, outputs, options).with_stage("run");
}

}  // namespace quartet::runtime
