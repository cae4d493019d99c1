// The port between a NIC and its host's own network stack: the other end of a veth of which the host's interface is the first.
#pragma once

#include <cstdint>

#include "endpoint/wire_nic.h"
#include "engine/config.h"
#include "engine/wire_port.h"
#include "wire/packet_pool.h"

namespace weir {

class StackPort {
 public:
  // `port` is this, `link` the NIC's other. All outlive it.
  StackPort(const NicDeviceConfig& config, WirePort& port, const WirePort& link, WireNic& nic, PacketPool& pool);

  Time next_arrival() const { return port_.next_arrival(); }
  // Takes the frame that the stack has sent longest ago.
  void accept();
  // A frame, or a super-frame, that came by the link is for the stack.
  void deliver(const RxFrame& frame, const PacketMeta& meta);
  void deliver_super_frame(const RxFrame& frame);
  // Delivered frames go to the stack.
  void flush(Time now);

 private:
  uint64_t NicCounters::*send(const RxFrame& frame);
  void hand_over(PacketId id);

  WirePort& port_;
  const WirePort& link_;
  WireNic& nic_;
  PacketPool& pool_;
  bool link_finishes_;   // checksums that the stack leaves to its interface
  bool stack_finishes_;  // the same, of others' stacks
};

}  // namespace weir
