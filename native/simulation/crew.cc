#include "simulation/crew.h"

#include <chrono>
#include <utility>

namespace weir {
namespace {

// Some 50 us: longer than the other threads commonly need, and soon over where they do not have a processor.
constexpr int kSpins = 2'000;

Time clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Crew::Crew(uint32_t threads, uint32_t items, std::function<void(uint32_t)> work)
    : threads_(threads), items_(items), work_(std::move(work)), shares_(items, threads), waited_(threads) {
  try {
    for (uint32_t i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { help(i); });
  } catch (...) {
    enter(kQuit);
    for (std::thread& helper : helpers_) helper.join();
    throw;
  }
}

Crew::~Crew() {
  enter(kQuit);
  for (std::thread& helper : helpers_) helper.join();
}

void Crew::run(std::function<bool()> next) {
  const Time begin = clock();
  next_ = std::move(next);
  enter(kRound);
  for (uint32_t state = state_.load(std::memory_order_acquire); phase(state) == kRound;) {
    take_part(0, state);
    const Time arrived = clock();
    state = wait(state);
    add_wait(0, arrived);
  }
  taken_ += clock() - begin;
  if (!failed_.load(std::memory_order_relaxed)) return;
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

Crew::Times Crew::times() const {
  Times times{.taken = taken_ * threads_};
  for (const Waited& one : waited_) times.waited += one.ns.load(std::memory_order_relaxed);
  return times;
}

void Crew::help(uint32_t thread) {
  for (uint32_t seen = kIdle;;) {
    const Time arrived = clock();
    const uint32_t state = wait(seen);
    // The time between two calls of run() is no wait.
    if (phase(seen) == kRound && state - seen < 2 * kPhases) add_wait(thread, arrived);
    seen = state;
    if (phase(seen) == kQuit) return;
    if (phase(seen) == kRound) take_part(thread, seen);
  }
}

void Crew::add_wait(uint32_t thread, Time since) {
  std::atomic<Time>& ns = waited_[thread].ns;
  ns.store(ns.load(std::memory_order_relaxed) + clock() - since, std::memory_order_relaxed);
}

// A thread that is late finds nothing left.
void Crew::take_part(uint32_t thread, uint32_t round) {
  for (uint32_t item = shares_.take(thread, round); item != Shares::kNone; item = shares_.take(thread, round)) {
    try {
      work_(item);
    } catch (...) {
      fail();
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == items_) end_round();
  }
}

void Crew::end_round() {
  done_.store(0, std::memory_order_relaxed);
  bool more = false;
  try {
    more = !failed_.load(std::memory_order_relaxed) && next_();
  } catch (...) {
    fail();
  }
  enter(more ? kRound : kIdle);
}

void Crew::enter(Phase phase) {
  const uint32_t state = state_.load(std::memory_order_relaxed);
  const uint32_t next = state - state % kPhases + kPhases + phase;
  // Nobody takes anything of a round before the state says that it has begun.
  if (phase == kRound) shares_.begin_round(next);
  state_.store(next, std::memory_order_release);
  state_.notify_all();
}

void Crew::fail() {
  if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
}

// Returns the state once it is another than `seen`.
uint32_t Crew::wait(uint32_t seen) const {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state != seen) return state;
    relax();
  }
  state_.wait(seen, std::memory_order_acquire);
  return state_.load(std::memory_order_acquire);
}

}  // namespace weir
