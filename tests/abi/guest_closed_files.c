/* File descriptors 0 to 2 are closed, as in a daemon: the library works, and puts no file of its cache where the next
 * printf of the host would write into it. */
#include <fcntl.h>

#include "guest.h"

static int directory_behind(int file, const char* directory) {
  char link[64], target[512];
  ssize_t size;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  size = readlink(link, target, sizeof target - 1);
  if (size < 0) return 0;
  target[size] = '\0';
  return strncmp(target, directory, strlen(directory)) == 0;
}

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  char directory[64];
  quartet_context* context = NULL;
  int file, saved, result = 0;
  if (argc != 2 || guest_open(argv[1], &api, &handle) != 0 || guest_make_directory(directory, sizeof directory) != 0)
    return 2;
  saved = fcntl(2, F_DUPFD, 100);
  for (file = 0; file < 3; ++file) close(file);

  if (guest_work(&api, directory, NULL) != QUARTET_OK) result = 3;
  if (result == 0 && guest_context(&api, directory, &context) != QUARTET_OK) result = 4;
  for (file = 0; file < 3; ++file)
    if (directory_behind(file, directory)) result = 5;
  api.context_release(context);

  dup2(saved, 2);
  if (result != 0) fprintf(stderr, "failed at step %d\n", result);
  dup2(saved, 0);
  dup2(saved, 1);
  guest_remove_directory(directory);
  return result;
}
