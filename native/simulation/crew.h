// Threads that do rounds of work together, of some microseconds each. A round is over when all of its items are done, not when
// all threads have come: one that has no processor just now holds up nobody but by the item that it is at. A thread that finds
// nothing left to do spins for a while and then sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "base/types.h"
#include "simulation/division.h"

namespace weir {

class Crew {
 public:
  // `threads` > 0, with the one that calls run(). A round is work(item) for each item below `items`, by any thread and at once.
  // Throws std::system_error where there are no more threads.
  Crew(uint32_t threads, uint32_t items, std::function<void(uint32_t)> work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  uint32_t threads() const { return threads_; }

  // Does a round, then next() on one of the threads, whichever; and so on until that returns false. The work of a round is seen
  // by next() and by the next round. Throws the first that work or next() throws, at the end of that round.
  void run(std::function<bool()> next);
  // Must be called between two runs: deals items out to threads by their loads, see Shares.
  void balance(std::vector<uint64_t>& loads) { shares_.balance(loads); }

  // Time that run() has taken so far, ns of all threads, and the part of it that they have waited for each other.
  struct Times {
    Time taken = 0;
    Time waited = 0;
  };
  Times times() const;

 private:
  // Meaning of the last two bits of `state_`; the others count its changes.
  enum Phase : uint32_t { kIdle = 0, kRound = 1, kQuit = 2 };
  static constexpr uint32_t kPhases = 4;
  static Phase phase(uint32_t state) { return static_cast<Phase>(state % kPhases); }

  struct alignas(64) Waited {
    std::atomic<Time> ns = 0;  // one thread writes it
  };

  void help(uint32_t thread);
  void take_part(uint32_t thread, uint32_t round);
  void end_round();
  void enter(Phase phase);
  void fail();
  uint32_t wait(uint32_t seen) const;
  void add_wait(uint32_t thread, Time since);

  uint32_t threads_;
  uint32_t items_;
  std::function<void(uint32_t)> work_;
  std::function<bool()> next_;
  Shares shares_;
  std::vector<Waited> waited_;  // waits by thread
  Time taken_ = 0;
  std::exception_ptr failure_;
  alignas(64) std::atomic<uint32_t> state_ = 0;
  alignas(64) std::atomic<uint32_t> done_ = 0;  // items of the round
  std::atomic<bool> failed_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace weir
