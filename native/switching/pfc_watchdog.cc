#include "switching/pfc_watchdog.h"

#include <algorithm>

namespace weir {
namespace {

constexpr Time kLooks = 4;  // looks in a detection time

}  // namespace

PfcWatchdog::Verdict PfcWatchdog::look(Time now, const Queues& queues) {
  Verdict verdict;
  next_ = queues.paused != 0 ? now + std::max<Time>(1, parameters_.detection_time / kLooks) : kNever;
  for (size_t p = 0; p < kPriorities; ++p) {
    const auto bit = static_cast<uint8_t>(1u << p);
    if ((storms_ & bit) == 0) {
      if (!stuck(now, p, queues) || now - since_[p] < parameters_.detection_time) continue;
      verdict.detected = static_cast<uint8_t>(verdict.detected | bit);
    }
    if (const Time over = asked_[p] + parameters_.restoration_time; over > now) {
      next_ = std::min(next_, over);
    } else if ((queues.paused & bit) == 0) {
      verdict.restored = static_cast<uint8_t>(verdict.restored | bit);
    }
  }
  storms_ = static_cast<uint8_t>((storms_ | verdict.detected) & ~verdict.restored);
  paused_ = static_cast<uint8_t>(paused_ & ~storms_);
  return verdict;
}

// Whether the queue has been kept from sending since since_. Frames that come right behind a pause are as good as those before
// it: else a switch whose queue was empty would find its storm later than those that it has to pause because of it.
bool PfcWatchdog::stuck(Time now, size_t p, const Queues& queues) {
  const auto bit = static_cast<uint8_t>(1u << p);
  if ((queues.paused & bit) == 0) return paused_ = static_cast<uint8_t>(paused_ & ~bit), false;
  if ((paused_ & bit) == 0 || (queues.backlogged & bit) == 0 || sent_[p] != queues.sent[p]) {
    paused_ = static_cast<uint8_t>(paused_ | bit);
    since_[p] = now;
    sent_[p] = queues.sent[p];
  }
  return true;
}

}  // namespace weir
