/* Opens the library, uses it, closes it, opens it again: it stays mapped in between and works again. */
#include "guest.h"

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  int round;
  if (argc != 2) return 2;
  for (round = 0; round < 2; ++round) {
    if (guest_open(argv[1], &api, &handle) != 0) return 1;
    if (api.abi_version() >> 16 != QUARTET_ABI_MAJOR || (api.abi_version() & 0xffff) < QUARTET_ABI_MINOR) return 3;
    if (guest_work(&api, NULL, NULL) != QUARTET_OK) return 4;
    dlclose(handle);
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL) {
      fprintf(stderr, "the library was unmapped by dlclose\n");
      return 5;
    }
  }
  return 0;
}
