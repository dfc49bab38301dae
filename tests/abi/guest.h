/* A guest of the library: what a host that opens libquartet_c.so at run time does. Shared by the guest_*.c tests. */
#ifndef GUEST_H
#define GUEST_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quartet_c.h"

/* clang-format off */
#define GUEST_FUNCTIONS(X) \
  X(abi_version) X(context_create) X(context_release) X(builder_create) \
  X(builder_destroy) X(builder_dim_symbol) X(builder_input) X(builder_op) \
  X(builder_output) X(builder_finish) X(graph_release) X(graph_parse) X(compile) \
  X(program_get_info) X(program_release) X(run_sync) X(error_message) \
  X(error_release) X(cache_flush)
/* clang-format on */

/* The functions by name, from one copy of the library. */
typedef struct guest_api {
#define GUEST_FIELD(name) __typeof__(&quartet_##name) name;
  GUEST_FUNCTIONS(GUEST_FIELD)
#undef GUEST_FIELD
} guest_api;

/* Opens the library and finds every function; 0 on success, else what went wrong is on stderr. */
static inline int guest_open(const char* path, guest_api* api, void** handle) {
  void* symbol;
  *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
#define GUEST_FIND(name)                                   \
  symbol = dlsym(*handle, "quartet_" #name);               \
  if (symbol == NULL) {                                    \
    fprintf(stderr, "%s lacks quartet_%s\n", path, #name); \
    return 1;                                              \
  }                                                        \
  memcpy(&api->name, &symbol, sizeof symbol);
  GUEST_FUNCTIONS(GUEST_FIND)
#undef GUEST_FIND
  return 0;
}

/* Gives the status of a failed call back, with its message on stderr unless `error` has none. */
static inline int32_t guest_failed(const guest_api* api, const char* what, int32_t status, quartet_error* error) {
  fprintf(stderr, "%s: status %d: %s\n", what, (int)status, api->error_message(error, NULL));
  api->error_release(error);
  return status;
}

/* z = x * y + x over a symbolic extent N, as a graph. */
static inline int32_t guest_graph(const guest_api* api, quartet_context* context, quartet_graph** graph) {
  quartet_builder* builder = NULL;
  quartet_error* error = NULL;
  int64_t extent = 0;
  int32_t inputs[2], product[2], sum = 0, status;
  *graph = NULL;
  status = api->builder_create(context, &builder, &error);
  if (status == QUARTET_OK) status = api->builder_dim_symbol(builder, "N", SIZE_MAX, &extent, &error);
  if (status == QUARTET_OK)
    status = api->builder_input(builder, "x", SIZE_MAX, QUARTET_DTYPE_F32, 1, &extent, &inputs[0], &error);
  if (status == QUARTET_OK)
    status = api->builder_input(builder, "y", SIZE_MAX, QUARTET_DTYPE_F32, 1, &extent, &inputs[1], &error);
  if (status == QUARTET_OK) status = api->builder_op(builder, "mul", SIZE_MAX, inputs, 2, NULL, 0, product, 1, &error);
  if (status == QUARTET_OK) {
    product[1] = inputs[0];
    status = api->builder_op(builder, "add", SIZE_MAX, product, 2, NULL, 0, &sum, 1, &error);
  }
  if (status == QUARTET_OK) status = api->builder_output(builder, sum, "z", SIZE_MAX, &error);
  if (status == QUARTET_OK) status = api->builder_finish(builder, graph, &error);
  api->builder_destroy(builder);
  return status == QUARTET_OK ? status : guest_failed(api, "graph", status, error);
}

/* Runs z = x * y + x for 37 numbers and compares; 0 when all are right. */
static inline int32_t guest_run(const guest_api* api, const quartet_program* program) {
  enum { count = 37 };
  float x[count], y[count], z[count];
  quartet_tensor inputs[2], output;
  quartet_error* error = NULL;
  int32_t status;
  int i;
  memset(inputs, 0, sizeof inputs);
  memset(&output, 0, sizeof output);
  for (i = 0; i < count; ++i) {
    x[i] = (float)i;
    y[i] = (float)(2 * i - 7);
    z[i] = -1.0f;
  }
  inputs[0].struct_size = inputs[1].struct_size = output.struct_size = sizeof output;
  inputs[0].dtype = inputs[1].dtype = output.dtype = QUARTET_DTYPE_F32;
  inputs[0].rank = inputs[1].rank = output.rank = 1;
  inputs[0].dims[0] = inputs[1].dims[0] = output.dims[0] = count;
  inputs[0].bytes = inputs[1].bytes = output.bytes = sizeof x;
  inputs[0].data = x;
  inputs[1].data = y;
  output.data = z;
  status = api->run_sync(program, inputs, 2, &output, 1, &error);
  if (status != QUARTET_OK) return guest_failed(api, "run", status, error);
  for (i = 0; i < count; ++i) {
    if (z[i] != x[i] * y[i] + x[i]) {
      fprintf(stderr, "element %d is %g, not %g\n", i, (double)z[i], (double)(x[i] * y[i] + x[i]));
      return QUARTET_E_INTERNAL;
    }
  }
  return QUARTET_OK;
}

/* A context; with a cache on disk when `cache_path` is not NULL. */
static inline int32_t guest_context(const guest_api* api, const char* cache_path, quartet_context** context) {
  quartet_context_desc desc;
  quartet_cache_desc cache;
  quartet_error* error = NULL;
  int32_t status;
  memset(&desc, 0, sizeof desc);
  memset(&cache, 0, sizeof cache);
  desc.struct_size = sizeof desc;
  cache.struct_size = sizeof cache;
  cache.mode = QUARTET_CACHE_DISK;
  cache.path = cache_path;
  cache.path_size = SIZE_MAX;
  if (cache_path != NULL) desc.cache = &cache;
  status = api->context_create(&desc, context, &error);
  return status == QUARTET_OK ? status : guest_failed(api, "context", status, error);
}

/* The whole way once: context, graph, compile, run, release. `origin`, nullable, gets where the program came from. */
static inline int32_t guest_work(const guest_api* api, const char* cache_path, int32_t* origin) {
  quartet_context* context = NULL;
  quartet_graph* graph = NULL;
  quartet_program* program = NULL;
  quartet_error* error = NULL;
  quartet_program_info info;
  int32_t status = guest_context(api, cache_path, &context);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  if (status == QUARTET_OK) status = guest_graph(api, context, &graph);
  if (status == QUARTET_OK) {
    status = api->compile(context, graph, NULL, NULL, &program, &error);
    if (status != QUARTET_OK) status = guest_failed(api, "compile", status, error);
  }
  if (status == QUARTET_OK) status = guest_run(api, program);
  if (status == QUARTET_OK) status = api->program_get_info(program, &info, NULL);
  if (status == QUARTET_OK && cache_path != NULL) status = api->cache_flush(context, NULL);
  if (origin != NULL) *origin = info.origin;
  api->program_release(program);
  api->graph_release(graph);
  api->context_release(context);
  return status;
}

/* A fresh directory; the caller removes it with guest_remove_directory. */
static inline int guest_make_directory(char* path, size_t size) {
  snprintf(path, size, "/tmp/quartet-guest-XXXXXX");
  return mkdtemp(path) == NULL ? 1 : 0;
}

static inline int guest_remove_directory(const char* path) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  return system(command);
}

#endif
