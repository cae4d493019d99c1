// Work requests and completions in the records that applications read and write.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/layout.h"
#include "engine/verbs_rings.h"

namespace weir {

// How many whole commands there are in `words`.
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

// Moves what fits from the ring to `words`; returns how many.
inline size_t drain(SpscRing<Completion>& ring, std::span<uint64_t> words) {
  static const size_t kWords = words_of_record<Completion>();
  const size_t room = words.size() / kWords;
  size_t count = 0;
  for (Completion completion; count < room && ring.pop(completion); ++count) {
    RecordAt record(words.data() + count * kWords);
    describe(record, std::as_const(completion));
  }
  return count;
}

}  // namespace weir
