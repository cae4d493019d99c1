// The judge of message graphs by memory (simulation/learned_phases.h): what is simulated although it is known, and by how much
// memory was off.
//
// Three times in a run a stretch of messages is simulated, whatever it is. Where a share is asked for there are as many more such
// stretches as it takes: one begins with each message whose bytes from memory would leave too few of those that were simulated.
// It counts bytes alone, so which messages those are depends on the graph and on what was known when they began.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "base/types.h"
#include "simulation/learned_report.h"

namespace weir {

class PhaseJudge {
 public:
  // `messages`: how many there will be, about. `share`: part of the bytes of messages that are known that is simulated, at least;
  // 0: what three stretches come to.
  PhaseJudge(uint64_t messages, double share);

  // Whether a phase is simulated that begins with the `begun`th message, known or not. `from_memory`: bytes of messages that came
  // from memory, or will, with this one's.
  bool takes(uint64_t begun, bool known, double from_memory);
  // A message begins in such a phase.
  void took(bool known, uint64_t bytes);
  uint32_t stretches() const { return stretches_; }

  // A phase that was known was simulated, and took `length` where memory has `foretold`.
  void compare(Time length, Time foretold, bool contended);
  // The same of a message of it: until its sender knows that it has come.
  void compare_message(Time took, Time foretold, uint64_t bytes);
  void tell(LearnedReport& report) const;

 private:
  uint64_t messages_;
  double share_;
  uint64_t planned_ = 0;    // stretches that have begun because it was time
  uint32_t stretches_ = 0;  // all
  uint64_t left_ = 0;       // messages of the stretch under way
  double sampled_ = 0;      // bytes of messages that were known when they began, and are simulated

  struct Sum {
    double lengths = 0;
    double differences = 0;
    double count = 0;
    void add(double length, double difference);
    double mean() const { return lengths > 0 ? differences / lengths : 0; }
  };
  Sum phases_, contended_, completions_;
  double signed_ = 0;
  double worst_ = 0;
  double bytes_ = 0;
  Histogram parts_;  // what completions differ by, in millionths of each
};

}  // namespace weir
