// Work requests and completions in the records that applications read and write.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/layout.h"
#include "engine/verbs_rings.h"

namespace weir {

// Number of whole commands in `words`.
inline size_t commands_in(std::span<uint64_t> words) {
  static const size_t kWords = words_of_record<WorkCommand>();
  return words.size() / kWords;
}

// Number `at` of them.
inline void read_command(std::span<uint64_t> words, size_t at, WorkCommand& command) {
  static const size_t kWords = words_of_record<WorkCommand>();
  RecordAt record(words.data() + at * kWords);
  describe(record, command);
}

// Moves what fits from the ring to `words`; returns how many records that are.
inline size_t drain(SpscRing<Completion>& ring, std::span<uint64_t> words) {
  static const size_t kWords = words_of_record<CompletionRun>();
  const size_t room = words.size() / kWords;
  size_t count = 0;
  CompletionRun run;
  for (Completion next; count < room && ring.pop(next);) {
    if (count > 0 && next == run.completion) {
      ++run.times;
    } else {
      run = {next, 1};
      ++count;
    }
    RecordAt record(words.data() + (count - 1) * kWords);
    describe(record, std::as_const(run));
  }
  return count;
}

// Outcome of a helper's turn: as drain() returns it; without completions 0 if frames have come or gone, else -1. Without `words`
// completions stay where they are.
inline double progress(bool moved, SpscRing<Completion>& ring, std::span<uint64_t> words) {
  const size_t count = drain(ring, words);
  return count > 0 || moved ? static_cast<double>(count) : -1;
}

}  // namespace weir
