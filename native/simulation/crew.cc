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

Crew::Crew(uint32_t threads) : threads_(threads), waited_(threads) {
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

void Crew::run(const std::function<void(uint32_t)>& work, const std::function<bool()>& next) {
  const Time begin = clock();
  work_ = &work;
  next_ = &next;
  enter(kRound);
  while (phase(state_.load(std::memory_order_relaxed)) == kRound) {
    const uint32_t state = state_.load(std::memory_order_relaxed);
    take_part(0);
    const Time arrived = clock();
    wait(state);
    waited_[0].ns += clock() - arrived;
  }
  taken_ += clock() - begin;
  if (!failed_.load(std::memory_order_relaxed)) return;
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

Crew::Times Crew::times() const {
  Times times{.taken = taken_ * threads_};
  for (const Waited& one : waited_) times.waited += one.ns;
  return times;
}

void Crew::help(uint32_t thread) {
  Time waited = 0;
  for (uint32_t seen = kIdle;;) {
    const Time arrived = clock();
    const uint32_t state = wait(seen);
    // Not the time between two calls of run().
    if (phase(seen) == kRound && state - seen < 2 * kPhases) waited += clock() - arrived;
    seen = state;
    if (phase(seen) == kQuit) return;
    if (phase(seen) != kRound) continue;
    // Within a round: between two calls of run() others read it.
    waited_[thread].ns += std::exchange(waited, 0);
    take_part(thread);
  }
}

void Crew::take_part(uint32_t thread) {
  try {
    (*work_)(thread);
  } catch (...) {
    fail();
  }
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads_) return;
  arrived_.store(0, std::memory_order_relaxed);
  bool more = false;
  try {
    more = !failed_.load(std::memory_order_relaxed) && (*next_)();
  } catch (...) {
    fail();
  }
  enter(more ? kRound : kIdle);
}

void Crew::enter(Phase phase) {
  const uint32_t state = state_.load(std::memory_order_relaxed);
  state_.store(state - state % kPhases + kPhases + phase, std::memory_order_release);
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
