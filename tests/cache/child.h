// Work in a forked child, for tests whose subject is a process. The parent must have no cache open unless the test is
// about that.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

namespace quartet::cache::test {

// Runs `work` in a child, which ends with its result as exit status and without any of the parent's destructors.
inline pid_t start_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  return pid;
}

// The exit status; 1000 + the signal for a killed child; -1 when there is none.
inline int end_of(pid_t pid) {
  int status = 0;
  pid_t done;
  do done = ::waitpid(pid, &status, 0);
  while (done < 0 && errno == EINTR);
  if (pid <= 0 || done != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int run_child(const std::function<int()>& work) { return end_of(start_child(work)); }

}  // namespace quartet::cache::test
