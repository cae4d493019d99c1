// Timers of a program in virtual time. Those that signal, or call a function, do so when the program's first thread has its turn.
// One with a descriptor is an eventfd, whose counter tells how often it was due, as a timerfd's does.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

struct Timer {
  clockid_t clock = CLOCK_MONOTONIC;
  Time at = kNever;
  Time interval = 0;

  Time left() const { return at == kNever ? 0 : std::max<Time>(1, at - virtual_now()); }
  // Returns how often it was due by now, and is due again then.
  uint64_t take() {
    if (at > virtual_now()) return 0;
    const uint64_t times = interval > 0 ? 1 + static_cast<uint64_t>((virtual_now() - at) / interval) : 1;
    at = interval > 0 ? at + static_cast<Time>(times) * interval : kNever;
    return times;
  }
};
struct SignalTimer : Timer {
  int signal = SIGALRM;
  bool silent = false;
  // What a thread of its own calls instead, each time; and room of its stack, 0: any.
  void (*function)(sigval) = nullptr;
  sigval value{};
  size_t stack = 0;
  int overruns = 0;
};

// The first is that of alarm() and setitimer(). They are looked at until the process is gone.
std::list<SignalTimer>& signal_timers() {
  static std::list<SignalTimer>& all = *new std::list<SignalTimer>(1);
  return all;
}
// Timers by their descriptors.
std::map<int, Timer>& timer_files() {
  static std::map<int, Timer> all;
  return all;
}

itimerspec told(const Timer& timer) { return {as_timespec(timer.interval), as_timespec(timer.left())}; }

bool is_valid(const timespec& t) { return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < kSecond; }

// Sets one as timer_settime() and timerfd_settime() do.
int set(Timer& timer, bool absolute, const itimerspec* wanted, itimerspec* before) {
  if (wanted == nullptr || !is_valid(wanted->it_value) || !is_valid(wanted->it_interval)) return errno = EINVAL, -1;
  if (before != nullptr) *before = told(timer);
  const Time value = time_of(wanted->it_value);
  timer.interval = time_of(wanted->it_interval);
  timer.at = value == 0 ? kNever : absolute ? value - base_of(timer.clock) : virtual_now() + value;
  return 0;
}

bool is_of_time(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

SignalTimer* find(timer_t id) {
  for (SignalTimer& one : signal_timers()) {
    if (&one == id) return &one;
  }
  return nullptr;
}

}  // namespace

namespace weir {

Time next_signal() {
  Time next = kNever;
  for (const SignalTimer& one : signal_timers()) next = std::min(next, one.at);
  return next;
}

bool raise_signals() {
  bool any = false;
  for (SignalTimer& one : signal_timers()) {
    const uint64_t times = one.take();
    if (times == 0) continue;
    one.overruns = static_cast<int>(times - 1);
    if (one.silent) continue;
    if (one.function != nullptr) {
      begin_detached(one.function, one.value, one.stack);
      continue;
    }
    any = true;
    const ProgramsWork handles;
    ::raise(one.signal);
  }
  return any;
}

void forget_signals() { signal_timers().assign(1, {}); }

Time next_timer_file() {
  Time next = kNever;
  for (const auto& [descriptor, timer] : timer_files()) next = std::min(next, timer.at);
  return next;
}

void fire_timer_files() {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  for (auto& [descriptor, timer] : timer_files()) {
    const uint64_t times = timer.take();
    if (times > 0) (void)!real(descriptor, &times, sizeof times);
  }
}

}  // namespace weir

