#include "engine/lent_turns.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/native_error.h"
#include "engine/thread_tuning.h"
#include "engine/told_connection.h"

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
// What is posted in a row leaves together: who polls takes it along, if it is not more than this, and the last was not long ago.
constexpr uint32_t kTogether = 32;
constexpr Time kSoon = 2 * kMicrosecond;
// While who polls takes frames itself, they need not wake the thread: so many that woke it for nothing are enough to know, for a
// while.
constexpr uint32_t kWasted = 4;
constexpr Time kNotEager = 5 * kMillisecond;
// Where there are CPUs to spare, it looks again for a while. If another thread wants the same CPU, it sleeps instead for some
// time.
constexpr unsigned kFewCpus = 2;
constexpr Time kLateYield = 50 * kMicrosecond, kGivingWay = 20 * kMillisecond;

}  // namespace

void LentTurns::start() {
  thread_ = std::thread([this] { run(); });
}

void LentTurns::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  nic_.ring();
  thread_.join();
  nic_.tell(host_.session.memory());
}

// Who had its place before may still be in a list of those that wait for the link.
bool LentTurns::adopt(ProgramPair& pair) {
  constexpr int kPatience = 100;
  for (int attempt = 0; attempt < kPatience && !pair.direct; ++attempt) {
    if (attempt > 0) ::usleep(100);
    const std::lock_guard lock(host_.mutex);
    if (attempt > 0) turn();
    pair.direct = nic_.adopt(pair.qpn, !pair.reliable, pair.kept);
    if (pair.direct) pairs_.push_back(&pair);
  }
  return pair.direct;
}

void LentTurns::modify(ProgramPair& pair, QueuePairState to, const QueueAttributes& attributes, const ProgramAnswer& way) {
  nic_.modify(pair.qpn, to, attributes, way.path, static_cast<uint8_t>(way.priority));
  if (to == QueuePairState::reset) {
    give_back(pair);
    // It may go by the daemon next, which is not to believe what was.
    return host_.session.memory().lent.pairs[pair.qpn % (1u << kLentBlockShift)].qpn.store(0, std::memory_order_relaxed);
  }
  if (to == QueuePairState::rtr) tell_expected(pair, true);
  nic_.tell(host_.session.memory());
}

void LentTurns::give_back(ProgramPair& pair) {
  nic_.tell(host_.session.memory());
  tell_expected(pair, false);
  pair.kept = nic_.give_back(pair.qpn);
  pair.direct = false;
  std::erase(pairs_, &pair);
}

bool LentTurns::turn() {
  const bool moved = nic_.turn();
  if (moved) {
    for (ProgramPair* pair : pairs_) {
      if (pair->watched) host_.attended(*pair);
    }
    if (nic_.captured()) host_.session.wake_nic();
  }
  const Time now = nic_.turned();
  turned_.store(now, std::memory_order_relaxed);
  if (now - told_ > kTellInterval) {
    told_ = now;
    nic_.tell(host_.session.memory());
    host_.session.tell_counters(host_.counters);
  }
  return moved;
}

// Should the program be killed, its peers are told from there on.
void LentTurns::tell_expected(const ProgramPair& pair, bool whether) const {
  if (!pair.reliable) return;
  auto& word = host_.session.memory().lent.pairs[pair.qpn % (1u << kLentBlockShift)].expected;
  static_cast<ToldConnection&>(*pair.transport).tell_expected(whether ? &word : nullptr);
}

// While the daemon writes, it cannot be read: it is looked at again later.
void LentTurns::look() {
  const uint32_t now = host_.session.memory().paths.load(std::memory_order_acquire);
  if (paths_ == now) return;
  const std::lock_guard lock(host_.mutex);
  try {
    nic_.reconfigure();
    paths_ = now;
  } catch (const NativeError&) {
  }
}

// What is posted in a row leaves together. Who has polled lately comes back: until then posting is as good.
void LentTurns::submit() {
  if (nic_.attended() == 0) return;
  const Time now = monotonic_now();
  const Time polled = polled_.load(std::memory_order_relaxed);
  const bool polls = polled != 0 && now - polled < kPolls;
  if (polls) poll(now);
  const bool in_a_row = polls && now - submitted_ < kSoon;
  // The thread takes along what is left should nobody poll: it looks again soon, or has not slept yet.
  const bool awake = sleeps_until_ == 0 || naps_.load(std::memory_order_relaxed);
  submitted_ = now;
  if (in_a_row && awake && nic_.attended() < kTogether) return;
  turn();
  submitted_ = monotonic_now();
  if (sleeps_until_ > (in_a_row ? 0 : nic_.next_deadline())) {
    sleeps_until_ = 0;
    nic_.ring();
  }
}

// Somebody polls, and turns the NIC. It may find something and go away: then frames are the thread's. Returns whether that is so.
bool LentTurns::nap(Time duration) {
  const Time before = monotonic_now();
  eager_ = eager_ || before >= eager_at_;
  naps_.store(true, std::memory_order_seq_cst);
  const bool rests = polled_.load(std::memory_order_seq_cst) == 0;
  if (!rests && !stopping_.load(std::memory_order_acquire)) nic_.sleep(duration, eager_);
  naps_.store(false, std::memory_order_relaxed);
  const Time after = monotonic_now();
  const Time alone = found_.load(std::memory_order_relaxed) ? kAway : kLongAway;
  const bool away = after - turned_.load(std::memory_order_relaxed) > alone;
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

void LentTurns::run() {
  ::prctl(PR_SET_TIMERSLACK, kSlack);
  schedule_soon();
  Time nap = kLeastNap;
  const bool spare = std::thread::hardware_concurrency() > kFewCpus;
  Time shares_until = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    const bool polled = monotonic_now() - polled_.load(std::memory_order_relaxed) < kTurnedLately;
    std::unique_lock lock(host_.mutex, std::defer_lock);
    const bool left = polled && !this->nap(nap);
    if (left || !lock.try_lock()) {
      if (!left) nic_.sleep(nap, false);  // who has the lock may wait for this CPU
      nap = std::min(2 * nap, kMostNap);
      continue;
    }
    nap = kLeastNap;
    sleeps_until_ = 0;
    const bool moved = turn();
    const Time now = nic_.turned();
    const Time until = std::min(nic_.next_deadline(), now + kMostSleep);
    const bool awake = moved || (spare && nic_.lingers() && now > shares_until) || until <= now;
    if (!awake) sleeps_until_ = until;
    lock.unlock();
    if (moved) continue;
    if (awake) {
      ::sched_yield();
      if (const Time after = monotonic_now(); after - now > kLateYield) shares_until = after + kGivingWay;
    } else {
      nic_.sleep(until - now, true);
    }
  }
}

}  // namespace weir
