/* No environment at all, HOME included: works, with a cache on disk, and leaves the environment empty. */
#include "guest.h"

extern char** environ;

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  char directory[64];
  int32_t origin = 0;
  int result = 0;
  if (argc != 2 || guest_make_directory(directory, sizeof directory) != 0) return 2;
  clearenv();
  if (guest_open(argv[1], &api, &handle) != 0) return 1;
  if (guest_work(&api, directory, &origin) != QUARTET_OK || origin != QUARTET_ORIGIN_COMPILED) result = 3;
  if (result == 0 && (guest_work(&api, directory, &origin) != QUARTET_OK || origin != QUARTET_ORIGIN_DISK)) result = 4;
  if (environ != NULL && environ[0] != NULL) result = 5;
  if (result != 0) fprintf(stderr, "failed at step %d, origin %d\n", result, (int)origin);
  guest_remove_directory(directory);
  return result;
}
