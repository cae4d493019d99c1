// All that comes of a simulation, to be compared with another, and what is always true of it.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "test/histogram_figures.h"
#include "test/simulation_harness.h"

namespace weir::test {

struct Outcome {
  std::vector<uint64_t> counters;
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t, Time, Time>> messages;
  std::vector<double> records;
  std::vector<double> distribution;
  std::vector<uint8_t> trace;
};

inline Outcome outcome(Simulation& simulation) {
  Outcome o;
  o.counters = everything(simulation);
  o.messages = messages(simulation);
  for (const Record& r : simulation.records()) {
    o.records.insert(o.records.end(), {static_cast<double>(r.time), static_cast<double>(r.kind), static_cast<double>(r.device),
                                       static_cast<double>(r.index), r.values[0], r.values[1], r.values[2], r.values[3]});
  }
  for (const auto& [queue, h] : simulation.queue_lengths()) {
    o.distribution.insert(o.distribution.end(), {static_cast<double>(h.total()), static_cast<double>(h.max()), mean(h),
                                                 static_cast<double>(percentile(h, 0.9))});
  }
  o.trace = simulation.fabric().take_trace();
  return o;
}

inline void check_same(const Outcome& a, const Outcome& b) {
  CHECK(a.counters == b.counters);
  CHECK(a.messages == b.messages);
  CHECK(a.records == b.records);
  CHECK(a.distribution == b.distribution);
  CHECK(a.trace == b.trace);
}

// All that was sent has been received, was dropped, or is in a queue or on a link; every descriptor is somewhere.
inline void check_balance(Simulation& simulation) {
  Fabric& fabric = simulation.fabric();
  uint64_t sent = 0, on_links = 0, received = 0, held = 0, by_switches = 0, forwarded = 0;
  for (size_t i = 0; i < fabric.nic_count(); ++i) {
    const NicCounters& counters = fabric.nic_at(i).counters();
    sent += counters.tx_packets + counters.tx_pfc_frames;
    received += counters.rx_packets + counters.rx_pfc_frames;
  }
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    SoftSwitch& device = fabric.switch_at(i);
    held += device.held();
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      const SwitchPortCounters& counters = device.counters(port);
      sent += counters.tx_packets + counters.tx_pfc_frames;
      received += counters.rx_packets + counters.rx_pfc_frames;
      by_switches += counters.rx_packets;
      forwarded += counters.tx_packets;
    }
  }
  CHECK(by_switches == forwarded + dropped(simulation) + held);
  uint64_t arriving = 0;
  for (size_t i = 0; i < fabric.link_count(); ++i) {
    for (size_t side : {0, 1}) {
      const LinkCounters& counters = fabric.link_counters(i, side);
      on_links += counters.frames;
      arriving += counters.frames + counters.duplicated - counters.lost - counters.corrupted - counters.link_down;
    }
  }
  CHECK(sent == on_links);
  CHECK(on_links == fabric.hops());
  REQUIRE(arriving >= received);
  CHECK(fabric.packets() == arriving - received + held);
}

}  // namespace weir::test
