// Waits of a program in virtual time for descriptors, child processes and others' turns. Whatever passes between programs of a
// run by sockets, pipes and files takes no time.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

// Descriptors are ready by what somebody has called.
constexpr uint32_t kDescriptors = TurnPlace::kOthers;
// Calls in a row that found nothing after which a thread waits, and for how long.
constexpr uint32_t kVainCalls = 64;
constexpr Time kShortestVain = 1 * kMicrosecond;
constexpr Time kLongestVain = 1 * kMillisecond;

Time until_of(int milliseconds) { return milliseconds < 0 ? kNever : virtual_now() + milliseconds * kMillisecond; }
Time until_of(const timespec* t) { return t == nullptr ? kNever : virtual_now() + t->tv_sec * kSecond + t->tv_nsec; }

// What has nothing each time that it is asked and does not block, without a turn between: a descriptor, or a set of them.
struct Vain {
  int descriptor = -1;
  uint32_t times = 0;
  uint32_t turns = 0;
  Time wait = kShortestVain;
};
thread_local Vain vain __attribute__((tls_model("initial-exec")));
thread_local Vain vain_set __attribute__((tls_model("initial-exec")));

// Who asks for ever waits for others, and looks again after a time in any case: it may have something else to do.
void ask_in_vain_of(Vain& asked, int descriptor) {
  if (asked.descriptor != descriptor || asked.turns != turns_given()) asked = {descriptor, 0, turns_given()};
  if (++asked.times < kVainCalls) return;
  const Time until = virtual_now() + asked.wait;
  constexpr uint32_t kAny = TurnPlace::kNews | TurnPlace::kProcess | TurnPlace::kOthers;
  give_turn(kAny | (shares_memory() ? TurnPlace::kShared : 0u), until, true);
  asked.wait = virtual_now() < until ? kShortestVain : std::min(2 * asked.wait, kLongestVain);
  asked.turns = turns_given();
}

// Waits until ask(), which returns at once, says other than 0, or time is up. A signal ends it.
template <class Ask>
int wait_for(Time until, const Ask& ask) {
  int result = 0;
  bool interrupted = false;
  const bool blocks = until > virtual_now();
  // Timers with descriptors are among what may be asked about.
  const auto done = [&] {
    fire_timer_files();
    return (result = ask()) != 0;
  };
  while (!wait_until(kDescriptors, std::min(until, next_timer_file()), done, &interrupted) && !interrupted &&
         virtual_now() < until) {
  }
  if (interrupted && result == 0) return errno = EINTR, -1;
  if (!blocks && result == 0) ask_in_vain_of(vain_set, -1);
  return result;
}

// The sets are what is asked about before each asking, and the answer behind it.
template <class Ask>
int select_until(fd_set* in, fd_set* out, fd_set* except, Time until, const Ask& ask) {
  fd_set* const given[] = {in, out, except};
  fd_set asked[3];
  for (int i = 0; i < 3; ++i) {
    if (given[i] != nullptr) asked[i] = *given[i];
  }
  return wait_for(until, [&] {
    for (int i = 0; i < 3; ++i) {
      if (given[i] != nullptr) *given[i] = asked[i];
    }
    return ask();
  });
}

bool is_ready(int descriptor, short events) {
  static const auto real = next<int (*)(pollfd*, nfds_t, int)>("poll");
  fire_timer_files();
  pollfd one{descriptor, events, 0};
  return real(&one, 1, 0) != 0;
}

}  // namespace

namespace weir {

void ask_in_vain(int descriptor) { ask_in_vain_of(vain, descriptor); }

}  // namespace weir

namespace {

// A call that would block waits here first. Returns false when a signal has ended the wait.
bool await_bytes(int descriptor, int flags = 0) {
  if (!in_virtual_time()) return true;
  if (!is_ready(descriptor, POLLIN)) {
    if ((flags & MSG_DONTWAIT) != 0 || (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0) return ask_in_vain(descriptor), true;
    if (wait_for(kNever, [&] { return is_ready(descriptor, POLLIN) ? 1 : 0; }) <= 0) return false;
  }
  note_read();
  return true;
}

}  // namespace

extern "C" {

WEIR_EXPORT int poll(pollfd* all, nfds_t count, int timeout) {
  static const auto real = next<int (*)(pollfd*, nfds_t, int)>("poll");
  if (!in_virtual_time()) return real(all, count, timeout);
  return wait_for(until_of(timeout), [&] { return real(all, count, 0); });
}

WEIR_EXPORT int ppoll(pollfd* all, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  static const auto real = next<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  if (!in_virtual_time()) return real(all, count, timeout, mask);
  static constexpr timespec kNow{0, 0};
  return wait_for(until_of(timeout), [&] { return real(all, count, &kNow, mask); });
}

WEIR_EXPORT int __poll_chk(pollfd* all, nfds_t count, int timeout, size_t) { return poll(all, count, timeout); }

WEIR_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout, const sigset_t* mask) {
  static const auto real = next<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>("pselect");
  if (!in_virtual_time()) return real(count, in, out, except, timeout, mask);
  static constexpr timespec kNow{0, 0};
  return select_until(in, out, except, until_of(timeout), [&] { return real(count, in, out, except, &kNow, mask); });
}

WEIR_EXPORT int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  static const auto real = next<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  if (!in_virtual_time()) return real(count, in, out, except, timeout);
  const Time until = timeout == nullptr ? kNever : virtual_now() + timeout->tv_sec * kSecond + timeout->tv_usec * kMicrosecond;
  return select_until(in, out, except, until, [&] {
    timeval now{0, 0};
    return real(count, in, out, except, &now);
  });
}

