// Networks for the tests of the simulation, and everything that can be seen of one as plain numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include "simulation/simulation.h"
#include "wire/captured_frame.h"

namespace weir::test {

inline constexpr Rate kGigabit = 1'000'000'000;
inline constexpr Time kCable = 1'000;  // ns, one way

inline SimulatedSwitch simulated_switch(size_t ports, Rate rate, uint64_t component = 0) {
  SimulatedSwitch s;
  for (size_t i = 0; i < ports; ++i) {
    SwitchParameters::Port& port = s.parameters.ports.emplace_back();
    port.rate = rate;
    port.mac = 0x025753000000 + component * 256 + i;
  }
  for (size_t dscp = 0; dscp < 64; ++dscp) s.parameters.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp >> 3);
  s.parameters.component = component;
  return s;
}

inline SimulatedNic simulated_nic(uint32_t index, Rate rate) {
  SimulatedNic nic;
  nic.parameters.rate = rate;
  nic.parameters.mac = 0x025745000001 + index;
  for (size_t dscp = 0; dscp < 64; ++dscp) nic.parameters.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp >> 3);
  const uint8_t ip[4] = {10, 0, static_cast<uint8_t>(index >> 8), static_cast<uint8_t>(index + 1)};
  std::memcpy(nic.ip, ip, sizeof ip);
  return nic;
}

// Hosts on one switch: host i is device 1 + i, at port i, and link i leads from it to the switch.
inline SimulationConfig star(uint32_t hosts, Rate rate) {
  SimulationConfig config;
  SimulatedSwitch s = simulated_switch(hosts, rate);
  for (uint16_t i = 0; i < hosts; ++i) {
    s.groups.push_back({i});
    s.group_of_host.push_back(i);
    config.nics.push_back(simulated_nic(i, rate));
    SimulatedLink link;
    link.ends[0] = {1u + i, 0};
    link.ends[1] = {0, i};
    link.delay = kCable;
    config.links.push_back(link);
  }
  config.switches.push_back(s);
  config.transport.window = kDefaultWindow;
  return config;
}

// An endless stream of SENDs of 1024 bytes at priority 3; all its packets are of one length, kFrame.
inline NetworkFlow flow(uint32_t from, uint32_t to, uint16_t number = 0) {
  NetworkFlow f;
  f.from = from;
  f.to = to;
  f.udp_source_port = static_cast<uint16_t>(0xc000 + number);
  f.stream.operation = Operation::send;
  f.stream.message_bytes = 1'024;
  return f;
}
inline constexpr uint32_t kFrame = 14 + 20 + 8 + 12 + 1'024 + 4;
inline constexpr uint32_t kAckFrame = 14 + 20 + 8 + 12 + 4 + 4;

// Sends no faster for anything but a pause.
inline void without_congestion_control(SimulationConfig& config) {
  for (SimulatedNic& nic : config.nics) nic.parameters.congestion = CongestionControl::Parameters{};
}

inline void finish(Simulation& simulation, Time until) { REQUIRE(simulation.run(until, UINT64_MAX / 2)); }

template <class Counters>
void append(std::vector<uint64_t>& words, const Counters& counters) {
  words.insert(words.end(), counters.words(), counters.words() + Counters::kCount);
}

// All counters there are, the time, and how much has happened.
inline std::vector<uint64_t> everything(Simulation& simulation) {
  Fabric& fabric = simulation.fabric();
  simulation.settle();
  std::vector<uint64_t> words{static_cast<uint64_t>(fabric.now()), fabric.events(),          fabric.hops(),
                              simulation.flows_started(),          simulation.flows_ended(), fabric.packets()};
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    SoftSwitch& device = fabric.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      append(words, device.counters(port));
      for (int p = 0; p < kPriorities; ++p) append(words, device.counters(port, p));
    }
  }
  for (size_t i = 0; i < fabric.nic_count(); ++i) {
    SoftNic& device = fabric.nic_at(i);
    append(words, device.counters());
    append(words, device.transport_counters());
    for (int p = 0; p < kPriorities; ++p) append(words, device.counters(p));
    for (const QueuePair& qp : device.queue_pairs()) append(words, qp.counters);
  }
  for (size_t i = 0; i < fabric.link_count(); ++i) {
    for (size_t side : {0, 1}) append(words, fabric.link_counters(i, side));
  }
  return words;
}

inline std::vector<std::tuple<uint32_t, uint64_t, uint64_t, Time, Time>> messages(Simulation& simulation) {
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t, Time, Time>> list;
  for (const Simulation::Finished& f : simulation.finished()) list.emplace_back(f.flow, f.number, f.bytes, f.start, f.end);
  return list;
}

// One traced frame.
struct Traced {
  uint32_t tap = 0;
  uint32_t length = 0;  // bytes of the frame; `bytes` are those captured of it
  Time at = 0;
  std::vector<uint8_t> bytes;
};

// Reads the frames of a trace, and checks their form.
inline std::vector<Traced> read_trace(const std::vector<uint8_t>& trace) {
  std::vector<Traced> frames;
  for (size_t offset = 0; offset < trace.size();) {
    CapturedFrame head;
    REQUIRE(offset + sizeof head <= trace.size());
    std::memcpy(&head, trace.data() + offset, sizeof head);
    REQUIRE(head.captured <= head.original);
    REQUIRE(offset + head.length() <= trace.size());
    const uint8_t* bytes = trace.data() + offset + sizeof head;
    offset += head.length();
    frames.push_back({head.tap, head.original, head.stamp, {bytes, bytes + head.captured}});
    const uint8_t* end = trace.data() + offset;
    CHECK(std::all_of(bytes + head.captured, end, [](uint8_t byte) { return byte == 0; }));
  }
  return frames;
}

inline std::vector<Time> times_at(const std::vector<Traced>& frames, uint32_t tap) {
  std::vector<Time> times;
  for (const Traced& frame : frames) {
    if (frame.tap == tap) times.push_back(frame.at);
  }
  return times;
}

// Frames dropped by all switches.
inline uint64_t dropped(Simulation& simulation) {
  uint64_t sum = 0;
  for (size_t s = 0; s < simulation.fabric().switch_count(); ++s) {
    SoftSwitch& device = simulation.fabric().switch_at(s);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      sum += device.counters(port).sum(CounterMeaning::drop);
    }
  }
  return sum;
}

}  // namespace weir::test
