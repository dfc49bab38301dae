// Bindings: a program with its tensors and workspace, for repeated runs.
#include "capi/buffer.h"
#include "capi/program.h"
#include "capi/run.h"
#include "capi/tensor.h"
#include "runtime/executor.h"

namespace quartet::capi {

// What is bound at one place: memory held on to, and the dense copy of a strided tensor.
struct BoundTensor {
  quartet_tensor given{};  // keeps dims and strides for `ref`
  TensorRef ref;
  BufferRef buffer;
  runtime::Block staging;
};

}  // namespace quartet::capi

struct quartet_binding : quartet::capi::Handle<quartet::capi::HandleKind::binding> {
  quartet::capi::ContextRef context;
  quartet::compiler::ProgramPtr compiled;
  std::unique_ptr<quartet::runtime::Binding> binding;
  std::vector<quartet::capi::BoundTensor> inputs, outputs;
  bool strided = false;   // something is copied before or after a run
  bool prepared = false;  // nothing was set since the last prepare or run
};

namespace quartet::capi {

namespace {

Status check_binding(const quartet_binding* binding) {
  QUARTET_TRY(check_handle(binding, "binding"));
  return check_process(*binding->context);
}

HostMemory* memory_of_binding(const quartet_binding* binding) {
  binding = valid_or_null(binding);
  return binding != nullptr ? binding->context->memory : nullptr;
}

Status check_index(uint32_t index, size_t count, const char* role) {
  if (index < count) return {};
  return make_error(Code::invalid_argument, "index is %u, but the program has %zu %s", index, count, role);
}

// A bound tensor made of the caller's descriptor, with a dense copy's place if it is strided.
Result<BoundTensor> bind(const quartet_binding& binding, const quartet_tensor& tensor, DType dtype, Role role) {
  BoundTensor bound;
  bound.given = tensor;
  QUARTET_ASSIGN(bound.ref, tensor_ref(tensor, dtype, role));
  if (bound.ref.has_memory) bound.buffer = BufferRef(tensor.buffer);
  if (bound.ref.strides != nullptr) {
    QUARTET_ASSIGN(bound.staging, runtime::Block::allocate(binding.context->allocator, bound.ref.dense_bytes,
                                                           "a dense copy of a tensor"));
  }
  return bound;
}

// Puts a bound tensor in its place: its references must be to its own copy of the descriptor.
void settle(BoundTensor& place, BoundTensor&& bound) {
  place = std::move(bound);
  if (!place.ref.dims.empty()) place.ref.dims = std::span(place.given.dims, place.ref.dims.size());
  if (place.ref.strides != nullptr) place.ref.strides = place.given.strides;
}

void note_strides(quartet_binding& binding) {
  binding.strided = false;
  for (const auto* tensors : {&binding.inputs, &binding.outputs}) {
    for (const BoundTensor& tensor : *tensors) binding.strided |= tensor.ref.strides != nullptr;
  }
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_binding_create(const quartet_program* program, quartet_binding** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(program), error, [&]() -> Status {
    QUARTET_TRY(check_program(program));
    QUARTET_TRY(not_null(out, "out"));
    auto binding = std::make_unique<quartet_binding>();
    runtime::Binding::Options options;
    options.vEUs = program->vEUs;
    options.pool = program->context->pool;
    QUARTET_ASSIGN(binding->binding, runtime::Binding::create(program->compiled->program, std::move(options)));
    binding->inputs.resize(program->loaded().inputs().size());
    binding->outputs.resize(program->loaded().outputs().size());
    for (const program::InputDefault& given : program->loaded().program().defaults) {
      const auto index = static_cast<size_t>(given.input);
      TensorRef ref;
      takes_default(program->loaded(), index, quartet_tensor{}, true, ref);
      QUARTET_TRY(binding->binding->set_input(given.input, {ref.data, ref.bytes, ref.dims}));
    }
    binding->compiled = program->compiled;
    binding->context = ContextRef(program->context.get());
    *out = binding.release();
    return {};
  });
}

void quartet_binding_destroy(quartet_binding* binding) {
  if ((binding = valid_or_null(binding)) != nullptr) delete_with_context(binding);
}

int32_t quartet_binding_set_input(quartet_binding* binding, uint32_t index, const quartet_tensor* tensor,
                                  quartet_error** error) {
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    QUARTET_TRY(check_index(index, binding->inputs.size(), "inputs"));
    QUARTET_TRY(check_tensor(tensor, "tensor"));
    const program::TensorInfo& info = binding->compiled->program->inputs()[index];
    if (TensorRef given; takes_default(*binding->compiled->program, index, *tensor, true, given)) {
      QUARTET_TRY(binding->binding->set_input(static_cast<int>(index), {given.data, given.bytes, given.dims}));
      binding->inputs[index] = {};
      note_strides(*binding);
      binding->prepared = false;
      return {};
    }
    auto bound = bind(*binding, *tensor, info.dtype, Role::input);
    if (!bound.ok()) return bound.status().with_prefix(where("input", index, info));
    const TensorRef& ref = bound->ref;
    if (!ref.has_memory && ref.dense_bytes != 0) {
      return Status(Code::invalid_argument, where("input", index, info) + "neither data nor buffer is given");
    }
    runtime::InputTensor input;
    input.data = ref.strides != nullptr ? bound->staging.data() : ref.data;
    input.bytes = ref.dense_bytes;
    input.shape = ref.dims;
    QUARTET_TRY(binding->binding->set_input(static_cast<int>(index), input));
    settle(binding->inputs[index], bound.take());
    note_strides(*binding);
    binding->prepared = false;
    return {};
  });
}

