// Threads that do rounds of work together, of some microseconds each: who has nothing left to do spins for a while and then
// sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "base/types.h"

namespace weir {

class Crew {
 public:
  // `threads` > 0, with the one that calls run(). Throws std::system_error where there are no more.
  explicit Crew(uint32_t threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  uint32_t threads() const { return threads_; }

  // Calls work(thread) on all threads at once; when all are done, next() on one of them, whichever; and so on until that returns
  // false. What a round does is seen by next() and by the next round. Throws the first that either throws, at the end of that
  // round.
  void run(const std::function<void(uint32_t)>& work, const std::function<bool()>& next);

  // What run() has taken so far, ns of all threads, and how much of it they have waited for each other.
  struct Times {
    Time taken = 0;
    Time waited = 0;
  };
  Times times() const;

 private:
  // What the last two bits of `state_` say; the others count its changes.
  enum Phase : uint32_t { kIdle = 0, kRound = 1, kQuit = 2 };
  static constexpr uint32_t kPhases = 4;
  static Phase phase(uint32_t state) { return static_cast<Phase>(state % kPhases); }

  struct alignas(64) Waited {
    Time ns = 0;
  };

  void help(uint32_t thread);
  void take_part(uint32_t thread);
  void enter(Phase phase);
  void fail();
  uint32_t wait(uint32_t seen) const;

  uint32_t threads_;
  std::vector<Waited> waited_;  // by thread
  Time taken_ = 0;
  const std::function<void(uint32_t)>* work_ = nullptr;
  const std::function<bool()>* next_ = nullptr;
  std::exception_ptr failure_;
  alignas(64) std::atomic<uint32_t> state_ = 0;
  alignas(64) std::atomic<uint32_t> arrived_ = 0;
  std::atomic<bool> failed_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace weir
