// Ranks of a message graph that live on one machine, and carry it out: an event-driven state machine, without clock or I/O.
//
//   begin(now)               the ranks start
//   arrived(now, word)       a message has come whole
//   acknowledged(now, word)  one that was sent has
//   advance(now)             time passes: calculations end, messages within the machine arrive
// Messages to other machines are in outgoing(), for the driver to hand to connections, which keep their order. A word says what a
// message is, and goes with it as immediate data: both ends know the graph.
//
// A rank's processor carries out one calculation at a time, in the order in which they became ready, and while it calculates it
// starts no send. Receives are posted, and messages move, without it, as with RDMA.
//
// A send of at most `eager` bytes ends when it starts (its buffer is copied); a longer one when its receiver's NIC has
// acknowledged it. One of more than `rendezvous` bytes asks first, and moves when the receiver has posted the receive
// that takes it (both as MPI libraries have it).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "graph/matching.h"
#include "graph/message_graph.h"

namespace weir {

struct GraphParameters {
  uint64_t eager = 65'536;
  uint64_t rendezvous = UINT64_MAX;
  Rate inside_rate = 0;
  Time inside_latency = 0;
};
void describe(auto& v, Of<GraphParameters> auto& p) {
  v.type("NativeGraphParameters", "How hosts carry a message graph out.");
  v("eager", p.eager, field::any("Sends of at most that size end when they start.", "bytes"));
  v("rendezvous", p.rendezvous,
    field::optional(field::any("Longer ones wait until the receiver has posted its receive; absent: none.", "bytes")));
  v("inside_rate", p.inside_rate, field::bps("Of each rank's link within its machine; 0: no limit."));
  v("inside_latency", p.inside_latency, field::ns("Of messages within a machine."));
}

// What is known of all operations; each is written to by the machine of its rank alone.
struct GraphState {
  explicit GraphState(const MessageGraph& graph);

  std::vector<uint32_t> waits;  // how many others an operation waits for
  std::vector<uint32_t> links;  // see Matching; of a receive that is taken its message, and of one that asked first the other way
  std::vector<Time> started, ended;  // kNever: not yet
  // When each rank's link within its machine is free, and behind it each of its processors.
  std::vector<Time> free;
  std::vector<uint32_t> first_free;  // by rank
};

class GraphHost {
 public:
  // A word is the number of a send; with this bit it asks for the receive, or answers that.
  static constexpr uint32_t kAsks = 1u << 31;
  struct Outgoing {
    uint32_t from, to;  // ranks
    uint32_t word;
    uint64_t bytes;
  };

  // `machine_of_rank`: this one's ranks have `number`. All must outlive it.
  GraphHost(const MessageGraph& graph, GraphState& state, const GraphParameters& parameters,
            std::span<const uint32_t> machine_of_rank, uint32_t number);

  void begin(Time now, uint32_t rank);
  void arrived(Time now, uint32_t word);
  void acknowledged(Time now, uint32_t word);
  void advance(Time now);
  // When something happens by itself; kNever: nothing will.
  Time next_deadline() const { return timers_.empty() ? kNever : timers_.front().at; }

  // The driver empties it.
  std::vector<Outgoing>& outgoing() { return outgoing_; }
  // Operations that have ended.
  uint64_t ended() const { return ended_; }

 private:
  enum class What : uint8_t { starts, ends, arrives };
  struct Timer {
    Time at;
    uint64_t sequence;
    uint32_t operation;
    What what;
  };
  static bool later(const Timer& a, const Timer& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }

  bool is_own(uint32_t rank) const { return machine_of_rank_[rank] == number_; }
  void schedule(Time at, uint32_t operation, What what);
  void run(Time now);
  void ready(uint32_t operation);
  void start(uint32_t operation, Time now);
  void send(uint32_t operation, Time now);
  void receive(uint32_t operation, Time now);
  void take(uint32_t message, uint32_t receive, Time now);
  void mark_started(uint32_t operation, Time now);
  void mark_ended(uint32_t operation, Time now);
  void release(uint32_t operation, bool start_only);
  void deliver(uint32_t message, Time now);
  bool asks_first(uint32_t message) const { return graph_.bytes(message) > parameters_.rendezvous; }
  Time& processor_free(uint32_t operation);

  const MessageGraph& graph_;
  GraphState& state_;
  const GraphParameters& parameters_;
  std::span<const uint32_t> machine_of_rank_;
  uint32_t number_;
  Matching matching_;
  std::vector<uint32_t> ready_;
  std::vector<Timer> timers_;  // a heap
  uint64_t sequence_ = 0;
  std::vector<Outgoing> outgoing_;
  uint64_t ended_ = 0;
};

}  // namespace weir
