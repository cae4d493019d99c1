// All counters of a worker: a manifest that names them, and a block of words that other threads may read.
//
// Devices count in plain words of their own; publish() copies them into the block between turns, so that the poll loop
// touches shared cache lines a few hundred times a second and not once per packet. The time that they are of goes with them,
// so that rates come out right however late they are read.
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
#include "base/types.h"

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
  // Must be called while configuring only. `counters` must outlive the block's last publish().
  template <class Counters>
  void add(const Counters& counters, const CounterLabels& labels) {
    groups_.push_back({Counters::kDescriptions, labels, counters.words()});
    size_ += groups_.back().descriptions.size();
  }
  void freeze() { words_ = std::make_unique<std::atomic<uint64_t>[]>(size_); }

  const std::vector<CounterGroup>& manifest() const { return groups_; }
  size_t size() const { return size_; }
  // Worker thread: all of them, which are what `at` has led to.
  void publish(Time at) {
    next_group_ = next_word_ = 0;
    publish_words(at, size_);
    parts_left_ = 0;
  }
  // Worker thread: kPart of them, in turn, if there are so many: a NIC may have more than could be copied between two frames.
  void publish_part(Time at) {
    if (publish_words(at, std::min(size_, kPart))) {
      parts_left_ = (size_ - 1) / kPart;
    } else if (parts_left_ > 0) {
      --parts_left_;
    }
  }
  // Worker thread: whether all that was counted before the last publish_part() is published.
  bool complete() const { return parts_left_ == 0; }
  // Worker thread: nothing will be counted until release(), for whatever time is in between.
  void hold() { as_of_.store(-as_of_.load(std::memory_order_relaxed), std::memory_order_release); }
  // Worker thread: nothing was counted up to `now`.
  void release(Time now) { as_of_.store(now, std::memory_order_release); }

  // Any thread, after freeze(): fills `target` with the first words, and returns the time that they are of: 0 before the first
  // publish(). `now` is what the clock says before.
  template <class Target>
  Time read(Time now, Target&& target, size_t count) const {
    Time at = 0;
    // Publishing is rare and short: a reading into which it falls is taken again. Should it last because its thread was put off
    // the CPU, the words are partly those of now.
    for (int attempt = 0; attempt < 100; ++attempt) {
      at = as_of_.load(std::memory_order_acquire);
      for (size_t i = 0; i < count; ++i) target(i, words_[i].load(std::memory_order_acquire));
      if (at != kPublishing && as_of_.load(std::memory_order_acquire) == at) break;
    }
    if (at == kPublishing) return now;
    return at < 0 ? std::max(-at, now) : at;
  }
  uint64_t read(size_t index) const { return words_[index].load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kPart = 4'096;
  static constexpr Time kPublishing = kNever;

  // Whether any has changed.
  bool publish_words(Time at, size_t at_least) {
    as_of_.store(kPublishing, std::memory_order_release);
    bool changed = false;
    for (size_t done = 0; done < at_least;) {
      const CounterGroup& group = groups_[next_group_];
      const size_t count = group.descriptions.size();
      for (size_t i = 0; i < count; ++i) {
        std::atomic<uint64_t>& word = words_[next_word_ + i];
        if (word.load(std::memory_order_relaxed) == group.source[i]) continue;
        word.store(group.source[i], std::memory_order_release);
        changed = true;
      }
      done += count;
      next_word_ += count;
      if (++next_group_ == groups_.size()) next_group_ = next_word_ = 0;
    }
    as_of_.store(at, std::memory_order_release);
    return changed;
  }

  std::vector<CounterGroup> groups_;
  size_t size_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
  std::atomic<Time> as_of_{0};  // time of the words; below 0: since then, and still
  size_t next_group_ = 0;       // group to be published ...
  size_t next_word_ = 0;        // ... at this index
  size_t parts_left_ = 0;       // parts that may have changed
};

}  // namespace weir
