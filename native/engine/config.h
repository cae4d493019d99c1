// What TypeScript hands to a worker: plain numbers in wall-clock nanoseconds and wall bits per second, already validated.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "engine/open_port.h"
#include "io/packet_port.h"
#include "link/impairment.h"
#include "switching/soft_switch.h"

namespace weir {

// How a worker's thread waits. busy: never sleeps. adaptive: looks for frames without pause while they come and 2 ms longer, then
// sleeps until some do. interrupt: sleeps `quantum` between two turns under load, which leaves the CPU to others.
enum class Polling : uint8_t { busy, adaptive, interrupt };

struct PortConfig {
  std::string name;  // in counter labels: the peer's name
  std::string interface;
  std::string owner;              // the device; set by the worker
  std::string namespace_path;     // of its network namespace; empty: namespace_fd counts
  int namespace_fd = -1;          // -1: the process's own network namespace
  uint32_t slot_bytes = 2048;     // largest frame that may arrive, tag included
  uint32_t receive_slots = 1024;  // of a packet socket's ring
  Backend receive = Backend::af_packet;
  Backend transmit = Backend::af_packet;
  uint32_t ring = 512;       // frames in each ring of an AF_XDP socket
  bool xdp_generic = false;  // XDP of the kernel's stack instead of the driver's
  uint32_t arp_address = 0;  // with roce_only: ARP (of AF_XDP; else all of it) and pings for this IPv4 address arrive; 0: none
  bool echo_ipv6 = false;    // with roce_only, of a packet socket: IPv6 pings arrive
  bool roce_only = false;    // the host's own stack uses the interface too: only what AfPacketOptions says there arrives
  bool offloads = false;     // partial checksums and super-frames pass, where the backends are packet sockets
  Rate rate = 0;             // of the link: spaces arrivals
  Time delay = 0;            // propagation, added to every arrival
  bool impaired = false;
  ImpairmentParameters impairment;
  uint64_t impairment_component = 0;
};

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
};

struct NicDeviceConfig {
  std::string name;
  PortConfig port;
  NicParameters parameters;
  Time arrears = 0;                              // most time a late NIC makes up for
  std::vector<QueuePairParameters> queue_pairs;  // start and stop relative to the worker's begin()
  std::vector<std::string> queue_pair_names;     // for counter labels
};

class SharedSwitch;

struct WorkerConfig {
  std::string name;
  int cpu = -1;  // to run on; -1: any
  uint64_t seed = 1;
  uint32_t packets = 4096;  // each with room for packet_bytes
  uint32_t packet_bytes = 2048;
  uint32_t super_frames = 0;  // packets of kMaxSuperFrame more
  Polling polling = Polling::interrupt;
  Time quantum = 25'000;     // least time between two turns under load, ns
  Time sample_interval = 0;  // 0: no samples
  Time reset_after = 0;      // when distributions start afresh, ns after begin()
  std::vector<SwitchDeviceConfig> switches;
  std::vector<NicDeviceConfig> nics;
  // Of a switch that several workers share: there is just that one device. `packets` and `super_frames` are this worker's part.
  std::shared_ptr<SharedSwitch> shared;
  uint32_t share = 0;  // which worker this is

  bool lends_packets() const;  // to any of its ports
  // Of the packets.
  PacketShape shape() const;
};

// Throws NativeError INVALID_CONFIG for what a worker cannot run with, its devices' parameters apart.
void check(const WorkerConfig& config);

using PortFactory = std::function<std::unique_ptr<PacketPort>(const PortConfig&, const PortClock&, LentPackets&)>;

}  // namespace weir
