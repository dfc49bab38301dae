/* What a good guest leaves as it was: standard output and error, signal handlers and mask, working directory, umask,
 * locale, the floating-point control word. The host flushes denormals and rounds down, as games do; results are those
 * of the default mode all the same. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <xmmintrin.h>

#include "guest.h"

typedef struct state {
  struct sigaction actions[65];
  sigset_t mask;
  char directory[512];
  mode_t umask;
  char locale[256];
  unsigned mxcsr;
} state;

static void take(state* s) {
  int i;
  memset(s, 0, sizeof *s);
  for (i = 1; i < 65; ++i) sigaction(i, NULL, &s->actions[i]);
  sigprocmask(SIG_BLOCK, NULL, &s->mask);
  if (getcwd(s->directory, sizeof s->directory) == NULL) s->directory[0] = '\0';
  s->umask = umask(0);
  umask(s->umask);
  snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
  s->mxcsr = _mm_getcsr() & ~0x3fu; /* without the flags of past exceptions */
}

static int differs(const state* a, const state* b) {
  int i;
  for (i = 1; i < 65; ++i)
    if (a->actions[i].sa_handler != b->actions[i].sa_handler || a->actions[i].sa_flags != b->actions[i].sa_flags)
      return i;
  for (i = 1; i < 65; ++i)
    if (sigismember(&a->mask, i) != sigismember(&b->mask, i)) return 100 + i;
  if (strcmp(a->directory, b->directory) != 0) return 201;
  if (a->umask != b->umask) return 202;
  if (strcmp(a->locale, b->locale) != 0) return 203;
  if (a->mxcsr != b->mxcsr) return 204;
  return 0;
}

int main(int argc, char** argv) {
  guest_api api;
  void* handle;
  char directory[64], output[128];
  state before, after;
  struct stat written;
  int file, saved, what, result = 0;
  if (argc != 2 || guest_make_directory(directory, sizeof directory) != 0) return 2;
  snprintf(output, sizeof output, "%s/output", directory);
  file = open(output, O_CREAT | O_RDWR | O_APPEND, 0600);
  saved = dup(2);
  if (file < 0 || saved < 0) return 2;
  dup2(file, 1);
  dup2(file, 2);

  if (guest_open(argv[1], &api, &handle) != 0) result = 3;
  _mm_setcsr(0x1f80u | 0x8040u | 0x2000u); /* flush to zero, denormals are zero, round down */
  take(&before);
  if (result == 0 && guest_work(&api, directory, NULL) != QUARTET_OK) result = 4;
  if (result == 0 && api.builder_create(NULL, NULL, NULL) == QUARTET_OK) result = 5;
  take(&after);
  _mm_setcsr(0x1f80u);

  fflush(NULL);
  dup2(saved, 2);
  what = differs(&before, &after);
  if (result == 0 && what != 0) result = 6;
  if (result != 0) fprintf(stderr, "failed at step %d, difference %d\n", result, what);
  if (fstat(file, &written) != 0 || written.st_size != 0) {
    fprintf(stderr, "something was written to standard output or error\n");
    result = 7;
  }
  guest_remove_directory(directory);
  return result;
}
