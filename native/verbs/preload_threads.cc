// Threads of a program in virtual time: they begin and end in turns, and wait for one another so.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

constexpr uint32_t kThreads = TurnPlace::kProcess | TurnPlace::kShared | TurnPlace::kOthers;

struct Beginning {
  void* (*routine)(void*);
  void* argument;
  uint32_t place;
};

// Places of threads that nobody has joined; whoever has the turn may look.
std::map<pthread_t, uint32_t>& joinable() {
  static std::map<pthread_t, uint32_t> places;
  return places;
}

void* begin_thread(void* given) {
  const std::unique_ptr<Beginning> beginning(static_cast<Beginning*>(given));
  begin_turns(beginning->place);
  watch_spins();
  return beginning->routine(beginning->argument);
}

struct Call {
  void (*function)(sigval);
  sigval value;
  uint32_t place;
};

void* begin_call(void* given) {
  const Call call = *std::unique_ptr<Call>(static_cast<Call*>(given));
  begin_turns(call.place);
  detach_turns();
  watch_spins();
  // Whose signals are blocked here is the thread that has made this one, in whatever it was doing.
  sigset_t own;
  sigemptyset(&own);
  for (const int one : {SIGSTKFLT, SIGTRAP, SIGSEGV}) sigaddset(&own, one);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  call.function(call.value);
  return nullptr;
}

Time until_of(const timespec* at, clockid_t clock) {
  return at->tv_sec * kSecond + at->tv_nsec - (clock == CLOCK_REALTIME ? kVirtualEpoch : kVirtualBoot);
}

// Spurious wakes are any condition's. A waiter goes on when any condition of the process was told, or another process has written
// to memory that both may share, where the condition may be.
int wait_for_condition(pthread_mutex_t* mutex, Time until) {
  const uint32_t before = told();
  pthread_mutex_unlock(mutex);
  bool has_waited = false;
  const auto is_told = [&] {
    const bool elsewhere = std::exchange(has_waited, true) && shares_memory() && (woken() & TurnPlace::kShared) != 0;
    return elsewhere || told() != before;
  };
  bool interrupted = false;
  const bool goes_on = wait_until(kThreads, until, is_told, &interrupted);
  pthread_mutex_lock(mutex);
  return goes_on || interrupted ? 0 : ETIMEDOUT;
}

// A barrier, in the place of libc's. One thread at a time has its turn, of any process that shares it.
struct Barrier {
  uint32_t count = 0;
  uint32_t arrived = 0;
  volatile uint32_t round = 0;
};
static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t));

template <class Lock>
int lock_in_turns(Lock* lock, int (*attempt)(Lock*)) {
  int error = attempt(lock);
  if (error != EBUSY) return error;
  contend(true);
  wait_until(kThreads, kNever, [&] { return (error = attempt(lock)) != EBUSY; });
  contend(false);
  return error;
}

// The C library keeps the clock of a condition in bits of it that it does not tell. They are those by which a fresh one of
// CLOCK_MONOTONIC differs from one of CLOCK_REALTIME.
using ConditionBytes = std::array<uint8_t, sizeof(pthread_cond_t)>;
ConditionBytes bytes_of(const pthread_cond_t& condition) { return std::bit_cast<ConditionBytes>(condition); }
ConditionBytes fresh_condition(clockid_t clock) {
  pthread_condattr_t attributes;
  ::pthread_condattr_init(&attributes);
  ::pthread_condattr_setclock(&attributes, clock);
  pthread_cond_t condition{};
  ::pthread_cond_init(&condition, &attributes);
  return bytes_of(condition);
}
clockid_t clock_of(const pthread_cond_t* condition) {
  static const ConditionBytes plain = fresh_condition(CLOCK_REALTIME);
  static const ConditionBytes monotonic = fresh_condition(CLOCK_MONOTONIC);
  const ConditionBytes bytes = bytes_of(*condition);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (((bytes[i] ^ monotonic[i]) & (plain[i] ^ monotonic[i])) != 0) return CLOCK_REALTIME;
  }
  return CLOCK_MONOTONIC;
}

}  // namespace

namespace weir {

void begin_detached(void (*function)(sigval), sigval value, size_t stack) {
  static const auto real = next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack > 0) ::pthread_attr_setstacksize(&attributes, stack);
  auto call = std::make_unique<Call>(Call{function, value, take_place()});
  pthread_t thread;
  const int error = real(&thread, &attributes, begin_call, call.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) refuse("a thread that cannot be made");
  (void)call.release();
}

}  // namespace weir

