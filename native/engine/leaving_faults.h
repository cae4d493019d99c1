// Faults of frames that leave at a port (link/faults.h), made in the device's own packets before the host has them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "io/packet_port.h"
#include "link/faults.h"
#include "wire/packet_pool.h"

namespace weir {

class LeavingFaults {
 public:
  // Packets that are held back at a time: beyond that they are lost.
  static constexpr size_t kMostHeld = 1024;

  explicit LeavingFaults(const PortClock& clock) : clock_(clock) {}

  Faults& faults() { return faults_; }
  const PortClock& clock() const { return clock_; }
  // Changes the packet, whose frame is complete, as the faults have it. False: it does not leave now, and is this one's until
  // take_due() or take_lost() gives it back. `twin`: the same packet once more, or kNoPacket.
  bool admit(PacketPool& pool, PacketId id, PacketId& twin);
  // A packet whose time has come, or that is not to leave at all; kNoPacket: there is none.
  PacketId take_due();
  PacketId take_lost();
  size_t waiting() const { return held_.size() + lost_.size(); }
  Time next_deadline() const { return held_.empty() ? kNever : std::max(held_.front().due, clock_.now); }
  void count(PortLosses& losses) const;

 private:
  struct Held {
    Time due;
    uint64_t sequence;  // equal times: in order
    PacketId id;
  };
  static bool later(const Held& a, const Held& b) { return a.due != b.due ? a.due > b.due : a.sequence > b.sequence; }

  const PortClock& clock_;
  Faults faults_;
  std::vector<Held> held_;  // heap, earliest first
  std::vector<PacketId> lost_;
  uint64_t sequence_ = 0;
  PortLosses counted_;
};

}  // namespace weir
