// Clocks and sleeps of a program in virtual time. Who reads clocks again and again waits for time to pass, which it does then.
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

bool is_of_processor(clockid_t clock) {
  return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

// Sleeps until then; returns the time that is left when a signal has ended the sleep, or 0.
Time sleep_until(Time until) {
  bool interrupted = false;
  wait_until(
      0, until, [] { return false; }, &interrupted);
  return interrupted ? std::max<Time>(0, until - virtual_now()) : 0;
}
bool is_valid(const timespec* t) { return t != nullptr && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < kSecond; }

int slept(Time left, timespec* rest) {
  if (left == 0) return 0;
  if (rest != nullptr) *rest = as_timespec(left);
  return EINTR;
}

int tell_time(clockid_t clock, timespec* out, const void* from) {
  if (!in_virtual_time()) return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  // Clocks of others' processors are not kept.
  const Time of_processor = clock == CLOCK_THREAD_CPUTIME_ID    ? computed_by_thread()
                            : clock == CLOCK_PROCESS_CPUTIME_ID ? computed_by_process()
                                                                : 0;
  *out = as_timespec(is_of_processor(clock) ? of_processor : base_of(clock) + read_clock(from));
  return 0;
}

}  // namespace

extern "C" {

WEIR_EXPORT int clock_gettime(clockid_t clock, timespec* out) { return tell_time(clock, out, __builtin_return_address(0)); }

WEIR_EXPORT int gettimeofday(timeval* out, void*) {
  timespec t;
  tell_time(CLOCK_REALTIME, &t, __builtin_return_address(0));
  *out = {t.tv_sec, t.tv_nsec / 1'000};
  return 0;
}

WEIR_EXPORT time_t time(time_t* out) {
  timespec t;
  tell_time(CLOCK_REALTIME, &t, __builtin_return_address(0));
  if (out != nullptr) *out = t.tv_sec;
  return t.tv_sec;
}

WEIR_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* rest) {
  static const auto real = next<int (*)(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (!in_virtual_time()) return real(clock, flags, wanted, rest);
  if (!is_valid(wanted) || is_of_processor(clock)) return EINVAL;
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const Time until = absolute ? time_of(*wanted) - base_of(clock) : virtual_now() + time_of(*wanted);
  return slept(sleep_until(until), absolute ? nullptr : rest);
}

WEIR_EXPORT int nanosleep(const timespec* wanted, timespec* rest) {
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, rest);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

WEIR_EXPORT int usleep(useconds_t duration) {
  const timespec wanted = as_timespec(Time{duration} * kMicrosecond);
  return nanosleep(&wanted, nullptr);
}

WEIR_EXPORT unsigned sleep(unsigned seconds) {
  const timespec wanted = as_timespec(Time{seconds} * kSecond);
  timespec rest{};
  return nanosleep(&wanted, &rest) == 0 ? 0 : static_cast<unsigned>((time_of(rest) + kSecond - 1) / kSecond);
}

}  // extern "C"
