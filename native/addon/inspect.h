// Views of devices at one moment. They are copied between two turns of the worker that owns them, and encoded afterwards, so that
// the poll loop does not wait for V8.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "addon/histograms.h"
#include "engine/nic_device.h"
#include "engine/switch_device.h"
#include "engine/worker.h"

namespace weir {

struct CounterEntry {
  CounterDescription counter;
  CounterLabels labels;
};
void describe(auto& v, Of<CounterEntry> auto& entry) {
  v.type("CounterDescription", "A counter.");
  v.base(entry.counter);
  v("labels", entry.labels, field::any("Whose it is."));
}

struct ForwardingEntry {
  uint64_t mac = 0;
  uint16_t vlan = 0;
  std::vector<uint16_t> ports;
  bool learned = false;
  std::optional<Time> expires_in;
};
void describe(auto& v, Of<ForwardingEntry> auto& entry) {
  v.type("ForwardingEntry", "One entry of a switch's forwarding table.");
  v("mac", entry.mac, field::any("Destination."));
  v("vlan", entry.vlan, field::any("0: every VLAN, or untagged."));
  v("ports", entry.ports, field::any("Next hops; several only for static entries."));
  v("learned", entry.learned, field::any("Else it is static."));
  v("expires_in", entry.expires_in, field::optional(field::any("Until a learned entry is forgotten.", "ns")));
}

// Neighbour of a router and its place.
struct NeighbourCopy {
  std::string address;
  uint16_t interface = 0, port = 0;
  uint64_t mac = 0;
  NeighbourState state = NeighbourState::incomplete;
  uint32_t waits = 0;
};
void describe(auto& v, Of<NeighbourCopy> auto& neighbour) {
  v.type("NeighborEntry", "A neighbor of a switch that routes.");
  v("address", neighbour.address, field::any("Its."));
  v("interface", neighbour.interface, field::any("Number of the router's interface that it is at."));
  v("port", neighbour.port, field::any("Where it is; of an incomplete one 0."));
  v("mac", neighbour.mac, field::any("0: not known."));
  v("state", neighbour.state, field::any("Incomplete ones have been asked for."));
  v("waits", neighbour.waits, field::any("Packets that wait for it."));
}

struct SwitchCopy {
  struct Buffer {
    int64_t total = 0, shared = 0, occupied = 0, watermark = 0, pfc_threshold = 0;
  };
  struct Port {
    bool up = false;
    std::array<int64_t, kPriorities> queue{}, ingress{}, headroom{};
    uint8_t paused = 0, pausing = 0, pfc_storms = 0;
  };
  Buffer buffer;
  std::vector<Port> ports;
};
void describe(auto& v, Of<SwitchCopy::Buffer> auto& buffer) {
  v.type("BufferState", "The shared buffer of a switch.");
  v("total", buffer.total, field::any("", "bytes"));
  v("shared", buffer.shared, field::any("Without headroom.", "bytes"));
  v("occupied", buffer.occupied, field::any("", "bytes"));
  v("watermark", buffer.watermark, field::any("The most that was occupied.", "bytes"));
  v("pfc_threshold", buffer.pfc_threshold, field::any("Above which an ingress is paused.", "bytes"));
}
void describe(auto& v, Of<SwitchCopy::Port> auto& port) {
  v.type("SwitchPortState", "A port of a switch.");
  v("up", port.up, field::any("False: the interface is down, gone, or cannot be opened."));
  v("queue_bytes", port.queue, field::any("By priority, as the next two.", "bytes"));
  v("ingress_bytes", port.ingress, field::any("", "bytes"));
  v("headroom_bytes", port.headroom, field::any("", "bytes"));
  v("paused", port.paused, field::any("Mask of priorities that the peer has paused."));
  v("pausing", port.pausing, field::any("Mask of those that we have paused."));
  v("pfc_storms", port.pfc_storms, field::any("Mask of those in a storm, by the PFC watchdog."));
}
void describe(auto& v, Of<SwitchCopy> auto& copy) {
  v.type("SwitchState", "A switch at one moment.");
  v("buffer", copy.buffer, field::any("Of all ports."));
  v("ports", copy.ports, field::any("In their order."));
}

constexpr auto words_of(QueuePair::State) { return std::array{"idle", "waiting", "ready", "finished"}; }
constexpr auto words_of(QueuePair::Kind) { return std::array{"stream", "reliable-stream", "rc", "uc", "ud", "abandoned"}; }
constexpr auto words_of(IncreaseStage) { return std::array{"fast_recovery", "additive_increase", "hyper_increase"}; }

struct QueuePairCopy {
  std::string name;
  uint32_t qpn = 0, remote_qpn = 0;
  QueuePair::State state{};
  bool connecting = false;
  bool limited = false;
  Rate rate = 0, target_rate = 0;
  double alpha = 0;
  double window = 0;
  IncreaseStage stage{};
  QueuePair::Kind kind{};
  uint8_t priority = 0;
  uint32_t program = 0;
  bool direct = false;
  std::optional<QueuePairState> qp_state;
  std::optional<std::string> peer;
  std::optional<QpCounters> counters;
};
void describe(auto& v, Of<QueuePairCopy> auto& qp) {
  v.type("QueuePairState", "A queue pair at one moment.");
  v("name", qp.name, field::any("The flow's."));
  v("qpn", qp.qpn, field::any("Its number."));
  v("remote_qpn", qp.remote_qpn, field::any("The peer's."));
  v("state", qp.state, field::any("idle: nothing to send."));
  v("connecting", qp.connecting, field::any("A reliable stream that sends, whose peer does not acknowledge it (yet)."));
  v("limited", qp.limited, field::any("By congestion control."));
  v("rate", qp.rate, field::any("", "bit/s"));
  v("target_rate", qp.target_rate, field::any("", "bit/s"));
  v("alpha", qp.alpha, field::any("0 where the algorithm has none."));
  v("window", qp.window, field::any("0 where the algorithm has none, or has not sent.", "packets"));
  v("stage", qp.stage, field::any("Of the last increase."));
  v("transport", qp.kind, field::any("Messages of the NIC's own, unacknowledged or reliable; an application's: rc, ud."));
  v("priority", qp.priority, field::any("Of what is sent."));
  v("program", qp.program, field::any("Number of the program that has it; 0: none."));
  v("direct", qp.direct, field::any("It goes by the program's own path, not by the daemon."));
  v("qp_state", qp.qp_state, field::optional(field::any("Of an application's: its state as in verbs.")));
  v("peer", qp.peer, field::optional(field::any("Of an application's that is connected: the peer's IP address.")));
  v("counters", qp.counters,
    field::optional(
        field::any("Of an application's, by the names of metrics.md; those of other queue pairs are in the manifest.")));
}

// A program that uses a NIC.
struct ProgramCopy {
  uint32_t number = 0;
  uint32_t queue_pairs = 0;
  uint64_t drop_busy = 0, drop_packet = 0;
  QpCounters counters;
};
void describe(auto& v, Of<ProgramCopy> auto& program) {
  v.type("ProgramState", "A program that uses a NIC, at one moment.");
  v("number", program.number, field::any("From 1."));
  v("queue_pairs", program.queue_pairs, field::any("That it has now."));
  v("drop_busy", program.drop_busy, field::any("Dropped: it does not take them.", "packets"));
  v("drop_packet", program.drop_packet, field::any("Refused: its queue pairs may not send them.", "packets"));
  v("counters", program.counters, field::any("Of its queue pairs, those among them that are gone."));
}

struct Outcome {
  Worker::Fidelity fidelity;
  std::optional<std::string> failure;
  std::vector<NamedQueue> queues;
};
void describe(auto& v, Of<Outcome> auto& outcome) {
  const Worker::Fidelity& f = outcome.fidelity;
  v.type("WorkerOutcome", "What a worker knows once it has stopped.");
  v("loop_gap", FilledBuckets(f.loop_gap), field::any("Between turns of the poll loop, intended idle sleep left out.", "ns"));
  v("longest_gap_at", f.longest_gap_at, field::any("When the longest of them began, from begin() on.", "ns"));
  v("timer_lateness", FilledBuckets(f.timer_lateness), field::any("By which turns came after the deadline they were for.", "ns"));
  v("busy", f.busy, field::any("Of turns of its own thread that had something to do.", "ns"));
  v("cpu_wait", f.cpu_wait,
    field::any("For which its thread was ready to run, and others had its CPU; 0 where the kernel does not tell.", "ns"));
  v("real_time", f.real_time, field::any("Its thread had real-time priority."));
  v("host_drops", f.host_drops, field::any("That the host lost: ring overruns, truncations, transmit errors.", "frames"));
  v("record_overflow", f.record_overflow, field::any("Records that found the ring full."));
  v("punt_refused", f.punt_refused, field::any("That found no room on their way up.", "frames"));
  v("inject_refused", f.inject_refused, field::any("Ring full, too long, no such port, no descriptor.", "frames"));
  v("tuning", f.tuning, field::any("What the host did not let the worker do: pinning, priority, locked memory."));
  v("failure", outcome.failure, field::optional(field::any("Why its loop ended, if it failed.")));
  v("queues", outcome.queues, field::any("Those that carried anything."));
}

size_t count_forwarding(SwitchDevice& device);
std::vector<ForwardingEntry> copy_forwarding(SwitchDevice& device);
// Copies those that were ever asked for, heard of, or are static.
std::vector<NeighbourCopy> copy_neighbours(SwitchDevice& device);
SwitchCopy copy_switch(SwitchDevice& device);
QueuePairCopy copy_queue_pair(SoftNic& nic, uint32_t index, std::string name);
std::vector<QueuePairCopy> copy_queue_pairs(NicDevice& device);
std::vector<ProgramCopy> copy_programs(NicDevice& device);
Outcome outcome_of(Worker& worker);

}  // namespace weir
