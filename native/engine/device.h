// A device that a worker drives: a switch or a NIC with its ports, run to completion once per turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine/counter_block.h"
#include "engine/record_ring.h"
#include "engine/wire_port.h"
#include "link/pfc.h"
#include "wire/mac_control.h"
#include "wire/packet_pool.h"

namespace weir {

// Writes the frame of flow control that a device decided on (Packet::pfc_enable, pfc_xoff) into its buffer.
inline void write_flow_control(PacketPool& pool, PacketId id) { build_flow_control(pool.data(id), pool[id]); }

class Device {
 public:
  virtual ~Device() = default;

  // Reads every port and lives up to `horizon`: arrivals and departures merged in time order, what is due sent. `now`, at or
  // after the horizon, is what the clock says: lateness is measured against it.
  virtual void turn(Time horizon, Time now) = 0;
  // When turn() next has something to do if nothing arrives.
  virtual Time next_deadline() = 0;
  // Stops making traffic, lets what is under way finish.
  virtual void stop_traffic(Time now) = 0;
  // The warm-up is over: distributions start afresh.
  virtual void reset_distributions() = 0;
  virtual void sample(Time at, SpscRing<Record>& ring) = 0;
  virtual void settle_counters() = 0;
  virtual void register_counters(CounterBlock& block) = 0;
  virtual std::vector<WirePort>& ports() = 0;
  // ports()[port] is up, or is so no more.
  virtual void link_changed(size_t) {}
  // Frames that have come, from interfaces and other workers: while there are more of them, the worker is under load.
  virtual uint64_t frames_seen() const = 0;
};

}  // namespace weir
