// A whole simulation: a fabric, the flows on it, and what is seen of them. TypeScript has made the plan; this carries it out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "base/record.h"
#include "base/types.h"
#include "endpoint/message_listener.h"
#include "endpoint/network_traffic.h"
#include "graph/graph_traffic.h"
#include "simulation/config.h"
#include "simulation/counter_tables.h"
#include "simulation/fabric.h"
#include "simulation/fast_forward.h"
#include "simulation/learned_phases.h"

namespace weir {

class Simulation {
 public:
  // `hosts`: carries out what programs do, where NICs have queue pairs of theirs; outlives this.
  explicit Simulation(SimulationConfig config, Sharing sharing = {}, HostWork* hosts = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Goes on until `until`, or about `events` events, whichever is first; true when `until` is reached. Cutting a run into calls
  // does not change it.
  bool run(Time until, uint64_t events);

  // Everything up to then has happened, or was skipped. With fast-forward that is more than Fabric::now(): what devices say of
  // times is in time inside, see simulation/fast_forward.h.
  Time now() const { return forward_ == nullptr ? fabric_.now() : forward_->now(); }
  const SimulationConfig& config() const { return config_; }
  Fabric& fabric() { return fabric_; }
  uint64_t flows_started() const;
  uint64_t flows_ended() const;

  // A flow's queue pair at its sender or its receiver.
  using Place = FlowLayout::Place;
  Place sender(uint32_t flow) const { return layout_.sender(flow); }
  Place receiver(uint32_t flow) const { return layout_.receiver(flow); }
  // As devices count, without what was skipped.
  const QpCounters& counters(Place place);
  // All counters up to now, with what was skipped.
  CounterTables all_counters();
  // Null: without fast-forward.
  const FastForward* forward() const { return forward_.get(); }
  // What of a message graph came from memory; null: without fast-forward, or without a graph.
  const LearnedPhases* learned() const;
  // Data packets of each flow that are in a queue or on a link.
  std::vector<uint32_t> under_way() const;
  // Lengths of the queues whose distributions are kept and that have held anything since reset_after, by switch, port and
  // priority.
  struct QueueLengths {
    SampledQueue queue;
    const Histogram& lengths;
  };
  std::vector<QueueLengths> queue_lengths();
  // Null: there is none.
  const GraphTraffic* graph() const;
  // Flows on demand whose connections have failed.
  uint64_t flows_failed() const;
  // Lets the counters of all devices catch up with now.
  void settle();

  struct Finished {
    uint32_t flow;
    uint64_t number;
    uint64_t bytes;
    Time start;
    Time end;
  };
  // The reader of these empties them.
  std::vector<Record>& records() { return records_; }
  std::vector<Finished>& finished() { return finished_; }

 private:
  class Listener;
  class Graph;
  // News that the listeners of one partition have heard.
  struct alignas(64) Heard {
    uint64_t ended = 0;
    uint64_t failed = 0;
    std::vector<Finished> finished;
  };

  Sharing divided(Sharing sharing);
  bool advance(Time to, uint64_t limit);
  void gather();
  std::vector<std::vector<QueuePairParameters>> queue_pairs();
  size_t first_group(size_t device) const;
  void sample();
  template <class Counters>
  Counters with_skipped(Counters counters, CounterTable CounterTables::*table, size_t row) const;

  SimulationConfig config_;
  FlowLayout layout_;
  std::vector<Time> starts_;                          // ascending
  std::vector<std::unique_ptr<Listener>> listeners_;  // listeners by NIC
  std::unique_ptr<Graph> graph_;
  Fabric fabric_;
  std::unique_ptr<FastForward> forward_;
  Time next_sample_;
  Time reset_at_;
  std::vector<Heard> heard_;      // news by partition
  std::vector<uint64_t> pauses_;  // PFC frames at the last sample, by switch port and priority
  std::vector<Record> records_;
  std::vector<Finished> finished_;
};

void describe(auto& v, Of<Simulation::Finished> auto& message) {
  v.type("Finished", "A message that has been delivered.");
  v("flow", message.flow, field::any("Whose."));
  v("number", message.number, field::any("Of its messages, from 0."));
  v("bytes", message.bytes, field::any("Its length."));
  v("start", message.start, field::any("Posted.", "ns"));
  v("end", message.end, field::any("Complete.", "ns"));
}

}  // namespace weir
