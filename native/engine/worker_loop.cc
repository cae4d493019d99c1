// A worker's loop: its turns, its waits, and the threads that turn it: its own, or an application's that polls.
#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "engine/worker.h"

namespace weir {
namespace {

constexpr Time kBusyFor = 2 * kMillisecond;  // time after the last frame for which the loop still polls
constexpr Time kLongestSleep = 50 * kMillisecond;
constexpr Time kGapWindow = 10 * kSecond;
constexpr Time kLittle = 4;                     // prompt: frames in a quantum; as many as two ends that take turns have
constexpr Time kLongYield = 50 * kMicrosecond;  // adaptive, and in bulk: another thread wants the same CPU ...
constexpr Time kSharing = 20 * kMillisecond;    // ... so for a while this one sleeps where it would look again
// spinning: others get a thirteenth of the CPU. A twentieth of a second is what the kernel takes for them from a real-time
// thread, at once, unless they have had it. A nap that becomes longer than meant is no reason for fewer: interrupts have the rest
// of it.
constexpr Time kNapEvery = 600 * kMicrosecond;
constexpr Time kNap = 50 * kMicrosecond;
constexpr Time kWakeUp = 100 * kMicrosecond;  // adaptive: how long before a deadline a sleep ends, so that none is missed
// The thread leaves all to who helps, and looks whether somebody still does: the more seldom, the longer so.
constexpr Time kHelpedLately = 50 * kMicrosecond;
constexpr Time kShortestNap = 50 * kMicrosecond;
constexpr Time kLongestNap = 3'200 * kMicrosecond;

// Wait of this thread for a CPU, ns since it began (CONFIG_SCHED_INFO); 0 where the kernel does not tell.
uint64_t cpu_wait() {
  uint64_t ran = 0, waited = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran >> waited;
  return waited;
}

timespec to_timespec(Time t) { return {static_cast<time_t>(t / kSecond), static_cast<long>(t % kSecond)}; }

}  // namespace

uint64_t Worker::frames_seen() const {
  uint64_t frames = 0;
  for (const Device* device : devices_) frames += device->frames_seen();
  return frames;
}

uint64_t Worker::super_frames_seen() const {
  uint64_t frames = 0;
  for (Device* device : devices_) {
    for (const WirePort& port : device->ports()) frames += port.super_frames();
  }
  return frames;
}

void Worker::loop(Time begin) {
  begin_ = begin;
  next_sample_ = config_.sample_interval > 0 ? begin : kNever;
  reset_at_ = begin + config_.reset_after;
  const uint64_t waited_before = cpu_wait();
  turned_ = monotonic_now();
  counters_.publish(turned_);
  {
    const std::lock_guard turning(turning_);
    turns_ = true;
  }
  std::unique_lock turning(turning_, std::defer_lock);
  for (Time nap = kShortestNap; !stopping_.load(std::memory_order_acquire);) {
    if (gives_way() || !turning.try_lock()) {
      doze(nap);
      nap = std::min(2 * nap, kLongestNap);
      continue;
    }
    nap = kShortestNap;
    if (helper_error_ != nullptr) std::rethrow_exception(helper_error_);
    if (sleeps_from_ != 0) end_sleep(monotonic_now());
    run_action();
    const Time wake = turn();
    announce();
    const Time before = monotonic_now();
    if (had_work_) fidelity_.busy += static_cast<uint64_t>(before - previous_);
    wait(before, wake, previous_ - last_frame_, turning);
    if (turning.owns_lock()) turning.unlock();
  }
  turning.lock();
  turns_ = false;
  end_sleep(monotonic_now());
  // Frames that were handed over before stop() still go out.
  send_injected();
  for (Device* device : devices_) device->turn(clock_.now, clock_.now);
  publish(clock_.now, true);
  fidelity_.cpu_wait = cpu_wait() - waited_before;
}

// Returns when the next is due.
Time Worker::turn() {
  refresh_clock();
  const Time now = clock_.now;
  end_sleep(now);
  if (previous_ != 0 && now >= begin_) {
    const auto gap = static_cast<uint64_t>(std::max<Time>(0, now - previous_ - idle_slept_));
    if (gap > fidelity_.loop_gap.max()) fidelity_.longest_gap_at = previous_ - begin_;
    fidelity_.loop_gap.record(gap);
    note_gap(now, gap);
    if (deadline_ <= now) fidelity_.timer_lateness.record(static_cast<uint64_t>(now - deadline_));
  }
  had_work_ = deadline_ <= now;
  idle_slept_ = 0;
  previous_ = now;
  check_ports(now);
  send_injected();
  while (next_sample_ <= now || reset_at_ <= now) {
    const Time boundary = std::min(next_sample_, reset_at_);
    for (Device* device : devices_) device->turn(boundary, now);
    if (boundary == next_sample_) {
      for (Device* device : devices_) device->sample(boundary, records_);
      next_sample_ += config_.sample_interval;
    }
    if (boundary == reset_at_) {
      for (Device* device : devices_) device->reset_distributions();
      reset_at_ = kNever;
    }
  }
  deadline_ = std::min(next_sample_, reset_at_);
  for (Device* device : devices_) {
    device->turn(now, now);
    deadline_ = std::min(deadline_, device->next_deadline());
  }
  turned_ = now;
  publish(now, false);
  const uint64_t frames = frames_seen();
  if (frames != seen_) {
    last_frame_ = now;
    had_work_ = true;
  }
  seen_ = frames;
  if (const uint64_t bulk = super_frames_seen(); bulk != bulk_seen_) {
    bulk_gap_ = now - std::exchange(bulk_at_, now);
    bulk_seen_ = bulk;
  }
  // Counts since then are told before a long sleep.
  return told() ? deadline_ : std::min(deadline_, published_ + kPublishInterval);
}

// Helps also while the worker's own thread sleeps.
bool Worker::help() {
  helped_.store(monotonic_now(), std::memory_order_relaxed);
  if (std::unique_lock turning(turning_, std::try_to_lock); turning) {
    if (!turns_ || helper_error_ != nullptr) return false;
    const uint64_t before = seen_;
    try {
      turn();
      // Completions the helper looks for itself.
      if (!punted_.empty()) announce();
    } catch (...) {
      helper_error_ = std::current_exception();  // the thread's to say
      rest();
      return false;
    }
    if (seen_ != before) return true;
  }
  sched_yield();  // the thread that brings frames may want this CPU
  return false;
}

void Worker::rest() {
  if (helped_.exchange(0, std::memory_order_relaxed) != 0) waker_->ring();
}

bool Worker::gives_way() const {
  const Time helped = helped_.load(std::memory_order_relaxed);
  return helped != 0 && monotonic_now() - helped < kHelpedLately && !action_waits_.load(std::memory_order_acquire);
}

// Nobody's work waits for this, but what was asked for between two turns.
void Worker::doze(Time duration) {
  const timespec timeout = to_timespec(duration);
  pollfd rung{waker_->descriptor(), POLLIN, 0};
  ppoll(&rung, 1, &timeout, nullptr);
  if ((rung.revents & POLLIN) != 0) waker_->rise(true);
}

void Worker::note_gap(Time now, uint64_t gap) {
  if (now - window_began_ >= kGapWindow) {
    gap_of_last_window_ = std::exchange(gap_of_window_, 0);
    window_began_ = now;
  } else if (gap <= gap_of_window_) {
    return;
  }
  gap_of_window_ = std::max(gap_of_window_, gap);
  recent_gap_.store(std::max(gap_of_window_, gap_of_last_window_), std::memory_order_relaxed);
}

// `quiet`: time since the last frame. Whenever it waits others may turn the loop, and it has the lock no more.
void Worker::wait(Time now, Time deadline, Time quiet, std::unique_lock<std::mutex>& turning) {
  if (config_.polling == Polling::busy) return;
  if (config_.polling == Polling::adaptive) {
    if (quiet == 0) return;
    if (quiet >= kBusyFor && deadline > now + kWakeUp) return sleep_until(deadline - kWakeUp, now, turning);
    if (now < shares_until_) return sleep_until(deadline, now, turning);
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
  const bool sparse = config_.prompt && comes_little(now);
  if (sparse && in_bulk(now) && now >= shares_until_) return yield(now, turning);
  if (deadline > now + (sparse ? 0 : config_.quantum) && (sparse || quiet >= kBusyFor))
    return sleep_until(deadline, now, turning);
  const timespec until = to_timespec(now + nap);
  turning.unlock();
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

// Yields to threads that want this CPU: the kernel's receiving thread, for one. If others keep it for long, looking for frames
// would take it from those who bring them.
void Worker::yield(Time now, std::unique_lock<std::mutex>& turning) {
  turning.unlock();
  sched_yield();
  const Time after = monotonic_now();
  if (after - now > kLongYield) shares_until_ = after + kSharing;
}

// Whether the next super-frame is worth waiting for awake. Where programs have the NIC it is not: they poll, and want the CPU.
bool Worker::in_bulk(Time now) const {
  const auto has_programs = [](const auto& nic) { return nic->programs() != nullptr && !nic->programs()->empty(); };
  return bulk_gap_ < kBulkGap && now - bulk_at_ < kBulkGap && std::none_of(nics_.begin(), nics_.end(), has_programs);
}

// Whether fewer frames come than a nap would gather: then it would only make them wait.
bool Worker::comes_little(Time now) {
  if (const Time passed = now - counted_from_; passed >= config_.quantum) {
    // However long it was away: what came meanwhile came over all that time.
    little_ = static_cast<Time>(seen_ - counted_) * config_.quantum <= kLittle * passed;
    counted_from_ = now;
    counted_ = seen_;
  }
  return little_ && seen_ - counted_ <= static_cast<uint64_t>(kLittle);
}

void Worker::sleep_until(Time deadline, Time now, std::unique_lock<std::mutex>& turning) {
  std::vector<pollfd>& waits = waits_;
  if (std::exchange(waits_are_old_, false)) {
    waits.clear();
    waits.push_back({waker_->descriptor(), POLLIN, 0});
    for (Device* device : devices_) {
      for (WirePort& port : device->ports()) {
        if (port.up() && port.port().wait_descriptor() >= 0) waits.push_back({port.port().wait_descriptor(), POLLIN, 0});
      }
    }
    for (const auto& nic : nics_) {
      if (nic->programs() != nullptr) waits.push_back({nic->programs()->descriptor(), POLLIN, 0});
    }
    if (link_news_.namespaces() > 0) waits.push_back({link_news_.descriptor(), POLLIN, 0});
  }
  waker_->doze();
  for (const auto& nic : nics_) {
    if (nic->programs() != nullptr) nic->programs()->doze();
  }
  const timespec timeout = to_timespec(work_waits() ? 0 : std::clamp<Time>(deadline - now, 0, kLongestSleep));
  sleeps_from_ = now;
  holds_ = told();
  if (holds_) counters_.hold();
  turning.unlock();
  ppoll(waits.data(), waits.size(), &timeout, nullptr);
  waker_->rise((waits[0].revents & POLLIN) != 0);
  for (const auto& nic : nics_) {
    if (nic->programs() != nullptr) nic->programs()->rise();
  }
}

// Ends a sleep whoever turns the loop next: the sleep is nobody's lateness, and nothing was counted in it.
void Worker::end_sleep(Time now) {
  if (sleeps_from_ == 0) return;
  turned_ = now;
  idle_slept_ = now - std::exchange(sleeps_from_, 0);
  if (std::exchange(holds_, false)) counters_.release(now);
}

}  // namespace weir
