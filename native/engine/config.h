// Configuration that TypeScript hands to a worker: plain numbers in wall-clock nanoseconds and wall bits per second.
#pragma once

#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "endpoint/nic_neighbours.h"
#include "endpoint/soft_nic.h"
#include "engine/open_port.h"
#include "engine/worker_network.h"
#include "graph/graph_traffic.h"
#include "io/packet_port.h"
#include "io/port_options.h"
#include "link/impairment.h"
#include "switching/soft_switch.h"
#include "wire/packet_memory.h"

namespace weir {

// Manner in which a worker's thread waits. busy: never sleeps. adaptive: looks for frames without pause while they come and 2 ms
// longer, then sleeps until some do. interrupt: sleeps `quantum` between two turns under load, which leaves the CPU to others.
// spinning: as interrupt, but only once between the turns of a millisecond; it leaves others a thirteenth of a CPU of its own.
enum class Polling : uint8_t { busy, adaptive, interrupt, spinning };
constexpr auto words_of(Polling) { return std::array{"busy", "adaptive", "interrupt", "spinning"}; }

struct PortImpairment {
  ImpairmentParameters parameters;
  uint64_t component = 0;
};
void describe(auto& v, Of<PortImpairment> auto& p) {
  v.type("NativeImpairment", "Of one port.");
  v.base(p.parameters);
  v("component", p.component, field::any("Which link this is: keys its random streams."));
}

// `owner`, `receive`, `promiscuous` and `stamp` follow from the rest (engine/open_port.cc).
struct PortConfig : PortOptions {
  std::string name;
  Backend receive_by = Backend::af_packet;
  Backend transmit_by = Backend::af_packet;
  Rate rate = 0;
  Time delay = 0;
  std::optional<PortImpairment> impairment;
};
void describe(auto& v, Of<PortConfig> auto& p) {
  using field::any;
  using field::optional;
  v.type("NativePort", "An interface, and how frames come in and go out by it.");
  v("name", p.name, any("In counter labels: the peer's."));
  v("interface", p.interface, any("Its name in the namespace."));
  v("namespace_fd", p.namespace_fd, any("Descriptor of the network namespace; -1: the process's own."));
  v("namespace_path", p.namespace_path, optional(any("The same by path, which is looked up when the port is opened again.")));
  v("slot_bytes", p.slot_bytes, any("Largest frame that may arrive, tag included.", "bytes"));
  v("receive_slots", p.receive_slots, field::within(1, 1 << 24, "Of a packet socket's ring."));
  v("receive", p.receive_by, optional(any("What frames come in by.")));
  v("transmit", p.transmit_by, optional(any("What they go out by.")));
  v("ring", p.ring, optional(field::within(1, 1 << 24, "Frames in each ring of AF_XDP, a power of two.")));
  v("xdp_mode", p.xdp_mode, optional(any("Where the XDP program of reception runs: in the driver, or above it.")));
  v("arp_address", p.arp_address,
    optional(any("With roce_only: ARP (of AF_XDP; else all arrives) and pings for this IPv4 address are for the NIC.")));
  v("echo_ipv6", p.echo_ipv6, optional(any("With roce_only, of a packet socket: IPv6 pings arrive.")));
  v("lldp", p.lldp, optional(any("With roce_only: LLDPDUs are for the NIC.")));
  v("cnm_datagrams", p.cnm_datagrams, optional(any("With roce_only: QCN's messages in UDP are for the NIC.")));
  v("roce_only", p.roce_only, optional(any("The host's own stack uses the interface too: only what PortOptions says arrives.")));
  v("source_prefix", p.source_prefix,
    optional(
        any("Of packet sockets: first two bytes of the source addresses of frames that arrive; 0: all. Not with roce_only.")));
  v("offloads", p.offloads, optional(any("Partial checksums and super-frames pass, where the backends are packet sockets.")));
  v("join", p.join, optional(field::within(1, 128, "With offloads: RoCEv2 packets that may leave as one super-frame.")));
  v("live_for_xdp", p.live_for_xdp,
    optional(any("Live frames leave only while the other end of this veth runs an XDP program.")));
  v("rate", p.rate, field::bps("Of the link: spaces arrivals; 0: unlimited."));
  v("delay", p.delay, field::ns("Propagation, added to every arrival."));
  v("impairment", p.impairment, optional(any("Absent: none.")));
  v.rule(p.source_prefix == 0 || (!p.roce_only && p.receive_by == Backend::af_packet),
         "source_prefix is for packet sockets without roce_only");
  v.rule(p.receive_by != Backend::live, "live frames are for transmitting");
  v.rule(std::has_single_bit(p.ring), "the frames of a ring are a power of two");
}

struct SwitchDeviceConfig {
  std::string name;
  std::vector<PortConfig> ports;  // as many as parameters.ports
  SwitchParameters parameters;
  struct Route {
    uint64_t destination_mac;
    std::vector<uint16_t> ports;
  };
  struct Pin {
    uint64_t source_mac;
    uint64_t destination_mac;
    uint16_t port;
  };
  std::vector<Route> routes;
  std::vector<Pin> pins;
  bool lldp = false;  // LLDPDUs are handed up; else they are dropped, as all frames to reserved addresses
  // Taps of the kernel's, each of the interface of the router with `kernel` that has its place among those.
  std::vector<PortConfig> twins;
};
void describe(auto& v, Of<SwitchDeviceConfig::Route> auto& route) {
  v.type("NativeRoute", "Where frames go.");
  v("destination_mac", route.destination_mac, field::any("Theirs."));
  v("ports", route.ports, field::any("Next hops."));
}
void describe(auto& v, Of<SwitchDeviceConfig::Pin> auto& pin) {
  v.type("NativePin", "Where frames of one source go, instead.");
  v("source_mac", pin.source_mac, field::any("Theirs."));
  v("destination_mac", pin.destination_mac, field::any("Theirs."));
  v("port", pin.port, field::any("Next hop."));
}
void describe(auto& v, Of<SwitchDeviceConfig> auto& device) {
  v.type("NativeSwitch", "A switch.");
  v("name", device.name, field::any("In counter labels."));
  v.base(device.parameters);
  v("ports", device.ports, field::any("Interfaces."));
  v("routes", device.routes, field::any("Static ones."));
  v("pins", device.pins, field::any("Exceptions from them."));
  v("lldp", device.lldp, field::optional(field::any("LLDPDUs are handed up; else they are dropped.")));
  v("twins", device.twins,
    field::optional(field::any("Taps: one of each interface of the router with `kernel`, in their order.")));
  v.rule(device.ports.size() == device.parameters.ports.size(), "each port has parameters");
  v.rule(device.twins.size() == kernel_interfaces(device.parameters.router), "each interface with kernel has a twin");
}

struct NicDeviceConfig {
  struct QueuePairSetting {
    std::string name;
  };
  std::string name;
  PortConfig port;
  std::optional<PortConfig> stack_port;  // present with parameters.stack_queue
  std::optional<NicNeighbourParameters> neighbours;
  NicParameters parameters;
  Time arrears = 0;
  std::vector<QueuePairParameters> queue_pairs;  // start and stop relative to the worker's begin()
  std::vector<QueuePairSetting> queue_pair_settings;
  // Both ends of its streams begin together, and once: reliable ones have one connection each, from first_psn on. Records tell of
  // messages that are complete.
  bool lab = false;
  bool lent = false;  // a program's own (engine/lent_nic.h): what drives its queue pairs is not the NIC's
};
void describe(auto& v, Of<NicDeviceConfig::QueuePairSetting> auto& p) {
  v.type("NativeQueuePairSetting", "What a queue pair is called.");
  v("name", p.name, field::any("In counter labels: the flow's."));
}
void describe(auto& v, Of<NicDeviceConfig> auto& device) {
  v.type("NativeNic", "A NIC.");
  v("name", device.name, field::any("In counter labels."));
  v("port", device.port, field::any("Its interface."));
  v("stack_port", device.stack_port,
    field::optional(field::any("By which the host's own network stack sends and receives through the NIC.")));
  v.base(device.parameters);
  v("arrears", device.arrears, field::ns("Most time that a late NIC makes up for."));
  v("queue_pairs", device.queue_pairs, field::any("Numbered from first_qpn on."));
  v("queue_pairs", device.queue_pair_settings, field::any(""));
  v("lab", device.lab,
    field::optional(field::any("Both ends of its streams begin together, and once; records tell of complete messages.")));
  v("neighbours", device.neighbours,
    field::optional(field::any("Absent: it looks for nobody, and answers nobody who looks for it.")));
  v.rule(device.queue_pairs.size() == device.queue_pair_settings.size(), "each queue pair has a name");
  v.rule(device.stack_port.has_value() == (device.parameters.stack_queue > 0), "a stack has a port and queues");
}

class SharedSwitch;

struct WorkerConfig {
  std::string name;
  int cpu = -1;
  uint64_t seed = 1;
  uint32_t packets = 4096;
  uint32_t packet_bytes = 2048;
  uint32_t super_frames = 0;
  Polling polling = Polling::interrupt;
  Time quantum = 25'000;
  bool prompt = false;  // with interrupt: where few frames come its descriptors wake it, at once
  bool real_time = false;
  Time sample_interval = 0;
  Time reset_after = 0;
  std::vector<SwitchDeviceConfig> switches;
  std::vector<NicDeviceConfig> nics;
  std::optional<PlacedGraph> graph;
  std::optional<WorkerNetwork> network;
  std::shared_ptr<SharedSwitch> shared;
  uint32_t share = 0;

