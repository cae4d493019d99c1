// The thread of a program's transports (engine/program_transports.h), which turns them while nobody polls.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

#include "engine/program_transports.h"
#include "engine/thread_tuning.h"
#include "engine/virtual_turns.h"
#include "engine/worker_clock.h"

namespace weir {
namespace {

// The thread leaves all to a caller that polls without a pause, and looks whether it still does: the more seldom, the longer it
// has. A caller that waits for memory to change polls seldom, and then it is the thread that changes it.
constexpr Time kPolledLately = 10 * kMicrosecond;
constexpr Time kShortestDoze = 20 * kMicrosecond;
constexpr Time kLongestDoze = 320 * kMicrosecond;
constexpr unsigned long kTimerSlack = 5 * kMicrosecond;
constexpr Time kLongestRest = 100 * kMillisecond;  // then it looks whether the daemon lives

}  // namespace

void ProgramTransports::start() {
  // Signals are the program's; faults are whose they are.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  if (lent_ != nullptr) lent_->start();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ProgramTransports::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  session_.ring_thread();
  thread_.join();
  if (lent_ != nullptr) lent_->stop();
}

void ProgramTransports::run() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlack);
  if (weir_turns_serve != nullptr) {
    weir_turns_serve();
  } else {
    schedule_soon();
  }
  // A caller that computes for a time polls then, and what has come meanwhile is there.
  const bool left = weir_turns_computes == nullptr || !weir_turns_computes();
  Time looked = 0;
  Time nap = kShortestDoze;
  bool rung = false;  // rung by the daemon, in its last nap
  while (!stopping_.load(std::memory_order_acquire)) {
    const Time now = monotonic_now();
    if (now - looked > kLongestRest) {
      looked = now;
      if (session_.ended()) return fail();
      if (lent_ != nullptr) lent_->look();
      look();
    }
    std::unique_lock lock(mutex_, std::defer_lock);
    const bool helped = left && !rung && now - polled_.load(std::memory_order_relaxed) < kPolledLately;
    if (helped || !lock.try_lock()) {
      rung = this->nap(nap, helped);
      nap = std::min(2 * nap, kLongestDoze);
      continue;
    }
    nap = kShortestDoze;
    rung = false;
    Time until = now;
    sleeps_until_ = 0;
    if (!turn(now)) until = sleeps_until_ = std::min(deadline_, now + kLongestRest);
    lock.unlock();
    if (until > now) sleep(until - now);
  }
}

void ProgramTransports::sleep(Time duration) {
  ProgramMemory& shared = session_.memory();
  const uint32_t bell = shared.bell.load(std::memory_order_acquire);
  bool waits = true;
  {
    const std::lock_guard lock(mutex_);
    const uint32_t wanted = returned_ + slots_wanted();
    shared.returned_wanted.store(wanted, std::memory_order_relaxed);
    shared.program_sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    waits = shared.frames_written.load(std::memory_order_acquire) == frames_ &&
            static_cast<int32_t>(shared.returned_written.load(std::memory_order_acquire) - wanted) < 0 &&
            deadline_ >= sleeps_until_;
  }
  if (waits && !stopping_.load(std::memory_order_acquire)) session_.wait_for_bell(bell, duration);
  shared.program_sleeps.store(0, std::memory_order_relaxed);
}

// Must be called while somebody has the lock; `helped`: while somebody polls. Returns whether there is something for it.
bool ProgramTransports::nap(Time duration, bool helped) {
  ProgramMemory& shared = session_.memory();
  const uint32_t bell = shared.bell.load(std::memory_order_acquire);
  naps_.store(true, std::memory_order_seq_cst);
  const bool rests = helped && polled_.load(std::memory_order_seq_cst) == 0;
  // The poller has said so before the thread napped, and who it was woken for may be another one.
  const bool has_frames = may_have_left_.load(std::memory_order_seq_cst) && session_.ask_for_frames();
  if (!rests && !has_frames && !stopping_.load(std::memory_order_acquire)) session_.wait_for_bell(bell, duration);
  naps_.store(false, std::memory_order_relaxed);
  shared.program_sleeps.store(0, std::memory_order_relaxed);
  return has_frames || shared.bell.load(std::memory_order_relaxed) != bell;
}

// Slots that have to come back before it is worth a wake: half of those that the daemon has of a queue pair that waits for them,
// or of those that end messages.
uint32_t ProgramTransports::slots_wanted() const {
  uint32_t wanted = ends_ == 0 ? kProgramPackets : std::max(1u, ends_ / 2);
  for (const ProgramPair* pair : dirty_) wanted = std::min(wanted, std::max(1u, pair->unsent / 2));
  return wanted;
}

}  // namespace weir
