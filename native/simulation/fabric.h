// A simulated network: the switches and NICs of the wire, joined by links, in virtual time.
//
// A frame's arrival at the far end of a link is scheduled when its device picks it, so that it costs one event per link, and a
// device is woken only when it has something to do. Same configuration, same run, however it is cut into calls of run().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "link/driver.h"
#include "link/impairment.h"
#include "simulation/config.h"
#include "simulation/counters.h"
#include "simulation/schedule.h"
#include "switching/soft_switch.h"
#include "wire/captured_frame.h"
#include "wire/packet.h"

namespace weir {

class Fabric {
 public:
  // `queue_pairs`: of each NIC. `config` must outlive it.
  Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Goes on until `until`, or until about `limit` events have been in all: then false. Throws NativeError ENOMEM when the network
  // holds more frames than there is memory for; it cannot go on then.
  bool run(Time until, uint64_t limit);
  // New parameters of a switch, from now() on. Throws NativeError when they change more than a running switch can, see the
  // definition, and when the last run() stopped before its time.
  void reconfigure_switch(size_t index, const SwitchParameters& parameters);
  // The receiving end of a stream that has ended at its sender: closed as soon as word of it could have come.
  void close_stream(uint32_t nic, uint32_t index);
  Time now() const { return now_; }
  uint64_t events() const { return schedule_.events(); }
  uint64_t hops() const { return hops_; }

  size_t switch_count() const { return switches_.size(); }
  size_t nic_count() const { return nics_.size(); }
  size_t link_count() const { return link_ports_.size() / 2; }
  SoftSwitch& switch_at(size_t index);
  SoftNic& nic_at(size_t index);
  // What ends[side] of a link has sent.
  const LinkCounters& link_counters(size_t link, size_t side) const { return directions_[link_ports_[2 * link + side]].counters; }
  const PacketPool& pool() const { return pool_; }

  // Frames traced since the last call, in the order of time; see src/native/simulation_types.ts for their layout.
  std::vector<uint8_t> take_trace();

 private:
  class Node;
  class SwitchNode;
  class NicNode;
  struct alignas(64) Direction {
    Time delay = 0;
    std::unique_ptr<Impairment> impairment;
    LinkEnd receiver;
    uint32_t tap = UINT32_MAX;
    LinkCounters counters;
  };
  void connect(const SimulationConfig& config);
  void check_reconfiguration(size_t index, const SwitchParameters& parameters) const;
  void transmit(uint32_t port, PacketId id, Time at);
  void impair(Direction& direction, PacketId id, Time arrival);
  void deliver(const Direction& direction, PacketId id, Time arrival) {
    schedule_.push(arrival, direction.receiver.port, id, direction.receiver.device);
  }
  void arrive(const Event& event);
  void handle(const Event& event);
  void grow_pool();
  void record(uint32_t tap, PacketId id, Time at);
  uint32_t port_number(const LinkEnd& end) const;

  PacketPool pool_;
  Schedule schedule_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;
  std::vector<std::unique_ptr<NicNode>> nics_;
  // Ports of all devices: those of the switches in order, then one for each NIC.
  std::vector<Direction> directions_;  // what each port sends into
  std::vector<uint32_t> link_ports_;   // both ends of each link
  std::vector<uint32_t> first_port_;   // by device
  struct Traced {
    CapturedFrame frame;
    uint8_t bytes[kHeaderStride] = {};
  };
  std::vector<Traced> traced_;
  Time now_ = 0;
  bool reached_ = true;  // run() has come to the end of its time: everything up to now_ has happened
  uint64_t hops_ = 0;
};

}  // namespace weir
