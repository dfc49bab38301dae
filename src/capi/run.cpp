#include "capi/run.h"

#include <algorithm>

#include "capi/buffer.h"
#include "runtime/executor.h"
#include "runtime/shapes.h"

namespace quartet::capi {

Status check_count(size_t given, size_t wanted, const char* name) {
  if (given == wanted) return {};
  return make_error(Code::invalid_argument, "%zu %s are given, but the program has %zu", given, name, wanted);
}

std::string where(const char* role, size_t index, const program::TensorInfo& info) {
  return format("%s %zu '%s': ", role, index, info.name.c_str());
}

bool takes_default(const runtime::LoadedProgram& program, size_t index, const quartet_tensor& tensor, bool with_memory,
                   TensorRef& ref) {
  const program::InputDefault* given = program.input_default(index);
  if (given == nullptr || tensor.data != nullptr || tensor.buffer != nullptr) return false;
  // Where memory does not count, dims tell.
  if (!with_memory && tensor.rank != 0) return false;
  ref = {};
  ref.dtype = program.inputs()[index].dtype;
  ref.dims = given->shape;
  // A run only reads its inputs.
  ref.data = static_cast<std::byte*>(const_cast<void*>(program.constant(given->constant)));
  ref.bytes = ref.dense_bytes = program.program().constants[static_cast<size_t>(given->constant)].bytes;
  ref.has_memory = true;
  return true;
}

Result<InputRefs> input_refs(const quartet_program& program, const quartet_tensor* inputs, uint32_t count,
                             bool with_memory) {
  const auto& infos = program.loaded().inputs();
  QUARTET_TRY(check_count(count, infos.size(), "inputs"));
  if (count != 0) QUARTET_TRY(not_null(inputs, "inputs"));
  QUARTET_TRY(check_tensors(inputs, count, "inputs"));
  const TensorArray<const quartet_tensor> array(inputs, count);
  InputRefs refs;
  for (uint32_t i = 0; i < count; ++i) {
    if (TensorRef given; takes_default(program.loaded(), i, array[i], with_memory, given)) {
      refs.shapes.push_back(given.dims);
      refs.tensors.push_back(given);
      continue;
    }
    auto ref = tensor_ref(array[i], infos[i].dtype, Role::input, with_memory);
    if (!ref.ok()) return ref.status().with_prefix(where("input", i, infos[i]));
    if (with_memory && !ref->has_memory && ref->dense_bytes != 0) {
      return Status(Code::invalid_argument, where("input", i, infos[i]) + "neither data nor buffer is given");
    }
    refs.shapes.push_back(ref->dims);
    refs.tensors.push_back(*ref);
  }
  return refs;
}

bool depends_on_run(const program::Program& program, const program::TensorInfo& info) {
  const auto set_by_run = [&](Symbol s) { return program.dims[static_cast<size_t>(s)].run; };
  return std::any_of(info.shape.begin(), info.shape.end(),
                     [&](const IntExpr& extent) { return extent.contains_any(set_by_run); });
}

namespace {

struct OutputRef {
  TensorRef tensor;
  std::vector<int64_t> dims;       // what it will be
  uint64_t bytes = 0;              // of it, dense
  quartet_buffer* made = nullptr;  // allocated here, the caller's on success
  runtime::Block staging;          // dense copy of a strided one
  std::byte* data = nullptr;       // where the run writes
  bool grows = false;              // its size is known after the run alone
  runtime::Block grown;            // what the run made for it
};

// Everything a run needs that has to be given back if it does not happen.
class Run {
 public:
  Run(const quartet_program& program, quartet_tensor* outputs, uint32_t count)
      : program_(program), array_(outputs, count) {}
  ~Run() {
    for (OutputRef& output : outputs_) {
      if (output.made != nullptr) release_buffer(output.made);
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Status go(const quartet_tensor* inputs, uint32_t input_count) {
    QUARTET_ASSIGN(refs_, input_refs(program_, inputs, input_count, true));
    QUARTET_TRY(stage_inputs());
    QUARTET_TRY(place_outputs());
    std::vector<runtime::OutputTensor> outputs;
    for (OutputRef& output : outputs_) {
      outputs.push_back(
          {output.data,
           output.tensor.has_memory && output.tensor.strides == nullptr ? output.tensor.bytes : output.bytes,
           std::nullopt, &output.grown});
    }
    runtime::RunOptions options;
    options.vEUs = program_.vEUs;
    options.pool = program_.context->pool.get();
    std::vector<runtime::Shape> actual;
    options.output_shapes = &actual;
    QUARTET_TRY(runtime::run(program_.loaded(), inputs_, outputs, options));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].dims = std::move(actual[i]);
      outputs_[i].bytes = dense_bytes_of(program_.loaded().outputs()[i].dtype, outputs_[i].dims).value_or(0);
      if (outputs_[i].grows && outputs_[i].made != nullptr) adopt(outputs_[i]);
    }
    hand_over();
    return {};
  }

 private:
  Status stage_inputs() {
    for (const TensorRef& ref : refs_.tensors) {
      const void* data = ref.data;
      if (ref.strides != nullptr) {
        QUARTET_ASSIGN(runtime::Block block, runtime::Block::allocate(program_.context->allocator, ref.dense_bytes,
                                                                      "a dense copy of an input"));
        gather_elements(ref, block.data());
        data = block.data();
        staged_.push_back(std::move(block));
      }
      inputs_.push_back({data, ref.dense_bytes, ref.dims});
    }
    return {};
  }

