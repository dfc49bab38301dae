/* onnx MODEL: loads an ONNX file, runs it with every input filled with 0.5 (dims not known become 1) through a binding,
 * and prints the shape and first elements of each output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quartet_c.h"

static quartet_error* error;

static void check(int32_t status) {
  if (status == QUARTET_OK) return;
  fprintf(stderr, "onnx: %s\n", quartet_error_message(error, NULL));
  exit(1);
}

/* A tensor with memory of its own, for an input as described. */
static quartet_tensor make_input(const quartet_tensor_info* info) {
  quartet_tensor tensor;
  size_t count = 1, i;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.dtype = info->dtype;
  tensor.rank = info->rank;
  for (i = 0; i < (size_t)info->rank; ++i) {
    tensor.dims[i] = info->dims[i] == QUARTET_DIM_UNKNOWN ? 1 : info->dims[i];
    count *= (size_t)tensor.dims[i];
  }
  tensor.bytes = count * quartet_dtype_size(tensor.dtype);
  tensor.data = calloc(count + 1, quartet_dtype_size(tensor.dtype));
  if (tensor.data == NULL) exit(1);
  if (tensor.dtype == QUARTET_DTYPE_F32) {
    for (i = 0; i < count; ++i) ((float*)tensor.data)[i] = 0.5f;
  }
  return tensor;
}

static void print_output(const char* name, const quartet_tensor* tensor) {
  int64_t count = 1, i;
  printf("%s: %s[", name, quartet_dtype_name(tensor->dtype, NULL));
  for (i = 0; i < tensor->rank; ++i) {
    printf("%s%lld", i > 0 ? ", " : "", (long long)tensor->dims[i]);
    count *= tensor->dims[i];
  }
  printf("]");
  if (tensor->dtype == QUARTET_DTYPE_F32) {
    for (i = 0; i < count && i < 8; ++i) printf(" %g", ((const float*)tensor->data)[i]);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  quartet_context* context;
  quartet_graph* graph;
  quartet_program* program;
  quartet_binding* binding;
  quartet_tensor_info info;
  quartet_tensor* inputs;
  uint32_t input_count, i;

  if (argc != 2) {
    fprintf(stderr, "usage: onnx MODEL\n");
    return 2;
  }
  check(quartet_context_create(NULL, &context, &error));
  check(quartet_graph_import_onnx_file(context, argv[1], SIZE_MAX, NULL, &graph, &error));
  check(quartet_compile(context, graph, NULL, NULL, &program, &error));
  check(quartet_binding_create(program, &binding, &error));

  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  input_count = quartet_program_input_count(program);
  inputs = calloc(input_count + 1, sizeof *inputs);
  if (inputs == NULL) return 1;
  for (i = 0; i < input_count; ++i) {
    check(quartet_program_input_info(program, i, &info, &error));
    inputs[i] = make_input(&info);
    check(quartet_binding_set_input(binding, i, &inputs[i], &error));
  }
  check(quartet_binding_run(binding, &error));
  for (i = 0; i < quartet_program_output_count(program); ++i) {
    quartet_tensor output;
    memset(&output, 0, sizeof output);
    output.struct_size = sizeof output;
    check(quartet_program_output_info(program, i, &info, &error));
    check(quartet_binding_get_output(binding, i, &output, &error));
    print_output(info.name, &output);
  }

  quartet_binding_destroy(binding);
  for (i = 0; i < input_count; ++i) free(inputs[i].data);
  free(inputs);
  quartet_program_release(program);
  quartet_graph_release(graph);
  quartet_context_release(context);
  return 0;
}
