// The state that the parts of a switch share: parameters, ports and memory, the time that has been reached, and where frames are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "link/driver.h"
#include "switching/congestion_domain.h"
#include "switching/exchange.h"
#include "switching/forwarding.h"
#include "switching/load_balancing.h"
#include "switching/shared_buffer.h"
#include "switching/switch_parameters.h"
#include "switching/switch_port.h"
#include "wire/carried.h"
#include "wire/packet_pool.h"

namespace weir {

struct SwitchState {
  // Arguments are those of SoftSwitch; parameters have passed check().
  SwitchState(SwitchParameters given, PacketPool& packets, Driver& drives, uint32_t queued, ShardLink* shard);
  SwitchState(const SwitchState&) = delete;
  SwitchState& operator=(const SwitchState&) = delete;

  // New parameters hold here from now on, but at the ports, which their parts configure.
  void adopt(SwitchParameters given);

  // Nothing happens up to `at`: what was asked for by then has come.
  void advance(Time at) { now = std::max(now, at); }
  // Has the driver come for a port at `at`, or when the port next has something to do.
  void schedule(SwitchPort& port, Time at) {
    if (port.egress.changes_wake(at)) driver.wake(port.number(), at);
  }
  void reschedule(SwitchPort& port) { schedule(port, port.egress.next_wake(now)); }
  // Has it come for what is no port's: messages of other shards, and the age of neighbours.
  void ask_for_wake();

  PortLoad load_of(uint16_t port, int priority) const {
    return {buffer.egress_bytes(port, priority), ports[port].egress.free_at(now)};
  }
  // Counts what became of an address of port `of` that was to be learned. Other shards count for their ports.
  void count_learned(uint16_t of, Forwarding::Learned learned);

  // The frame is the switch's no longer, and is counted by `reason`; or by whoever discards it.
  void drop(uint64_t& reason, PacketId id) {
    reason += carried_frames(pool[id]);
    discard(id);
  }
  void discard(PacketId id) {
    held -= carried_frames(pool[id]);
    pool.free(id);
  }

  SwitchParameters parameters;
  PacketPool& pool;
  Driver& driver;
  ShardLink* const link;  // null: it is no shard
  SharedBuffer buffer;
  Forwarding forwarding;
  LoadBalancer balancer;
  CongestionDomain domain;
  std::vector<SwitchPort> ports;
  const uint32_t messages;  // entry that it is woken for besides ports
  Time now = 0;
  uint64_t held = 0;
  uint64_t lent = 0;
  uint32_t stopped = 0;          // number of (port, priority) pairs that are stopped by us now
  bool keeps_all = false;        // all queues keep their distribution
  Time neighbours_due = kNever;  // when neighbours are looked at for their age
};

}  // namespace weir
