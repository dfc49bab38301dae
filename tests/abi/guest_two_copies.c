/* Two copies of the library in one process, as when two plug-ins of a host each bring their own: both work,
 * interleaved, in one cache directory, each with a file of its own there, because two copies of SQLite on one file
 * would lose its locks. */
#include "guest.h"

int main(int argc, char** argv) {
  guest_api first, second;
  void *first_handle, *second_handle;
  char directory[64], copy[128], cache[128], command[4096];
  quartet_context *one = NULL, *two = NULL;
  int32_t origins[2] = {0, 0};
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
               guest_work(&first, cache, NULL) == QUARTET_OK && guest_work(&second, cache, NULL) == QUARTET_OK &&
               guest_work(&first, cache, &origins[0]) == QUARTET_OK &&
               guest_work(&second, cache, &origins[1]) == QUARTET_OK && guest_work(&first, NULL, NULL) == QUARTET_OK) {
      result = origins[0] == QUARTET_ORIGIN_DISK && origins[1] == QUARTET_ORIGIN_DISK ? 0 : 3;
      if (result != 0)
        fprintf(stderr, "a copy did not find what it stored: origins %d and %d\n", (int)origins[0], (int)origins[1]);
    }
    first.context_release(one);
    second.context_release(two);
  }
  guest_remove_directory(directory);
  return result;
}