extern "C" {

WEIR_EXPORT int setitimer(__itimer_which_t which, const itimerval* wanted, itimerval* before) {
  static const auto real = next<int (*)(__itimer_which_t, const itimerval*, itimerval*)>("setitimer");
  if (!in_virtual_time()) return real(which, wanted, before);
  if (which != ITIMER_REAL) refuse("setitimer() of a processor's time");
  Timer& timer = signal_timers().front();
  const auto as_timeval = [](Time t) { return timeval{t / kSecond, t % kSecond / 1'000}; };
  if (before != nullptr) *before = {as_timeval(timer.interval), as_timeval(timer.left())};
  if (wanted == nullptr) return 0;
  const auto of = [](const timeval& t) { return t.tv_sec * kSecond + t.tv_usec * kMicrosecond; };
  const Time first = of(wanted->it_value);
  timer.at = first == 0 ? kNever : virtual_now() + first;
  timer.interval = of(wanted->it_interval);
  return 0;
}

WEIR_EXPORT unsigned alarm(unsigned seconds) {
  static const auto real = next<unsigned (*)(unsigned)>("alarm");
  if (!in_virtual_time()) return real(seconds);
  const itimerval wanted{{0, 0}, {static_cast<time_t>(seconds), 0}};
  itimerval before{};
  setitimer(ITIMER_REAL, &wanted, &before);
  return static_cast<unsigned>(before.it_value.tv_sec + (before.it_value.tv_usec > 0 ? 1 : 0));
}

WEIR_EXPORT int timer_create(clockid_t clock, sigevent* event, timer_t* out) {
  static const auto real = next<int (*)(clockid_t, sigevent*, timer_t*)>("timer_create");
  if (!in_virtual_time()) return real(clock, event, out);
  if (!is_of_time(clock)) refuse("timer_create() of a processor's time");
  const int way = event == nullptr ? SIGEV_SIGNAL : event->sigev_notify;
  const bool calls = way == SIGEV_THREAD;
  if (way != SIGEV_SIGNAL && way != SIGEV_NONE && !calls) refuse("timer_create() for one thread");
  SignalTimer& timer = signal_timers().emplace_back();
  timer.clock = clock;
  timer.silent = way == SIGEV_NONE;
  if (event != nullptr && way == SIGEV_SIGNAL) timer.signal = event->sigev_signo;
  if (calls) {
    timer.function = event->sigev_notify_function;
    timer.value = event->sigev_value;
    if (event->sigev_notify_attributes != nullptr) ::pthread_attr_getstacksize(event->sigev_notify_attributes, &timer.stack);
  }
  *out = &timer;
  return 0;
}

WEIR_EXPORT int timer_settime(timer_t id, int flags, const itimerspec* wanted, itimerspec* before) {
  static const auto real = next<int (*)(timer_t, int, const itimerspec*, itimerspec*)>("timer_settime");
  if (!in_virtual_time()) return real(id, flags, wanted, before);
  SignalTimer* const timer = find(id);
  return timer == nullptr ? (errno = EINVAL, -1) : set(*timer, (flags & TIMER_ABSTIME) != 0, wanted, before);
}

WEIR_EXPORT int timer_gettime(timer_t id, itimerspec* out) {
  static const auto real = next<int (*)(timer_t, itimerspec*)>("timer_gettime");
  if (!in_virtual_time()) return real(id, out);
  const SignalTimer* const timer = find(id);
  if (timer == nullptr) return errno = EINVAL, -1;
  *out = told(*timer);
  return 0;
}

WEIR_EXPORT int timer_getoverrun(timer_t id) {
  static const auto real = next<int (*)(timer_t)>("timer_getoverrun");
  if (!in_virtual_time()) return real(id);
  const SignalTimer* const timer = find(id);
  return timer == nullptr ? (errno = EINVAL, -1) : timer->overruns;
}

WEIR_EXPORT int timer_delete(timer_t id) {
  static const auto real = next<int (*)(timer_t)>("timer_delete");
  if (!in_virtual_time()) return real(id);
  if (find(id) == nullptr) return errno = EINVAL, -1;
  signal_timers().remove_if([&](const SignalTimer& one) { return &one == id; });
  return 0;
}

WEIR_EXPORT int timerfd_create(int clock, int flags) {
  static const auto real = next<int (*)(int, int)>("timerfd_create");
  if (!in_virtual_time()) return real(clock, flags);
  if (!is_of_time(clock)) return errno = EINVAL, -1;
  static_assert(int{TFD_NONBLOCK} == int{EFD_NONBLOCK} && int{TFD_CLOEXEC} == int{EFD_CLOEXEC});
  const int descriptor = ::eventfd(0, flags);
  if (descriptor >= 0) timer_files()[descriptor] = {.clock = clock};
  return descriptor;
}

WEIR_EXPORT int timerfd_settime(int descriptor, int flags, const itimerspec* wanted, itimerspec* before) {
  static const auto real = next<int (*)(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
  static const auto take = next<ssize_t (*)(int, void*, size_t)>("read");
  static const auto ready = next<int (*)(pollfd*, nfds_t, int)>("poll");
  if (!in_virtual_time()) return real(descriptor, flags, wanted, before);
  const auto found = timer_files().find(descriptor);
  if (found == timer_files().end()) return errno = EINVAL, -1;
  if (set(found->second, (flags & TFD_TIMER_ABSTIME) != 0, wanted, before) != 0) return -1;
  // What it was due for before is forgotten.
  pollfd one{descriptor, POLLIN, 0};
  uint64_t times;
  if (ready(&one, 1, 0) > 0) (void)!take(descriptor, &times, sizeof times);
  return 0;
}

WEIR_EXPORT int timerfd_gettime(int descriptor, itimerspec* out) {
  static const auto real = next<int (*)(int, itimerspec*)>("timerfd_gettime");
  if (!in_virtual_time()) return real(descriptor, out);
  const auto found = timer_files().find(descriptor);
  if (found == timer_files().end()) return errno = EINVAL, -1;
  *out = told(found->second);
  return 0;
}

// A descriptor of that number may be another file's later.
WEIR_EXPORT int close(int descriptor) {
  static const auto real = next<int (*)(int)>("close");
  if (in_virtual_time()) {
    timer_files().erase(descriptor);
    note_write();
  }
  return real(descriptor);
}

}  // extern "C"
