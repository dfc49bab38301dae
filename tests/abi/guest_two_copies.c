/* Two copies of the library in one process, as when two plug-ins of a host each bring their own: both work,
 * interleaved, and share a cache directory. */
#include "guest.h"

int main(int argc, char** argv) {
  guest_api first, second;
  void *first_handle, *second_handle;
  char directory[64], copy[128], cache[128], command[4096];
  quartet_context *one = NULL, *two = NULL;
  int32_t origin = 0;
  int result = 1;
  if (argc != 2 || guest_make_directory(directory, sizeof directory) != 0) return 2;
  snprintf(copy, sizeof copy, "%s/libquartet_c.so.1", directory);
  snprintf(cache, sizeof cache, "%s/cache", directory);
  snprintf(command, sizeof command, "cp -L '%s' '%s' && cp -L \"$(dirname '%s')\"/libquartet_llvm.so '%s'", argv[1],
           copy, argv[1], directory);
  if (system(command) == 0 && guest_open(argv[1], &first, &first_handle) == 0 &&
      guest_open(copy, &second, &second_handle) == 0) {
    if (first.abi_version == second.abi_version) {
      fprintf(stderr, "the loader gave the first copy twice\n");
    } else if (guest_context(&first, cache, &one) == QUARTET_OK && guest_context(&second, cache, &two) == QUARTET_OK &&
               guest_work(&first, cache, NULL) == QUARTET_OK && guest_work(&second, cache, &origin) == QUARTET_OK &&
               guest_work(&first, NULL, NULL) == QUARTET_OK) {
      result = origin == QUARTET_ORIGIN_DISK ? 0 : 3;
      if (result != 0)
        fprintf(stderr, "the second copy did not find what the first one stored: origin %d\n", (int)origin);
    }
    first.context_release(one);
    second.context_release(two);
  }
  guest_remove_directory(directory);
  return result;
}
