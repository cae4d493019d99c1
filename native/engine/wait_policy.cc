#include "engine/wait_policy.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "engine/worker_clock.h"

namespace weir {
namespace {

constexpr Time kBusyFor = 2 * kMillisecond;  // time after the last frame for which the loop still polls
constexpr Time kLongestSleep = 50 * kMillisecond;
constexpr Time kLittle = 4;                     // prompt: frames in a quantum; as many as two ends that take turns have
constexpr Time kLongYield = 50 * kMicrosecond;  // adaptive, and in bulk: another thread wants the same CPU ...
constexpr Time kSharing = 20 * kMillisecond;    // ... so for a while this one sleeps where it would look again
// spinning: others get a thirteenth of the CPU. A twentieth of a second is what the kernel takes for them from a real-time
// thread, at once, unless they have had it. A nap that becomes longer than meant is no reason for fewer: interrupts have the rest
// of it.
constexpr Time kNapEvery = 600 * kMicrosecond;
constexpr Time kNap = 50 * kMicrosecond;
constexpr Time kWakeUp = 100 * kMicrosecond;  // adaptive: how long before a deadline a sleep ends, so that none is missed
// prompt: super-frames that come closer than this are waited for awake. Waking costs the thread about as much as the packets in
// them, and even more the sender, in whose time the kernel does it. 64 KiB in each are 5 Gb/s.
constexpr Time kBulkGap = 100 * kMicrosecond;

timespec to_timespec(Time t) { return {static_cast<time_t>(t / kSecond), static_cast<long>(t % kSecond)}; }

}  // namespace

void WaitPolicy::wait(Time now, Time deadline, uint64_t frames, Time quiet, bool told, std::unique_lock<std::mutex>& turning) {
  if (config_.polling == Polling::busy) return;
  if (config_.polling == Polling::adaptive) {
    if (quiet == 0) return;
    if (quiet >= kBusyFor && deadline > now + kWakeUp) return sleep_until(deadline - kWakeUp, now, told, turning);
    if (now < shares_until_) return sleep_until(deadline, now, told, turning);
    return yield(now, turning);
  }
  // No sched_yield(): a thread that gets the CPU by it keeps it until the next tick, which may be milliseconds; one that runs
  // while this one naps mostly loses it when the nap is over.
  Time nap = config_.quantum;
  if (config_.polling == Polling::spinning && quiet < kBusyFor) {
    if (now - napped_ < kNapEvery) return;
    nap = kNap;
    napped_ = now + nap;
  }
  const bool sparse = config_.prompt && comes_little(now, frames);
  if (sparse && in_bulk(now) && now >= shares_until_) return yield(now, turning);
  if (deadline > now + (sparse ? 0 : config_.quantum) && (sparse || quiet >= kBusyFor))
    return sleep_until(deadline, now, told, turning);
  const timespec until = to_timespec(now + nap);
  turning.unlock();
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

// Yields to threads that want this CPU: the kernel's receiving thread, for one. If others keep it for long, looking for frames
// would take it from those who bring them.
void WaitPolicy::yield(Time now, std::unique_lock<std::mutex>& turning) {
  turning.unlock();
  sched_yield();
  const Time after = monotonic_now();
  if (after - now > kLongYield) shares_until_ = after + kSharing;
}

// Whether the next super-frame is worth waiting for awake. Where programs have the NIC it is not: they poll, and want the CPU.
bool WaitPolicy::in_bulk(Time now) const {
  return bulk_gap_ < kBulkGap && now - bulk_at_ < kBulkGap && !devices_.have_programs();
}

// Whether fewer frames come than a nap would gather: then it would only make them wait.
bool WaitPolicy::comes_little(Time now, uint64_t frames) {
  if (const Time passed = now - counted_from_; passed >= config_.quantum) {
    // However long it was away: what came meanwhile came over all that time.
    little_ = static_cast<Time>(frames - counted_) * config_.quantum <= kLittle * passed;
    counted_from_ = now;
    counted_ = frames;
  }
  return little_ && frames - counted_ <= static_cast<uint64_t>(kLittle);
}

void WaitPolicy::gather_descriptors() {
  descriptors_.clear();
  descriptors_.push_back({waker_.descriptor(), POLLIN, 0});
  for (Device* device : devices_.all()) {
    for (WirePort& port : device->ports()) {
      if (port.up() && port.port().wait_descriptor() >= 0) descriptors_.push_back({port.port().wait_descriptor(), POLLIN, 0});
    }
  }
  for (const auto& nic : devices_.nics()) {
    if (nic->programs() != nullptr) descriptors_.push_back({nic->programs()->descriptor(), POLLIN, 0});
  }
  if (link_news_.namespaces() > 0) descriptors_.push_back({link_news_.descriptor(), POLLIN, 0});
}

bool WaitPolicy::work_waits() const {
  return (config_.shared && config_.shared->exchange().waiting(config_.share)) || devices_.work_waits();
}

void WaitPolicy::sleep_until(Time deadline, Time now, bool told, std::unique_lock<std::mutex>& turning) {
  if (std::exchange(descriptors_are_old_, false)) gather_descriptors();
  waker_.doze();
  for (const auto& nic : devices_.nics()) {
    if (nic->programs() != nullptr) nic->programs()->doze();
  }
  const timespec timeout = to_timespec(work_waits() ? 0 : std::clamp<Time>(deadline - now, 0, kLongestSleep));
  sleeps_from_ = now;
  holds_ = told;
  if (holds_) counters_.hold();
  turning.unlock();
  ppoll(descriptors_.data(), descriptors_.size(), &timeout, nullptr);
  waker_.rise((descriptors_[0].revents & POLLIN) != 0);
  for (const auto& nic : devices_.nics()) {
    if (nic->programs() != nullptr) nic->programs()->rise();
  }
}

std::optional<Time> WaitPolicy::end_sleep(Time now) {
  if (sleeps_from_ == 0) return std::nullopt;
  if (std::exchange(holds_, false)) counters_.release(now);
  return now - std::exchange(sleeps_from_, 0);
}

void WaitPolicy::note_super_frames(Time now) {
  const uint64_t bulk = devices_.super_frames_seen();
  if (bulk == bulk_seen_) return;
  bulk_gap_ = now - std::exchange(bulk_at_, now);
  bulk_seen_ = bulk;
}

void WaitPolicy::wait_for_ring(Time duration) {
  const timespec timeout = to_timespec(duration);
  pollfd rung{waker_.descriptor(), POLLIN, 0};
  ppoll(&rung, 1, &timeout, nullptr);
  if ((rung.revents & POLLIN) != 0) waker_.rise(true);
}

}  // namespace weir
