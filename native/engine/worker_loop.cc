// A worker's loop: its turns, its waits, and the threads that turn it: its own, or an application's that polls.
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "engine/worker.h"

namespace weir {
namespace {

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

}  // namespace

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
      wait_policy_.wait_for_ring(nap);
      nap = std::min(2 * nap, kLongestNap);
      continue;
    }
    nap = kShortestNap;
    if (helper_error_ != nullptr) std::rethrow_exception(helper_error_);
    if (wait_policy_.sleeps()) end_sleep(monotonic_now());
    run_action();
    const Time wake = turn();
    doorbell_.announce([this] { return !punted_.empty() || devices_.have_completions(); });
    const Time before = monotonic_now();
    if (had_work_) fidelity_.busy += static_cast<uint64_t>(before - previous_);
    wait_policy_.wait(before, wake, seen_, previous_ - last_frame_, told(), turning);
    if (turning.owns_lock()) turning.unlock();
  }
  turning.lock();
  turns_ = false;
  end_sleep(monotonic_now());
  // Frames that were handed over before stop() still go out.
  send_injected();
  for (Device* device : devices_.all()) device->turn(clock_.now(), clock_.now());
  publish(clock_.now(), true);
  fidelity_.cpu_wait = cpu_wait() - waited_before;
}

// Nothing was counted in a sleep, and it is nobody's lateness.
void Worker::end_sleep(Time now) {
  const std::optional<Time> slept = wait_policy_.end_sleep(now);
  if (!slept) return;
  turned_ = now;
  idle_slept_ = *slept;
}

// Returns when the next is due.
Time Worker::turn() {
  clock_.refresh();
  const Time now = clock_.now();
  end_sleep(now);
  if (previous_ != 0 && now >= begin_) {
    const auto gap = static_cast<uint64_t>(std::max<Time>(0, now - previous_ - idle_slept_));
    if (gap > fidelity_.loop_gap.max()) fidelity_.longest_gap_at = previous_ - begin_;
    fidelity_.loop_gap.record(gap);
    gaps_.note(now, gap);
    if (deadline_ <= now) fidelity_.timer_lateness.record(static_cast<uint64_t>(now - deadline_));
  }
  had_work_ = deadline_ <= now;
  idle_slept_ = 0;
  previous_ = now;
  check_ports(now);
  send_injected();
  while (next_sample_ <= now || reset_at_ <= now) {
    const Time boundary = std::min(next_sample_, reset_at_);
    for (Device* device : devices_.all()) device->turn(boundary, now);
    if (boundary == next_sample_) {
      for (Device* device : devices_.all()) device->sample(boundary, records_);
      next_sample_ += config_.sample_interval;
    }
    if (boundary == reset_at_) {
      for (Device* device : devices_.all()) device->reset_distributions();
      reset_at_ = kNever;
    }
  }
  for (Device* device : devices_.all()) device->turn(now, now);
  deadline_ = std::min(next_sample_, reset_at_);
  // A device's turn may give another one work: NICs of one machine have a message graph in common.
  for (Device* device : devices_.all()) deadline_ = std::min(deadline_, device->next_deadline());
  turned_ = now;
  publish(now, false);
  const uint64_t frames = devices_.frames_seen();
  if (frames != seen_) {
    last_frame_ = now;
    had_work_ = true;
  }
  seen_ = frames;
  wait_policy_.note_super_frames(now);
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
      doorbell_.announce([this] { return !punted_.empty(); });
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

}  // namespace weir