WEIR_EXPORT int epoll_wait(int set, epoll_event* events, int most, int timeout) {
  static const auto real = next<int (*)(int, epoll_event*, int, int)>("epoll_wait");
  if (!in_virtual_time()) return real(set, events, most, timeout);
  return wait_for(until_of(timeout), [&] { return real(set, events, most, 0); });
}

WEIR_EXPORT int epoll_pwait(int set, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  static const auto real = next<int (*)(int, epoll_event*, int, int, const sigset_t*)>("epoll_pwait");
  if (!in_virtual_time()) return real(set, events, most, timeout, mask);
  return wait_for(until_of(timeout), [&] { return real(set, events, most, 0, mask); });
}

WEIR_EXPORT ssize_t read(int descriptor, void* bytes, size_t length) {
  static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
  // A read of nothing only tells whether the descriptor can be read.
  return length == 0 || await_bytes(descriptor) ? real(descriptor, bytes, length) : -1;
}
WEIR_EXPORT ssize_t __read_chk(int descriptor, void* bytes, size_t length, size_t) { return read(descriptor, bytes, length); }

WEIR_EXPORT ssize_t readv(int descriptor, const iovec* pieces, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("readv");
  const bool nothing = std::all_of(pieces, pieces + std::max(count, 0), [](const iovec& piece) { return piece.iov_len == 0; });
  return nothing || await_bytes(descriptor) ? real(descriptor, pieces, count) : -1;
}

WEIR_EXPORT ssize_t recvfrom(int descriptor, void* bytes, size_t length, int flags, sockaddr* from, socklen_t* from_length) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, int, sockaddr*, socklen_t*)>("recvfrom");
  if (!in_virtual_time() || (flags & MSG_WAITALL) == 0) {
    return await_bytes(descriptor, flags) ? real(descriptor, bytes, length, flags, from, from_length) : -1;
  }
  // The rest may be another program's to send.
  size_t got = 0;
  while (got < length) {
    if (!await_bytes(descriptor, flags)) return got > 0 ? static_cast<ssize_t>(got) : -1;
    const ssize_t part = real(descriptor, static_cast<char*>(bytes) + got, length - got, flags & ~MSG_WAITALL, from, from_length);
    if (part <= 0) return got > 0 ? static_cast<ssize_t>(got) : part;
    got += static_cast<size_t>(part);
  }
  return static_cast<ssize_t>(got);
}
WEIR_EXPORT ssize_t recv(int descriptor, void* bytes, size_t length, int flags) {
  return recvfrom(descriptor, bytes, length, flags, nullptr, nullptr);
}
WEIR_EXPORT ssize_t __recv_chk(int descriptor, void* bytes, size_t length, size_t, int flags) {
  return recvfrom(descriptor, bytes, length, flags, nullptr, nullptr);
}

WEIR_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, msghdr*, int)>("recvmsg");
  return await_bytes(descriptor, flags) ? real(descriptor, message, flags) : -1;
}

WEIR_EXPORT int accept(int descriptor, sockaddr* address, socklen_t* length) {
  static const auto real = next<int (*)(int, sockaddr*, socklen_t*)>("accept");
  return await_bytes(descriptor) ? real(descriptor, address, length) : -1;
}
WEIR_EXPORT int accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  static const auto real = next<int (*)(int, sockaddr*, socklen_t*, int)>("accept4");
  return await_bytes(descriptor) ? real(descriptor, address, length, flags) : -1;
}

// A program that makes system calls by their numbers: the one that waits, and those by which UCX maps memory, which puts itself
// in the place of mmap() and shmat().
WEIR_EXPORT long syscall(long number, ...) {
  static const auto real = next<long (*)(long, ...)>("syscall");
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& one : a) one = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_mmap || number == SYS_shmat) {
    const long at = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    auto* const memory = reinterpret_cast<void*>(at);
    if (number == SYS_shmat) {
      note_attachment(memory, static_cast<int>(a[0]));
    } else {
      note_mapping(memory, static_cast<size_t>(a[1]), static_cast<int>(a[2]), static_cast<int>(a[3]), static_cast<int>(a[4]));
    }
    return at;
  }
  constexpr long kPlain = ~static_cast<long>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  const long operation = a[1] & kPlain;
  if (number != SYS_futex || !in_virtual_time()) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) {
    if (!wake_server(reinterpret_cast<const void*>(a[0]))) tell_others();
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  auto& word = *reinterpret_cast<std::atomic<uint32_t>*>(a[0]);
  const auto value = static_cast<uint32_t>(a[2]);
  const auto* timeout = reinterpret_cast<const timespec*>(a[3]);
  Time until = until_of(timeout);
  if (operation == FUTEX_WAIT_BITSET && timeout != nullptr) {
    const bool realtime = (a[1] & FUTEX_CLOCK_REALTIME) != 0;
    until = timeout->tv_sec * kSecond + timeout->tv_nsec - (realtime ? kVirtualEpoch : kVirtualBoot);
  }
  if (word.load(std::memory_order_acquire) != value) return errno = EAGAIN, -1;
  if (is_server()) return serve_until(word, value, until) ? 0 : (errno = ETIMEDOUT, -1);
  const uint32_t before = told();
  constexpr uint32_t kCauses = TurnPlace::kProcess | TurnPlace::kShared | TurnPlace::kOthers;
  const bool woken =
      wait_until(kCauses, until, [&] { return word.load(std::memory_order_acquire) != value || told() != before; });
  return woken ? 0 : (errno = ETIMEDOUT, -1);
}

}  // extern "C"
