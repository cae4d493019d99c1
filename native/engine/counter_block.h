// All counters of a worker: a manifest of what they are, and a block of words that other threads may read.
//
// Devices count in plain words of their own; publish() copies them into the block between turns, so that the poll loop
// touches shared cache lines a few hundred times a second and not once per packet.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"

namespace weir {

using CounterLabels = std::vector<std::pair<std::string, std::string>>;

// Counters that belong to one thing; their words follow each other in the block.
struct CounterGroup {
  std::span<const CounterDescription> descriptions;
  CounterLabels labels;
  const uint64_t* source;
};

class CounterBlock {
 public:
  // While configuring only. `counters` must outlive the block's last publish().
  template <class Counters>
  void add(const Counters& counters, const CounterLabels& labels) {
    groups_.push_back({Counters::kDescriptions, labels, counters.words()});
    size_ += groups_.back().descriptions.size();
  }
  void freeze() { words_ = std::make_unique<std::atomic<uint64_t>[]>(size_); }

  const std::vector<CounterGroup>& manifest() const { return groups_; }
  size_t size() const { return size_; }
  // Worker thread: all of them.
  void publish() {
    next_group_ = next_word_ = 0;
    publish_words(size_);
  }
  // Worker thread: kPart of them, in turn, if there are so many: a NIC may have more than could be copied between two frames.
  void publish_part() { publish_words(std::min(size_, kPart)); }
  // Any thread; as of the last publish().
  uint64_t read(size_t index) const { return words_[index].load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kPart = 4'096;

  void publish_words(size_t at_least) {
    for (size_t done = 0; done < at_least;) {
      const CounterGroup& group = groups_[next_group_];
      const size_t count = group.descriptions.size();
      for (size_t i = 0; i < count; ++i) words_[next_word_ + i].store(group.source[i], std::memory_order_relaxed);
      done += count;
      next_word_ += count;
      if (++next_group_ == groups_.size()) next_group_ = next_word_ = 0;
    }
  }

  std::vector<CounterGroup> groups_;
  size_t size_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
  size_t next_group_ = 0;  // to be published ...
  size_t next_word_ = 0;   // ... at this index
};

}  // namespace weir
