// Message graphs on hosts of one switch.
#pragma once

#include <cstdint>
#include <utility>

#include "test/graph_writer.h"
#include "test/simulation_harness.h"

namespace weir::test {

inline constexpr Rate kStarRate = 100 * kGigabit;

// A rank on each host of a star, and flows between those that exchange messages. `nics`: of each machine, which are hosts that
// follow each other.
inline SimulationConfig on_star(MessageGraphColumns columns, uint32_t hosts, uint32_t threads = 1, uint32_t nics = 1) {
  SimulationConfig config = star(hosts, kStarRate);
  config.transport.window = kMaxWindow;
  config.threads = threads;
  for (SwitchParameters::Port& port : config.switches[0].parameters.ports) port.mtu = 9'000;
  PlacedGraph& graph = config.graph.emplace();
  const auto ranks = static_cast<uint32_t>(columns.first.size() - 1);
  for (uint32_t nic = 0; nics > 1 && nic < hosts; ++nic) graph.machine_of_nic.push_back(nic / nics * nics);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    graph.nic_of_rank.push_back(rank % hosts);
    graph.begins.push_back(0);
    for (uint32_t to = 0; to < ranks; ++to) {
      if (rank % hosts / nics == to % hosts / nics) continue;
      graph.connections.push_back({static_cast<uint32_t>(config.flows.size()), rank, to});
      NetworkFlow& own = config.flows.emplace_back(flow(rank % hosts, to % hosts, static_cast<uint16_t>(config.flows.size())));
      own.stream.operation = Operation::write;
      own.stream.path_mtu = 4'096;
      own.reliable = own.on_demand = true;
    }
  }
  graph.operations = std::move(columns);
  return config;
}

}  // namespace weir::test
