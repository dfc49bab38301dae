/* The host has LLVM libraries of its own, loaded first and with global symbols: the library's private one is not
 * disturbed. */
#include "guest.h"

int main(int argc, char** argv) {
  static const char* const names[] = {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM.so.19.1"};
  guest_api api;
  void* handle;
  size_t i;
  int loaded = 0;
  if (argc != 2) return 2;
  for (i = 0; i < sizeof names / sizeof names[0]; ++i)
    if (dlopen(names[i], RTLD_NOW | RTLD_GLOBAL) != NULL) ++loaded;
  if (loaded == 0) {
    fprintf(stderr, "no shared LLVM on this system\n");
    return 77;
  }
  if (guest_open(argv[1], &api, &handle) != 0) return 1;
  return guest_work(&api, NULL, NULL) == QUARTET_OK ? 0 : 3;
}
