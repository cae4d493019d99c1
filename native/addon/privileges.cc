// Capabilities are each thread's own, and a thread changes none but its own. Node.js has threads that run none of our code, and
// yet an attacker who had taken over one thread could have theirs do something for him. So every thread is interrupted by a
// signal, and limits itself in the handler: the C library's setuid() does the same, with the library's own signal, which no
// thread can block.
#include "addon/privileges.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr int kEverySignal = 33;  // SIGSETXID
constexpr int kPasses = 10;
constexpr auto kPatience = std::chrono::seconds(2);

// The kernel's struct sigaction, whatever it has on this machine.
using KernelAction = std::array<unsigned long, 16>;
constexpr size_t kMaskBytes = 8;

// Variables of the handler, which may do nothing but read and set these, and system calls.
std::array<uint32_t, 2> kept{};
std::atomic<pid_t> limited{0};
std::atomic<int> failed{0};

bool keeps(unsigned capability) { return capability < 64 && ((kept[capability / 32] >> (capability % 32)) & 1) != 0; }

// errno; 0: done.
int limit_this_thread() {
  // CAP_SETPCAP is still there; without it the bounding set is what somebody else has made it.
  for (unsigned capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (!keeps(capability)) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return errno;
  for (size_t i = 0; i < data.size(); ++i) {
    data[i].permitted &= kept[i];
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  return ::syscall(SYS_capset, &header, data.data()) == 0 ? 0 : errno;
}

void on_signal(int, siginfo_t*, void*) {
  const int saved = errno;
  failed.store(limit_this_thread(), std::memory_order_relaxed);
  limited.store(static_cast<pid_t>(::syscall(SYS_gettid)), std::memory_order_release);
  errno = saved;
}

void set_action(int signal, const KernelAction* action, KernelAction* before) {
  if (::syscall(SYS_rt_sigaction, signal, action, before, kMaskBytes) != 0) {
    throw NativeError::from_errno("rt_sigaction", "cannot limit capabilities", "");
  }
}

// The action of the library's signal, until it ends. The library does not let it be set, nor does it tell how its own actions
// return (the restorer): that is taken from another signal, which is free.
class OwnAction {
 public:
  OwnAction() {
    struct sigaction own {};
    struct sigaction before {};
    own.sa_sigaction = on_signal;
    own.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&own.sa_mask);
    KernelAction action{};
    ::sigaction(SIGRTMAX, &own, &before);
    const long read = ::syscall(SYS_rt_sigaction, SIGRTMAX, nullptr, &action, kMaskBytes);
    ::sigaction(SIGRTMAX, &before, nullptr);
    if (read != 0) throw NativeError::from_errno("rt_sigaction", "cannot limit capabilities", "");
    set_action(kEverySignal, &action, &before_);
  }
  ~OwnAction() { ::syscall(SYS_rt_sigaction, kEverySignal, &before_, nullptr, kMaskBytes); }
  OwnAction(const OwnAction&) = delete;
  OwnAction& operator=(const OwnAction&) = delete;

 private:
  KernelAction before_{};
};

std::vector<pid_t> threads() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
  if (!folder) throw NativeError::from_errno("opendir", "cannot list the threads of this process", "");
  std::vector<pid_t> found;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const pid_t id = std::atoi(entry->d_name); id > 0) found.push_back(id);
  }
  return found;
}

void check(int error) {
  if (error == 0) return;
  errno = error;
  throw NativeError::from_errno("capset", "cannot limit capabilities", "");
}

void limit_other(pid_t thread) {
  limited.store(0, std::memory_order_relaxed);
  if (::syscall(SYS_tgkill, ::getpid(), thread, kEverySignal) != 0) {
    if (errno == ESRCH) return;  // it has ended
    throw NativeError::from_errno("tgkill", "cannot limit capabilities", "");
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (limited.load(std::memory_order_acquire) != thread) {
    if (::syscall(SYS_tgkill, ::getpid(), thread, 0) != 0) return;
    if (std::chrono::steady_clock::now() > until) check(ETIMEDOUT);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  check(failed.load(std::memory_order_relaxed));
}

void limit_all() {
  // This thread makes none that has more from here on.
  check(limit_this_thread());
  const OwnAction action;
  std::set<pid_t> done{static_cast<pid_t>(::syscall(SYS_gettid))};
  // A thread may have been made by one that was not limited yet.
  for (int pass = 0; pass < kPasses; ++pass) {
    bool all = true;
    for (const pid_t thread : threads()) {
      if (!done.insert(thread).second) continue;
      all = false;
      limit_other(thread);
    }
    if (all) return;
  }
  check(EAGAIN);
}

}  // namespace

void limit_capabilities(const std::vector<uint32_t>& keep) {
  kept = {};
  for (const uint32_t capability : keep) {
    if (capability < 64) kept[capability / 32] |= 1u << (capability % 32);
  }
  limit_all();
}

}  // namespace weir
