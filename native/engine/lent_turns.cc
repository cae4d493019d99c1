// How a program's own NIC is turned: by who posts and polls, and by a thread of this library while nobody does.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

#include "base/native_error.h"
#include "engine/program_transports.h"

namespace weir {
namespace {

constexpr Time kTurnedLately = 10 * kMicrosecond;
constexpr Time kLeastNap = 20 * kMicrosecond;
constexpr Time kMostNap = 320 * kMicrosecond;
constexpr Time kPolls = kMillisecond;
// Without a turn who polls is away: after it has found something, or else. It may want a CPU, and the thread as well.
constexpr Time kAway = kMicrosecond, kLongAway = 50 * kMicrosecond;
constexpr unsigned long kSlack = 5 * kMicrosecond;
constexpr Time kMostSleep = 100 * kMillisecond;
constexpr Time kTellInterval = 50 * kMillisecond;
// What is posted in a row leaves together: who polls takes it along, if it is not more than this, and not long ago.
constexpr uint32_t kTogether = 32;
constexpr Time kSoon = 2 * kMicrosecond;
// While who polls takes frames itself, they need not wake the thread: so many that woke it for nothing are enough to know, for a
// while.
constexpr uint32_t kWasted = 4;
constexpr Time kNotEager = 5 * kMillisecond;

}  // namespace

bool ProgramTransports::turn_lent() {
  const bool moved = lent_->turn();
  if (moved) {
    for (ProgramPair* pair : direct_) {
      if (pair->watched) attended(*pair);
    }
  }
  const Time now = lent_->turned();
  lent_turned_.store(now, std::memory_order_relaxed);
  if (now - told_ > kTellInterval) {
    told_ = now;
    lent_->tell(session_.memory());
    session_.tell_counters(counters_);
  }
  return moved;
}

// The daemon's NIC may be another now. While the daemon writes, it cannot be read: it is looked at again later.
void ProgramTransports::look_at_path() {
  const uint32_t now = session_.memory().paths.load(std::memory_order_acquire);
  if (paths_ == now) return;
  const std::lock_guard lock(mutex_);
  try {
    lent_->reconfigure();
    paths_ = now;
  } catch (const NativeError&) {
  }
}

// What is posted in a row leaves together. Who has polled lately comes back: until then posting is as good.
void ProgramTransports::submit_lent() {
  const Time now = program_now();
  const Time polled = polled_.load(std::memory_order_relaxed);
  const bool polls = polled != 0 && now - polled < kPolls;
  if (polls) polled_.store(now, std::memory_order_relaxed);
  found_.store(false, std::memory_order_relaxed);
  const bool in_a_row = polls && now - lent_turn_ended_ < kSoon;
  const bool naps = lent_naps_.load(std::memory_order_relaxed);
  if (in_a_row && naps && lent_->attended() < kTogether) return;
  turn_lent();
  lent_turn_ended_ = program_now();
  if (lent_sleeps_until_ > (in_a_row ? 0 : lent_->next_deadline())) {
    lent_sleeps_until_ = 0;
    lent_->ring();
  }
}

// Somebody polls, and turns the NIC. It may find something and go away: then frames are the thread's. Returns whether that is so.
bool ProgramTransports::nap_lent(Time duration) {
  const Time before = program_now();
  eager_ = eager_ || before >= eager_at_;
  lent_naps_.store(true, std::memory_order_seq_cst);
  const bool rests = polled_.load(std::memory_order_seq_cst) == 0;
  if (!rests && !stopping_.load(std::memory_order_acquire)) lent_->sleep(duration, eager_);
  lent_naps_.store(false, std::memory_order_relaxed);
  const Time after = program_now();
  const Time alone = found_.load(std::memory_order_relaxed) ? kAway : kLongAway;
  const bool away = after - lent_turned_.load(std::memory_order_relaxed) > alone;
  if (!eager_ || after - before >= duration) return away;
  if (away) {
    wasted_ = 0;
  } else if (++wasted_ == kWasted) {
    wasted_ = 0;
    eager_ = false;
    eager_at_ = before + kNotEager;
  }
  return away;
}

void ProgramTransports::run_lent() {
  ::prctl(PR_SET_TIMERSLACK, kSlack);
  Time nap = kLeastNap;
  while (!stopping_.load(std::memory_order_acquire)) {
    const bool polled = program_now() - polled_.load(std::memory_order_relaxed) < kTurnedLately;
    std::unique_lock lock(mutex_, std::defer_lock);
    if ((polled && !nap_lent(nap)) || !lock.try_lock()) {
      nap = std::min(2 * nap, kMostNap);
      if (!polled) ::sched_yield();
      continue;
    }
    nap = kLeastNap;
    lent_sleeps_until_ = 0;
    const bool moved = turn_lent();
    const Time now = lent_->turned();
    const Time until = std::min(lent_->next_deadline(), now + kMostSleep);
    const bool awake = moved || lent_->lingers() || until <= now;
    if (!awake) lent_sleeps_until_ = until;
    lock.unlock();
    if (awake) {
      ::sched_yield();
    } else {
      lent_->sleep(until - now, true);
    }
  }
}

}  // namespace weir
