/* A fork with a context alive: in the child the parent's objects answer QUARTET_E_FORKED and releasing them is
 * harmless, a context of its own works; the parent goes on undisturbed. */
#include <sys/wait.h>

#include "guest.h"

static int child(const guest_api* api, quartet_context* context, quartet_graph* graph, quartet_program* program,
                 const char* cache) {
  quartet_program* other = NULL;
  quartet_builder* builder = NULL;
  if (api->compile(context, graph, NULL, NULL, &other, NULL) != QUARTET_E_FORKED || other != NULL) return 11;
  if (api->builder_create(context, &builder, NULL) != QUARTET_E_FORKED || builder != NULL) return 12;
  api->program_release(program);
  api->graph_release(graph);
  api->context_release(context);
  if (guest_work(api, cache, NULL) != QUARTET_OK) return 13;
  return 0;
}

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  char directory[64];
  quartet_context* context = NULL;
  quartet_graph* graph = NULL;
  quartet_program* program = NULL;
  int result = 1, status = 0;
  if (argc != 2 || guest_open(argv[1], &api, &handle) != 0 || guest_make_directory(directory, sizeof directory) != 0)
    return 2;
  if (guest_context(&api, directory, &context) == QUARTET_OK && guest_graph(&api, context, &graph) == QUARTET_OK &&
      api.compile(context, graph, NULL, NULL, &program, NULL) == QUARTET_OK && guest_run(&api, program) == QUARTET_OK) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(60);
      _exit(child(&api, context, graph, program, directory));
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid) {
      if (WIFEXITED(status)) result = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
    }
    if (result == 0 && guest_run(&api, program) != QUARTET_OK) result = 3;
    if (result == 0 && guest_work(&api, directory, NULL) != QUARTET_OK) result = 4;
  }
  api.program_release(program);
  api.graph_release(graph);
  api.context_release(context);
  if (result != 0) fprintf(stderr, "failed at step %d\n", result);
  guest_remove_directory(directory);
  return result;
}