  bool lends_packets() const;  // true for any of its ports
  bool sends_live() const;     // true by any of its ports
  // Shape of the packets' memory.
  PacketShape shape() const;
  // Memory of its own for them. Throws NativeError where they are for live frames, std::bad_alloc.
  std::unique_ptr<PacketMemory> memory() const;
};
void describe(auto& v, Of<WorkerConfig> auto& config) {
  using field::optional;
  v.type("WorkerConfig",
         "A poll thread with its devices, which are numbered switches first: the `device` of records and frames.");
  v("name", config.name, field::any("In counter labels."));
  v("cpu", config.cpu, field::any("To run on; -1: any."));
  v("seed", config.seed, field::any("Of impairments."));
  v("packets", config.packets, field::within(1, kMostPackets, "Each with room for packet_bytes."));
  v("packet_bytes", config.packet_bytes, field::above(field::bytes("Longest frame.", kTelemetryStride, 1 << 20)));
  v("super_frames", config.super_frames, optional(field::any("Packets of 66 KiB besides.")));
  v("polling", config.polling,
    optional(field::any(
        "busy: never sleeps; adaptive: yields while frames come, then sleeps; interrupt: naps of `quantum` under load; spinning: "
        "one nap in a millisecond.")));
  v("quantum", config.quantum, field::wall_ns("Least between two turns under load, with interrupt."));
  v("prompt", config.prompt, field::any("With interrupt: where little comes its descriptors wake it, at once."));
  v("real_time", config.real_time,
    optional(field::any("It asks for the lowest real-time priority: no other thread's turn on its CPU but in its own naps.")));
  v("sample_interval", config.sample_interval, field::ns("0: no samples; else 1 us or more, for each is a turn."));
  v("reset_after", config.reset_after, field::any("After begin(), when distributions start afresh.", "ns"));
  v("switches", config.switches, field::any("One, if it is shared."));
  v("nics", config.nics, field::any("None, beside a shared switch."));
  v("graph", config.graph, optional(field::any("Messages that wait for others, on flows on demand of the NICs.")));
  v("network", config.network, optional(field::any("Absent: the NICs have the queue pairs that they name.")));
  v("shared", config.shared,
    optional(field::any("Of a switch that several workers share; `packets` and `super_frames` are this one's part.")));
  v("share", config.share, optional(field::any("Which of those workers this is.")));
  v.rule(uint64_t{config.packets} + config.super_frames <= kMostPackets, "it has at most 2^30 packets");
  v.rule(config.sample_interval == 0 || config.sample_interval >= kMicrosecond, "samples are 1 us apart or more");
}

// Throws NativeError INVALID_CONFIG for what a worker cannot run with.
void check(const WorkerConfig& config);
// With the queue pairs that its NICs have in its network, which these refer to; streams of the graph, which were numbers of
// flows, are places among their senders' queue pairs then. Throws NativeError INVALID_CONFIG.
WorkerConfig laid_out(WorkerConfig config);

using PortFactory = std::function<std::unique_ptr<PacketPort>(const PortConfig&, const PortClock&, LentPackets&)>;

}  // namespace weir