extern "C" {

WEIR_EXPORT int pthread_create(pthread_t* out, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  static const auto real = next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (!in_virtual_time()) return real(out, attributes, routine, argument);
  const uint32_t place = take_place();
  auto beginning = std::make_unique<Beginning>(Beginning{routine, argument, place});
  const int error = real(out, attributes, begin_thread, beginning.get());
  if (error != 0) refuse("a thread that cannot be made");
  (void)beginning.release();
  joinable()[*out] = place;
  return 0;
}

WEIR_EXPORT int pthread_join(pthread_t thread, void** result) {
  static const auto real = next<int (*)(pthread_t, void**)>("pthread_join");
  if (!in_virtual_time()) return real(thread, result);
  // Its last turn is over a moment before it has ended.
  const auto found = joinable().find(thread);
  if (found != joinable().end()) {
    wait_until(kThreads, kNever, [&] { return has_ended(found->second); });
    free_place(found->second);
    joinable().erase(found);
  }
  return real(thread, result);
}

WEIR_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  return in_virtual_time() ? lock_in_turns(mutex, ::pthread_mutex_trylock) : real(mutex);
}

// Others may have it when what was computed with it has passed. Locks of readers and writers are let go of by UCX where it is
// called by malloc(), whose own lock nobody may wait with.
WEIR_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_unlock");
  if (computes()) let_pass_in_part();
  return real(mutex);
}

WEIR_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static const auto real = next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  return in_virtual_time() ? lock_in_turns(lock, ::pthread_rwlock_tryrdlock) : real(lock);
}

WEIR_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  static const auto real = next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  return in_virtual_time() ? lock_in_turns(lock, ::pthread_rwlock_trywrlock) : real(lock);
}

WEIR_EXPORT int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) {
  static const auto real = next<int (*)(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned)>("pthread_barrier_init");
  if (!in_virtual_time()) return real(barrier, attributes, count);
  if (count == 0) return EINVAL;
  new (barrier) Barrier{.count = count};
  return 0;
}

WEIR_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) {
  static const auto real = next<int (*)(pthread_barrier_t*)>("pthread_barrier_wait");
  if (!in_virtual_time()) return real(barrier);
  let_pass();
  auto& ours = *reinterpret_cast<Barrier*>(barrier);
  const uint32_t round = ours.round;
  if (++ours.arrived == ours.count) {
    ours.arrived = 0;
    ours.round = round + 1;
    tell_others();
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  wait_until(kThreads, kNever, [&] { return ours.round != round; });
  return 0;
}

WEIR_EXPORT int pthread_barrier_destroy(pthread_barrier_t* barrier) {
  static const auto real = next<int (*)(pthread_barrier_t*)>("pthread_barrier_destroy");
  return in_virtual_time() ? 0 : real(barrier);
}

WEIR_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  return in_virtual_time() ? wait_for_condition(mutex, kNever) : real(condition, mutex);
}

WEIR_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  return in_virtual_time() ? wait_for_condition(mutex, until_of(until, clock_of(condition))) : real(condition, mutex, until);
}

WEIR_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                       const timespec* until) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  return in_virtual_time() ? wait_for_condition(mutex, until_of(until, clock)) : real(condition, mutex, clock, until);
}

WEIR_EXPORT int pthread_cond_signal(pthread_cond_t* condition) {
  static const auto real = next<int (*)(pthread_cond_t*)>("pthread_cond_signal");
  tell_others();
  return real(condition);
}

WEIR_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) {
  static const auto real = next<int (*)(pthread_cond_t*)>("pthread_cond_broadcast");
  tell_others();
  return real(condition);
}

WEIR_EXPORT int sem_post(sem_t* semaphore) {
  static const auto real = next<int (*)(sem_t*)>("sem_post");
  if (computes()) note_write();
  return real(semaphore);
}

WEIR_EXPORT int sem_wait(sem_t* semaphore) {
  static const auto real = next<int (*)(sem_t*)>("sem_wait");
  if (!in_virtual_time()) return real(semaphore);
  wait_until(kThreads, kNever, [&] { return ::sem_trywait(semaphore) == 0; });
  return 0;
}

WEIR_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  static const auto real = next<int (*)(sem_t*, const timespec*)>("sem_timedwait");
  if (!in_virtual_time()) return real(semaphore, until);
  const bool got = wait_until(kThreads, until_of(until, CLOCK_REALTIME), [&] { return ::sem_trywait(semaphore) == 0; });
  return got ? 0 : (errno = ETIMEDOUT, -1);
}

}  // extern "C"
