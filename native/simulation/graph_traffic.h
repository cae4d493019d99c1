// Message graphs in a simulation: hosts that carry their ranks' operations out, and their messages on flows on demand. A host
// belongs to the partition of its NIC. It hears of messages in the middle of what its NIC does, and has its own sent as
// soon as that is over: by a wake at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "graph/graph_host.h"
#include "graph/message_graph.h"
#include "simulation/config.h"
#include "simulation/fabric.h"

namespace weir {

class GraphTraffic final : public HostWork {
 public:
  // A queue pair that sends a flow, as SoftNic::post() takes it.
  struct Sender {
    uint32_t nic;
    uint32_t index;
  };

  GraphTraffic(SimulatedGraph&& graph, size_t nics);
  // Must be called once, before the first run; sender_of(flow).
  void begin(Fabric& fabric, const std::function<Sender(uint32_t)>& sender_of);

  void wake(uint32_t nic, Time now) override;
  // What a NIC's listener hears.
  void arrived(uint32_t nic, uint32_t word, Time now);
  void acknowledged(uint32_t nic, uint32_t word, Time now);

  // All of these: between two runs.
  const MessageGraph& graph() const { return graph_; }
  const GraphState& state() const { return state_; }
  uint64_t ended() const;
  // Whether anything will still happen: a message is on its way, a calculation is under way, a rank has not begun.
  bool moves() const;

 private:
  struct Begin {
    Time at;
    uint32_t rank;
  };
  struct alignas(64) Host {
    explicit Host(GraphHost host) : operations(std::move(host)) {}
    GraphHost operations;
    std::vector<Begin> begins;  // the latest first
    Time wakes = kNever;
    uint64_t under_way = 0;                              // messages that it has sent and that are not acknowledged
    std::unordered_map<uint64_t, uint32_t> connections;  // queue pairs by ranks, from and to
  };
  static uint64_t key(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

  Time next_of(const Host& host) const;
  void wake_at(uint32_t nic, Time at);

  GraphParameters parameters_;
  std::vector<uint32_t> nic_of_rank_;
  MessageGraph graph_;
  GraphState state_;
  Columns<GraphConnection> connections_;
  std::vector<Host> hosts_;  // by NIC
  Fabric* fabric_ = nullptr;
};

}  // namespace weir
