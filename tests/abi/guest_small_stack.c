/* Compiles and runs from a thread with 64 KiB of stack, as engines and language runtimes have them. Texts that nest as
 * deep as they can are read or refused there, too. */
#include <pthread.h>

#include "guest.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GUEST_STACK (1024u * 1024u) /* instrumented code needs several times the stack */
#endif
#endif
#ifndef GUEST_STACK
#define GUEST_STACK (64u * 1024u)
#endif

enum { deepest = 100 };

/* `depth` times `open`, then `middle`, then `depth` times `close`. */
static void nest(char* text, const char* before, const char* open, const char* middle, const char* close,
                 const char* after, int depth) {
  int i;
  strcpy(text, before);
  for (i = 0; i < depth; ++i) strcat(text, open);
  strcat(text, middle);
  for (i = 0; i < depth; ++i) strcat(text, close);
  strcat(text, after);
}

/* Each depth is a graph or an error; which, is not the matter here. */
static void parse_nested(const guest_api* api, quartet_context* context) {
  static char text[16384];
  int depth, kind;
  for (depth = 1; depth < deepest; ++depth) {
    for (kind = 0; kind < 3; ++kind) {
      quartet_graph* graph = NULL;
      if (kind == 0)
        nest(text, "graph (%a: f32[8], %c: bool) {", "%0 = if %c : f32[8] then {", "%0 = neg %a yield %0 } else {",
             "yield %a } yield %0 } else {", "yield %a } return %0 }", depth);
      else if (kind == 1)
        nest(text, "graph (%a: f32[N]) { %0 = expand %a {shape = [", "floor_div(", "N", " * N + 1, 3)",
             ", N]} return %0 }", depth);
      else
        nest(text, "graph (%a: f32[N]) { %0 = expand %a {shape = [", "(", "N", ")", ", N]} return %0 }", depth);
      api->graph_parse(context, text, SIZE_MAX, &graph, NULL);
      api->graph_release(graph);
    }
  }
}

static void* work(void* argument) {
  const guest_api* api = (const guest_api*)argument;
  quartet_context* context = NULL;
  if (guest_work(api, NULL, NULL) != QUARTET_OK || guest_context(api, NULL, &context) != QUARTET_OK) return argument;
  parse_nested(api, context);
  api->context_release(context);
  return NULL;
}

int main(int argc, char** argv) {
  guest_api api;
  void *handle, *failed = &api;
  pthread_attr_t attributes;
  pthread_t thread;
  if (argc != 2 || guest_open(argv[1], &api, &handle) != 0) return 2;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, GUEST_STACK) != 0) return 3;
  if (pthread_create(&thread, &attributes, work, &api) != 0) return 4;
  pthread_join(thread, &failed);
  return failed == NULL ? 0 : 1;
}
