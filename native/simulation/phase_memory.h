// What is remembered of message graphs: phases, and how long the messages of each took.
//
// A phase is a set of messages that met: from the time at which the first of them has begun until all are acknowledged each of
// them shared a link with another, and nobody else shared one with them. What becomes of a phase depends on when its messages
// began, and on how long they are, alone; so one that begins alike ends alike. A phase of one message is kept by the kind of its
// way, as all ways of the same rates and delays are alike where nobody is met; one of several by the very flows.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace weir {

// A message of a phase. Times count from the phase's begin.
struct PhaseMessage {
  uint32_t flow = 0;
  uint32_t number = 0;  // of those of its flow in this phase
  uint64_t bytes = 0;
  uint8_t age = 0;  // as Alone::age
  Time begins = 0;
  Time arrives = 0;
  Time acknowledged = 0;
};

class PhaseMemory {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Kind of a message that is alone, for lookups.
  struct Alone {
    uint32_t way = 0;
    uint8_t age = 0;       // 1: its flow has had a message before
    bool follows = false;  // it waits behind another of its flow
    uint64_t bytes = 0;
    auto operator<=>(const Alone&) const = default;
  };
  // How long it takes, ns: until it has come, from its begin, or where it follows another from when that has come; and until its
  // sender has heard of that, from when it has come.
  struct Times {
    Time arrives = 0;
    Time acknowledged = 0;
  };

  // `tolerance`: part of the time of a phase's messages, on average, by which begins may differ from what is remembered; `least`:
  // but by so much at least, ns.
  PhaseMemory(double tolerance, Time least) : tolerance_(tolerance), least_(least) {}

  // A message that was alone. What is remembered is the mean of the first ones of the latest stretch in which there were any.
  void learn(const Alone& key, Times times, uint32_t stretch);
  // False: it is not known.
  bool recall(const Alone& key, Times& times) const;

  // A phase of several messages, in the order of their begins.
  void learn(std::vector<PhaseMessage>&& messages);
  // Such a phase in place of one that was remembered.
  void replace(uint32_t phase, std::vector<PhaseMessage>&& messages);
  // Phases that have a flow in them, the latest last.
  std::span<const uint32_t> with(uint32_t flow) const;
  const std::vector<PhaseMessage>& messages(uint32_t phase) const { return phases_[phase].messages; }
  // By how much begins may differ, ns.
  Time slack(uint32_t phase) const { return phases_[phase].slack; }
  // The message of a phase that this one would be, by all but its end; kNone: it fits to none.
  uint32_t place(uint32_t phase, const PhaseMessage& message) const;

  size_t phases() const { return phases_.size(); }
  size_t alone() const { return alone_.size(); }

 private:
  struct Mean {
    Time arrives = 0;
    Time acknowledged = 0;
    Time count = 0;
    uint32_t stretch = 0;
  };
  struct Phase {
    std::vector<PhaseMessage> messages;
    std::unordered_map<uint64_t, uint32_t> places;
    Time slack = 0;
  };
  static void fill(Phase& phase, std::vector<PhaseMessage>&& messages, double tolerance, Time least);
  static uint64_t key(uint32_t flow, uint32_t number) { return uint64_t{flow} << 32 | number; }

  double tolerance_;
  Time least_;
  std::map<Alone, Mean> alone_;
  std::vector<Phase> phases_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> with_;
  uint64_t kept_ = 0;  // messages of all phases
};

}  // namespace weir
