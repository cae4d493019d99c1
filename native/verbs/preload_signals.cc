// Signals that a program in virtual time sends to others, and waits for them. They are blocked until then, so that those that
// have come are known.
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

constexpr uint32_t kAnything = TurnPlace::kProcess | TurnPlace::kShared | TurnPlace::kOthers;

// Whether nothing happens when it comes.
bool is_ignored(int signal) {
  // That of preload_spins.cc.
  if (signal == SIGSTKFLT) return true;
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return true;
  return now.sa_handler == SIG_DFL && (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH);
}

// Waits until one has come of those that are, or are not, among `set`. Returns whether one has.
bool await_signal(const sigset_t* set, bool among, Time until) {
  bool interrupted = false;
  const auto has_come = [&] {
    sigset_t pending;
    ::sigpending(&pending);
    for (int one = 1; one < NSIG; ++one) {
      if (::sigismember(&pending, one) != 1 || (::sigismember(set, one) == 1) != among) continue;
      if (among || !is_ignored(one)) return true;
    }
    return false;
  };
  return wait_until(kAnything, until, has_come, &interrupted);
}

}  // namespace

extern "C" {

WEIR_EXPORT int sigsuspend(const sigset_t* mask) {
  static const auto real = next<int (*)(const sigset_t*)>("sigsuspend");
  if (!in_virtual_time() || await_signal(mask, false, kNever)) return real(mask);
  return errno = EINTR, -1;
}

WEIR_EXPORT int pause() {
  static const auto real = next<int (*)()>("pause");
  if (!in_virtual_time()) return real();
  // What comes meanwhile is handled when the wait ends.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int result = sigsuspend(&before);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return errno = error, result;
}

WEIR_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  static const auto real = next<int (*)(const sigset_t*, siginfo_t*, const timespec*)>("sigtimedwait");
  if (!in_virtual_time()) return real(set, info, timeout);
  await_signal(set, true, timeout == nullptr ? kNever : virtual_now() + time_of(*timeout));
  constexpr timespec kNow{0, 0};
  return real(set, info, &kNow);
}

WEIR_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) { return sigtimedwait(set, info, nullptr); }

WEIR_EXPORT int sigwait(const sigset_t* set, int* signal) {
  int got;
  do {
    got = sigtimedwait(set, nullptr, nullptr);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  *signal = got;
  return 0;
}

// Whoever it ends is found to have ended in its turn.
WEIR_EXPORT int kill(pid_t process, int signal) {
  static const auto real = next<int (*)(pid_t, int)>("kill");
  if (in_virtual_time()) let_pass();
  const int result = real(process, signal);
  if (result == 0 && signal != 0 && in_virtual_time()) hurry(process);
  return result;
}
WEIR_EXPORT int killpg(pid_t group, int signal) { return kill(-group, signal); }

}  // extern "C"