  Status place_outputs() {
    QUARTET_ASSIGN(const std::vector<runtime::Shape> shapes, program_.loaded().output_shapes(refs_.shapes));
    const auto& infos = program_.loaded().outputs();
    outputs_.reserve(shapes.size());
    for (uint32_t i = 0; i < array_.size(); ++i) {
      if (Status status = place_output(array_[i], infos[i], shapes[i]); !status.ok()) {
        return status.with_prefix(where("output", i, infos[i]));
      }
    }
    return {};
  }

  Status place_output(const quartet_tensor& given, const program::TensorInfo& info, const runtime::Shape& shape) {
    OutputRef& output = outputs_.emplace_back();
    const DType dtype = info.dtype;
    QUARTET_ASSIGN(output.tensor, tensor_ref(given, dtype, Role::output));
    output.dims = shape;
    output.grows = std::find(shape.begin(), shape.end(), runtime::kOpenExtent) != shape.end();
    if (output.grows && output.tensor.strides == nullptr) return place_growing(output);
    const auto bytes = dense_bytes_of(dtype, shape);
    if (!bytes) return {Code::resource_exhausted, "its extents overflow"};
    output.bytes = *bytes;
    if (output.tensor.strides != nullptr) {
      if (depends_on_run(program_.loaded().program(), info))
        return {Code::unsupported, "with strides, though its extents are known only after the run"};
      if (!std::equal(shape.begin(), shape.end(), output.tensor.dims.begin(), output.tensor.dims.end())) {
        return {Code::invalid_argument, "with strides, its dims must be those of the result"};
      }
      QUARTET_ASSIGN(output.staging,
                     runtime::Block::allocate(program_.context->allocator, output.bytes, "a dense copy of an output"));
      output.data = output.staging.data();
    } else if (output.tensor.has_memory) {
      output.data = output.tensor.data;
      if (output.tensor.bytes < output.bytes) {
        return make_error(Code::invalid_argument, "it has room for %llu bytes, but the result takes %llu",
                          static_cast<unsigned long long>(output.tensor.bytes),
                          static_cast<unsigned long long>(output.bytes));
      }
    } else {
      QUARTET_ASSIGN(output.made, allocate_buffer(*program_.context, nullptr, output.bytes, 0));
      output.data = output.made->data;
    }
    return {};
  }

  // The caller's memory, whatever it has room for, or what the run makes.
  Status place_growing(OutputRef& output) {
    if (output.tensor.has_memory) {
      output.data = output.tensor.data;
      return {};
    }
    QUARTET_ASSIGN(output.made, allocate_buffer(*program_.context, nullptr, 0, 0));
    return {};
  }

  static void adopt(OutputRef& output) noexcept {
    output.made->block = std::move(output.grown);
    output.made->data = output.data = output.made->block.data();
    output.made->bytes = output.bytes;
  }

  void hand_over() noexcept {
    const auto& infos = program_.loaded().outputs();
    for (uint32_t i = 0; i < array_.size(); ++i) {
      OutputRef& output = outputs_[i];
      if (output.tensor.strides != nullptr) scatter_elements(output.data, output.tensor);
      describe_output(array_[i], infos[i].dtype, output.dims);
      if (output.made == nullptr) continue;
      array_[i].buffer = std::exchange(output.made, nullptr);
      array_[i].data = output.data;
      array_[i].offset = 0;
      array_[i].bytes = output.bytes;
    }
  }

  const quartet_program& program_;
  TensorArray<quartet_tensor> array_;
  InputRefs refs_;
  std::vector<runtime::InputTensor> inputs_;
  std::vector<runtime::Block> staged_;
  std::vector<OutputRef> outputs_;
};

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_run_sync(const quartet_program* program, const quartet_tensor* inputs, uint32_t input_count,
                         quartet_tensor* outputs, uint32_t output_count, quartet_error** error) {
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_program(program));
    QUARTET_TRY(check_count(output_count, program->loaded().outputs().size(), "outputs"));
    if (output_count != 0) QUARTET_TRY(not_null(outputs, "outputs"));
    QUARTET_TRY(check_tensors(outputs, output_count, "outputs"));
    return Run(*program, outputs, output_count).go(inputs, input_count);
  });
}

int32_t quartet_program_output_shapes(const quartet_program* program, const quartet_tensor* inputs,
                                      uint32_t input_count, quartet_tensor* outputs, uint32_t output_count,
                                      quartet_error** error) {
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_handle(program, "program"));
    const auto& infos = program->loaded().outputs();
    QUARTET_TRY(check_count(output_count, infos.size(), "outputs"));
    if (output_count != 0) QUARTET_TRY(not_null(outputs, "outputs"));
    QUARTET_TRY(check_tensors(outputs, output_count, "outputs"));
    QUARTET_ASSIGN(const InputRefs refs, input_refs(*program, inputs, input_count, false));
    QUARTET_ASSIGN(const std::vector<runtime::Shape> shapes, program->loaded().output_shapes(refs.shapes));
    const TensorArray<quartet_tensor> array(outputs, output_count);
    for (uint32_t i = 0; i < output_count; ++i) {
      const bool open = std::find(shapes[i].begin(), shapes[i].end(), runtime::kOpenExtent) != shapes[i].end();
      const auto bytes = open ? 0 : dense_bytes_of(infos[i].dtype, shapes[i]);
      if (!bytes) return Status(Code::resource_exhausted, where("output", i, infos[i]) + "its extents overflow");
      describe_output(array[i], infos[i].dtype, shapes[i]);
      array[i].bytes = *bytes;
    }
    return {};
  });
}
