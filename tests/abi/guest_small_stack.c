/* Compiles and runs from a thread with 64 KiB of stack, as engines and language runtimes have them. */
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

static void* work(void* argument) {
  const guest_api* api = (const guest_api*)argument;
  return guest_work(api, NULL, NULL) == QUARTET_OK ? NULL : argument;
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
