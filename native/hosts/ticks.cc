#include "hosts/ticks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr int kTrapped = 1, kRead = 2;

[[noreturn]] void try_it() {
#if defined(__x86_64__)
  ::signal(SIGSEGV, [](int) { ::_exit(kTrapped); });
  if (::prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0) static_cast<void>(__builtin_ia32_rdtsc());
#endif
  ::_exit(kRead);
}

}  // namespace

bool traps_ticks() {
  const pid_t child = ::fork();
  if (child == 0) try_it();
  if (child < 0) throw NativeError::from_errno("fork", "cannot ask whether the time stamp counter can be trapped", "");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw NativeError::from_errno("waitpid", "cannot ask whether the time stamp counter can be trapped", "");
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == kTrapped;
}

}  // namespace weir
