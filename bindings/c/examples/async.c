/* Compiles three graphs at once without blocking: the program's own loop sleeps on a descriptor, and each finished
 * compile is taken and run inside quartet_context_poll, on this thread. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "quartet_c.h"

static quartet_error* error;
static int unfinished;

static void check(int32_t status) {
  if (status == QUARTET_OK) return;
  fprintf(stderr, "async: %s\n", quartet_error_message(error, NULL));
  exit(1);
}

struct request {
  const char* op;
  float result[4];
};

/* The graph y = op(x) over four floats. */
static quartet_graph* make_graph(quartet_context* context, const char* op) {
  quartet_builder* builder;
  quartet_graph* graph;
  int64_t dims[1] = {4};
  int32_t x, y;
  check(quartet_builder_create(context, &builder, &error));
  check(quartet_builder_input(builder, "x", SIZE_MAX, QUARTET_DTYPE_F32, 1, dims, &x, &error));
  check(quartet_builder_op(builder, op, SIZE_MAX, &x, 1, NULL, 0, &y, 1, &error));
  check(quartet_builder_output(builder, y, "y", SIZE_MAX, &error));
  check(quartet_builder_finish(builder, &graph, &error));
  quartet_builder_destroy(builder);
  return graph;
}

/* Called by quartet_context_poll when a compile has finished. */
static void QUARTET_CALL on_done(void* user, quartet_future* future) {
  static float x[4] = {0, 1, 4, 9};
  struct request* request = user;
  quartet_program* program;
  quartet_tensor in = {.struct_size = sizeof in, .dtype = QUARTET_DTYPE_F32, .rank = 1, .data = x, .bytes = sizeof x};
  quartet_tensor out = {.struct_size = sizeof out, .data = request->result, .bytes = sizeof request->result};
  in.dims[0] = 4;
  check(quartet_future_take_program(future, &program, &error));
  check(quartet_run_sync(program, &in, 1, &out, 1, &error));
  quartet_program_release(program);
  --unfinished;
}

int main(void) {
  static struct request requests[3] = {{"sqrt", {0}}, {"neg", {0}}, {"floor", {0}}};
  quartet_context* context;
  struct pollfd event;
  int64_t descriptor;
  int i;

  check(quartet_context_create(NULL, &context, &error));
  check(quartet_context_event_handle(context, &descriptor, &error));
  for (i = 0; i < 3; ++i) {
    quartet_graph* graph = make_graph(context, requests[i].op);
    quartet_future* future;
    check(quartet_compile_async(context, graph, NULL, NULL, &future, &error));
    check(quartet_future_on_done(future, on_done, &requests[i], NULL, QUARTET_DONE_ON_POLL, &error));
    ++unfinished;
    quartet_future_release(future);
    quartet_graph_release(graph);
  }
  event.fd = (int)descriptor;
  event.events = POLLIN;
  while (unfinished > 0) {
    if (poll(&event, 1, -1) == 1) check(quartet_context_poll(context, -1, NULL, &error));
  }
  for (i = 0; i < 3; ++i) {
    const float* y = requests[i].result;
    printf("%s: %g %g %g %g\n", requests[i].op, y[0], y[1], y[2], y[3]);
  }
  quartet_context_release(context);
  return 0;
}