int32_t quartet_binding_set_output(quartet_binding* binding, uint32_t index, const quartet_tensor* tensor,
                                   quartet_error** error) {
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    QUARTET_TRY(check_index(index, binding->outputs.size(), "outputs"));
    QUARTET_TRY(check_tensor(tensor, "tensor"));
    const program::TensorInfo& info = binding->compiled->program->outputs()[index];
    auto bound = bind(*binding, *tensor, info.dtype, Role::output);
    if (!bound.ok()) return bound.status().with_prefix(where("output", index, info));
    const TensorRef& ref = bound->ref;
    if (ref.strides != nullptr && depends_on_run(binding->compiled->program->program(), info))
      return Status(Code::unsupported,
                    where("output", index, info) + "with strides, though its extents are known only after the run");
    if (ref.has_memory) {
      runtime::OutputTensor output;
      output.data = ref.strides != nullptr ? bound->staging.data() : ref.data;
      output.bytes = ref.strides != nullptr ? ref.dense_bytes : ref.bytes;
      if (ref.strides != nullptr) output.shape = ref.dims;
      QUARTET_TRY(binding->binding->set_output(static_cast<int>(index), output));
    } else {
      QUARTET_TRY(binding->binding->clear_output(static_cast<int>(index)));
    }
    settle(binding->outputs[index], bound.take());
    note_strides(*binding);
    binding->prepared = false;
    return {};
  });
}

int32_t quartet_binding_set_workspace(quartet_binding* binding, void* data, uint64_t bytes, quartet_error** error) {
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    if (data == nullptr && bytes != 0) return {Code::invalid_argument, "data is NULL, but bytes is not 0"};
    QUARTET_TRY(binding->binding->set_workspace(data, bytes));
    binding->prepared = false;
    return {};
  });
}

int32_t quartet_binding_workspace_size(quartet_binding* binding, uint64_t* out, quartet_error** error) {
  if (out != nullptr) *out = 0;
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(*out, binding->binding->workspace_bytes());
    return {};
  });
}

int32_t quartet_binding_prepare(quartet_binding* binding, quartet_error** error) {
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    QUARTET_TRY(binding->binding->prepare());
    binding->prepared = true;
    return {};
  });
}

int32_t quartet_binding_run(quartet_binding* binding, quartet_error** error) {
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    if (!binding->strided) {
      QUARTET_TRY(binding->binding->run());
      binding->prepared = true;
      return {};
    }
    for (BoundTensor& input : binding->inputs) {
      if (input.ref.strides != nullptr) gather_elements(input.ref, input.staging.data());
    }
    QUARTET_TRY(binding->binding->run());
    binding->prepared = true;
    for (BoundTensor& output : binding->outputs) {
      if (output.ref.strides != nullptr) scatter_elements(output.staging.data(), output.ref);
    }
    return {};
  });
}

int32_t quartet_binding_get_output(quartet_binding* binding, uint32_t index, quartet_tensor* out,
                                   quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of_binding(binding), error, [&]() -> Status {
    QUARTET_TRY(check_binding(binding));
    QUARTET_TRY(check_struct(out, "out"));
    QUARTET_TRY(check_index(index, binding->outputs.size(), "outputs"));
    if (!binding->prepared) {
      return {Code::failed_precondition, "the binding is neither prepared nor run since the last change"};
    }
    const runtime::Binding& bound = *binding->binding;
    const BoundTensor& place = binding->outputs[index];
    quartet_tensor tensor{};
    if (place.ref.has_memory) {
      tensor = place.given;
    } else {
      tensor.data = bound.output_data(static_cast<int>(index));
      tensor.bytes = bound.output_bytes(static_cast<int>(index));
    }
    tensor.struct_size = sizeof tensor;
    describe_output(tensor, bound.program().outputs()[index].dtype, bound.output_shape(static_cast<int>(index)));
    write_struct(out, tensor);
    return {};
  });
}
