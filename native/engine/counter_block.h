// All counters of a worker: a manifest of what they are, and a block of words that other threads may read.
//
// Devices count in plain words of their own; publish() copies them into the block between turns, so that the poll loop
// touches shared cache lines a few hundred times a second and not once per packet.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"

namespace weir {

using CounterLabels = std::vector<std::pair<std::string, std::string>>;

struct CounterEntry {
  const CounterDescription* description;
  CounterLabels labels;
  const uint64_t* source;
};

class CounterBlock {
 public:
  // While configuring only. `counters` must outlive the block's last publish().
  template <class Counters>
  void add(const Counters& counters, const CounterLabels& labels) {
    for (int i = 0; i < Counters::kCount; ++i) entries_.push_back({&Counters::kDescriptions[i], labels, counters.words() + i});
  }
  void freeze() { words_ = std::make_unique<std::atomic<uint64_t>[]>(entries_.size()); }

  const std::vector<CounterEntry>& manifest() const { return entries_; }
  // Worker thread.
  void publish() {
    for (size_t i = 0; i < entries_.size(); ++i) words_[i].store(*entries_[i].source, std::memory_order_relaxed);
  }
  // Any thread; as of the last publish().
  uint64_t read(size_t index) const { return words_[index].load(std::memory_order_relaxed); }

 private:
  std::vector<CounterEntry> entries_;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace weir
