// The counters of a whole network as numbers that can be subtracted and multiplied, whatever device they are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "endpoint/network_traffic.h"
#include "simulation/fabric.h"

namespace weir {

// Rows of the counters of one kind, one after another.
struct CounterTable {
  std::vector<uint64_t> words;
  const CounterDescription* descriptions = nullptr;
  size_t columns = 0;

  template <class Counters>
  void add(const Counters& counters) {
    descriptions = Counters::kDescriptions;
    columns = Counters::kCount;
    words.insert(words.end(), counters.words(), counters.words() + Counters::kCount);
  }
  size_t rows() const { return columns == 0 ? 0 : words.size() / columns; }
  CounterMeaning meaning(size_t word) const { return descriptions[word % columns].meaning; }
  uint64_t sum(CounterMeaning meaning) const;
};

struct CounterTables {
  CounterTable switch_ports;       // ports in the order of switches
  CounterTable switch_priorities;  // 8 of each
  CounterTable nics;
  CounterTable nic_priorities;  // 8 of each
  CounterTable transports;      // of NICs
  CounterTable senders;         // flows as their sender sees them
  CounterTable receivers;       // flows as their receiver does
  CounterTable links;           // two rows each

  // Adds `part` / `whole` of a growth, rounded down. With no tables there is nothing to add.
  void add(const CounterTables& growth, uint64_t part, uint64_t whole);
  // The same as tables of their own.
  CounterTables times(uint64_t part, uint64_t whole) const;
  // What these have grown by since `before`; gauges by nothing.
  CounterTables since(const CounterTables& before) const;
};

// Brings the counters of all devices up to now, those of time, too.
void settle_counters(Fabric& fabric);

// All counters of a network. They have to be up to now.
CounterTables count(Fabric& fabric, const FlowLayout& layout, size_t flows);

}  // namespace weir
