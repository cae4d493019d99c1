// A message graph on NICs: machines that carry their ranks' operations out, and their messages on streams on demand. A machine
// has one NIC or several, and belongs to whoever drives these, all of them one thread in the order of time. It hears of messages
// in the middle of what a NIC does, and has its own sent as soon as that is over: by a wake at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/huge_pages.h"
#include "base/types.h"
#include "graph/graph_host.h"
#include "graph/message_graph.h"

namespace weir {

// A stream that carries the messages of one rank to another.
struct GraphConnection {
  uint32_t stream = 0;
  uint32_t from = 0;
  uint32_t to = 0;
};
void describe(auto& v, Of<GraphConnection> auto& connection) {
  v.type("NativeGraphConnections", "Streams that carry messages of a graph, by pair of ranks, one direction each.");
  v("stream", connection.stream, field::any("On demand, between their NICs: number of the flow."));
  v("from", connection.from, field::any("Rank."));
  v("to", connection.to, field::any("Rank."));
}

struct PlacedGraph {
  MessageGraphColumns operations;
  GraphParameters parameters;
  Column<uint32_t> nic_of_rank;
  Column<uint32_t> machine_of_nic;
  Time start = 0;
  Column<double> begins;
  Columns<GraphConnection> connections;
};
void describe(auto& v, Of<PlacedGraph> auto& graph) {
  v.type("NativePlacedGraph", "Messages that wait for others.");
  v("operations", graph.operations, field::any("The graph."));
  v.base(graph.parameters);
  v("nic_of_rank", graph.nic_of_rank, field::any("Where each rank is."));
  v("machine_of_nic", graph.machine_of_nic,
    field::optional(field::any("For each NIC the first of its machine; absent: each is alone in its machine.")));
  v("start", graph.start, field::optional(field::ns("When time 0 of `begins` is.")));
  v("begins", graph.begins, field::any("When each rank begins.", "ns"));
  v("connections", graph.connections, field::any("Of ranks on different machines."));
}
// For each of so many NICs the first one of its machine, by default itself. Throws NativeError INVALID_CONFIG for what is none.
std::vector<uint32_t> checked_machines(std::vector<uint32_t> machine_of_nic, size_t nics);

// NICs as a graph sees them.
class GraphNics {
 public:
  // SoftNic::post() of a NIC.
  virtual void post(Time now, uint32_t nic, uint32_t queue_pair, uint32_t word, uint64_t bytes) = 0;
  // GraphTraffic::wake() is to be called for it, or another NIC of its machine, then; earlier wakes that were asked for stay.
  virtual void wake_host(uint32_t nic, Time at) = 0;

 protected:
  ~GraphNics() = default;
};

class GraphTraffic {
 public:
  // A queue pair that sends a stream.
  struct Sender {
    uint32_t nic;
    uint32_t index;
  };

  // Throws NativeError INVALID_CONFIG.
  GraphTraffic(PlacedGraph&& graph, size_t nics);
  // Must be called once, before time passes; sender_of(connection). Time 0 of the graph is at `origin`.
  void begin(GraphNics& nics, const std::function<Sender(const GraphConnection&)>& sender_of, Time origin = 0);

  void wake(uint32_t nic, Time now);
  // Whether two ranks are on different machines.
  bool apart(uint32_t rank, uint32_t other) const { return machine_of_rank_[rank] != machine_of_rank_[other]; }
  // When a NIC's machine wants to be woken next; kNever: something has to arrive first.
  Time wakes(uint32_t nic) const { return machines_[machine_of_nic_[nic]].wakes; }
  // A NIC's listener hears that a message has arrived, or that one is acknowledged.
  void hear(uint32_t nic, bool arrived, uint32_t word, Time now);

  // Adds what is looked at while the graph is carried out.
  void gather(HugePages& pages) const;
  // Operations that have ended; from any thread.
  uint64_t ended() const;
  // All of these: while nobody drives a NIC.
  const MessageGraph& graph() const { return graph_; }
  const GraphState& state() const { return state_; }
  // Whether anything will still happen: a message is on its way, a calculation is under way, a rank has not begun.
  bool moves() const;

 private:
  struct Begin {
    Time at;
    uint32_t rank;
  };
  struct alignas(64) Machine {
    explicit Machine(GraphHost host) : operations(std::move(host)) {}
    GraphHost operations;
    std::vector<Begin> begins;  // the latest first
    Time wakes = kNever;
    Time now = 0;
    uint64_t under_way = 0;                            // messages that it has sent and that are not acknowledged
    std::unordered_map<uint64_t, Sender> connections;  // queue pairs by ranks, from and to
    std::atomic<uint64_t> ended{0};
  };
  static uint64_t key(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

  // The times of a machine's NICs, where each lives up to a time of its own, become those of one clock.
  static Time advanced(Machine& machine, Time now) { return machine.now = std::max(machine.now, now); }

  Time next_of(const Machine& machine) const;
  void wake_at(uint32_t number, Time at);
  void settle(uint32_t number, Time now);

  GraphParameters parameters_;
  std::vector<uint32_t> nic_of_rank_, machine_of_nic_, machine_of_rank_;
  MessageGraph graph_;
  GraphState state_;
  Columns<GraphConnection> connections_;
  std::deque<Machine> machines_;  // by first NIC; others' have no ranks
  GraphNics* nics_ = nullptr;
};

}  // namespace weir
