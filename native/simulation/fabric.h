// A simulated network: the switches and NICs of the wire, joined by links, in virtual time.
//
// Everything happens in events, in the order of (time, order of scheduling): a frame arrives at the far end of a link, or a
// device is woken. A frame's arrival is scheduled when its device picks it, so that it costs one event per link, and a device is
// woken only when it has something to do. Same configuration, same run, however it is cut into calls of run().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "simulation/config.h"
#include "simulation/counters.h"
#include "simulation/event_queue.h"
#include "switching/driver.h"
#include "switching/soft_switch.h"
#include "wire/packet.h"

namespace weir {

class Fabric {
 public:
  // `queue_pairs`: of each NIC. `config` must outlive it.
  Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Handles the next event at or before `until`; false when there is none.
  bool step(Time until);
  // Nothing is left to do before `at`: time passes.
  void pass_to(Time at) { now_ = at > now_ ? at : now_; }
  Time now() const { return now_; }
  uint64_t events() const { return events_; }
  uint64_t hops() const { return hops_; }

  size_t switch_count() const { return switches_.size(); }
  size_t nic_count() const { return nics_.size(); }
  size_t link_count() const { return link_ports_.size() / 2; }
  SoftSwitch& switch_at(size_t index);
  SoftNic& nic_at(size_t index);
  // What ends[side] of a link has sent.
  const LinkCounters& link_counters(size_t link, size_t side) const { return directions_[link_ports_[2 * link + side]].counters; }
  const PacketPool& pool() const { return pool_; }

  // Traced frames, see src/native/simulation_types.ts for their layout.
  std::vector<uint8_t>& trace() { return trace_; }

 private:
  class SwitchNode;
  class NicNode;
  struct Impaired;
  struct End {
    uint32_t device = 0;
    uint16_t port = 0;
    bool is_switch = false;
  };
  struct alignas(64) Direction {
    Time delay = 0;
    std::unique_ptr<Impaired> impaired;
    LinkCounters counters;
    uint32_t tap = UINT32_MAX;
  };
  // What an event is for is in the two highest bits of its kind, whom it is for in the others: the port that a frame comes from,
  // a switch's port, a NIC. A NIC is woken for a queue pair of its own, or for itself.
  enum Kind : uint32_t { kArrival = 0, kSwitchWake = 1u << 30, kNicWake = 2u << 30, kKinds = 3u << 30 };
  static constexpr uint32_t kItself = UINT32_MAX;

  void connect(const SimulationConfig& config);
  void transmit(uint32_t port, PacketId id, Time at);
  void impair(uint32_t port, PacketId id, Time arrival);
  void arrive(uint32_t from_port, PacketId id);
  void fetch_ahead() const;
  void fetch(const Event& event, int step) const;
  void record(uint32_t tap, PacketId id, Time at);
  uint32_t port_number(const LinkEnd& end) const;

  PacketPool pool_;
  EventQueue queue_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;
  std::vector<std::unique_ptr<NicNode>> nics_;
  // Ports of all devices: those of the switches in order, then one for each NIC.
  std::vector<Direction> directions_;  // what each port sends into
  std::vector<End> receivers_;         // who gets that
  std::vector<uint32_t> link_ports_;   // both ends of each link
  struct Owner {
    uint32_t device;
    uint16_t port;
  };
  std::vector<Owner> owners_;
  std::vector<uint32_t> first_port_;  // by device
  std::vector<uint8_t> trace_;
  Time now_ = 0;
  uint64_t events_ = 0;
  uint64_t hops_ = 0;
};

}  // namespace weir
