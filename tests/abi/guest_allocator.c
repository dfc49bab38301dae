/* A host with an allocator of its own for each context: when all objects are released, every block has been given back
 * and the allocator's user data was freed, for the first context of a process too, and with a cache on disk. */
#include <stdatomic.h>

#include "guest.h"

typedef struct pool {
  atomic_long live, made, freed;
} pool;

static void* pool_alloc(void* user, size_t size, size_t align) {
  pool* p = (pool*)user;
  void* memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, size) != 0) return NULL;
  ++p->live, ++p->made;
  return memory;
}

static void pool_dealloc(void* user, void* memory, size_t size, size_t align) {
  (void)size, (void)align;
  --((pool*)user)->live;
  free(memory);
}

static void pool_free(void* user) { ++((pool*)user)->freed; }

static int32_t work(const guest_api* api, const char* cache_path, pool* p) {
  quartet_allocator allocator;
  quartet_cache_desc cache;
  quartet_context_desc desc;
  quartet_context* context = NULL;
  quartet_graph* graph = NULL;
  quartet_program* program = NULL;
  quartet_error* error = NULL;
  int32_t status;
  memset(&allocator, 0, sizeof allocator);
  memset(&cache, 0, sizeof cache);
  memset(&desc, 0, sizeof desc);
  allocator.struct_size = sizeof allocator;
  allocator.user = p;
  allocator.alloc = pool_alloc;
  allocator.dealloc = pool_dealloc;
  allocator.free_user = pool_free;
  cache.struct_size = sizeof cache;
  cache.mode = QUARTET_CACHE_DISK;
  cache.path = cache_path;
  cache.path_size = SIZE_MAX;
  desc.struct_size = sizeof desc;
  desc.allocator = &allocator;
  desc.cache = cache_path != NULL ? &cache : NULL;
  status = api->context_create(&desc, &context, &error);
  if (status != QUARTET_OK) return guest_failed(api, "context", status, error);
  status = guest_graph(api, context, &graph);
  if (status == QUARTET_OK) {
    status = api->compile(context, graph, NULL, NULL, &program, &error);
    if (status != QUARTET_OK) status = guest_failed(api, "compile", status, error);
  }
  if (status == QUARTET_OK) status = guest_run(api, program);
  api->program_release(program);
  api->graph_release(graph);
  api->context_release(context);
  return status;
}

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  char directory[64];
  int i, result = 0;
  if (argc != 2 || guest_open(argv[1], &api, &handle) != 0) return 2;
  if (guest_make_directory(directory, sizeof directory) != 0) return 2;
  for (i = 0; i < 4 && result == 0; ++i) {
    pool p;
    memset(&p, 0, sizeof p);
    if (work(&api, i % 2 == 0 ? directory : NULL, &p) != QUARTET_OK) result = 3;
    if (p.made == 0 || p.live != 0 || p.freed != 1) {
      fprintf(stderr, "context %d: %ld blocks made, %ld live, user data freed %ld times\n", i, p.made, p.live, p.freed);
      result = 1;
    }
  }
  return guest_remove_directory(directory) != 0 ? 2 : result;
}
