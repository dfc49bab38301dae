/* A perceptron, relu(x * weights + bias), built by calls, compiled, and run on two rows. */
#include <stdio.h>
#include <stdlib.h>

#include "quartet_c.h"

static quartet_error* error;

static void check(int32_t status) {
  if (status == QUARTET_OK) return;
  fprintf(stderr, "mlp: %s\n", quartet_error_message(error, NULL));
  exit(1);
}

static int32_t op(quartet_builder* builder, const char* name, int32_t a, int32_t b) {
  int32_t operands[2] = {a, b}, result;
  check(quartet_builder_op(builder, name, SIZE_MAX, operands, b < 0 ? 1 : 2, NULL, 0, &result, 1, &error));
  return result;
}

int main(void) {
  static float w_data[4][3] = {{1, 0, -1}, {0.5f, 1, 0}, {0, 0.25f, 1}, {-1, 2, 0}}, b_data[3] = {0.5f, -1, 0};
  static float rows[2][4] = {{1, 2, 3, 4}, {-1, 0, 1, 0}};
  quartet_context* context;
  quartet_builder* builder;
  quartet_graph* graph;
  quartet_program* program;
  int64_t x_dims[2] = {0, 4}, w_dims[2] = {4, 3}, b_dims[1] = {3};
  int32_t x, w, b, y;
  quartet_tensor in = {.struct_size = sizeof in, .dtype = QUARTET_DTYPE_F32, .rank = 2, .bytes = sizeof rows};
  quartet_tensor out = {.struct_size = sizeof out}; /* no memory given: a buffer is made */

  check(quartet_context_create(NULL, &context, &error));
  check(quartet_builder_create(context, &builder, &error));
  check(quartet_builder_dim_symbol(builder, "rows", SIZE_MAX, &x_dims[0], &error));
  check(quartet_builder_input(builder, "x", SIZE_MAX, QUARTET_DTYPE_F32, 2, x_dims, &x, &error));
  check(quartet_builder_constant(builder, QUARTET_DTYPE_F32, 2, w_dims, w_data, sizeof w_data, 0, NULL, NULL, &w,
                                 &error));
  check(quartet_builder_constant(builder, QUARTET_DTYPE_F32, 1, b_dims, b_data, sizeof b_data, 0, NULL, NULL, &b,
                                 &error));
  y = op(builder, "relu", op(builder, "add", op(builder, "matmul", x, w), b), QUARTET_NO_VALUE);
  check(quartet_builder_output(builder, y, "y", SIZE_MAX, &error));
  check(quartet_builder_finish(builder, &graph, &error));
  check(quartet_compile(context, graph, NULL, NULL, &program, &error));
  in.data = rows, in.dims[0] = 2, in.dims[1] = 4;
  check(quartet_run_sync(program, &in, 1, &out, 1, &error));
  for (y = 0; y < 6; ++y) printf("%g%c", ((const float*)out.data)[y], y % 3 == 2 ? '\n' : ' ');

  quartet_buffer_release(out.buffer), quartet_program_release(program), quartet_graph_release(graph);
  quartet_builder_destroy(builder), quartet_context_release(context);
  return 0;
}
