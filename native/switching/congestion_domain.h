// A switch's part in congestion notification: see switching/congestion_notification.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "congestion/qcn_congestion_point.h"
#include "switching/counters.h"
#include "switching/switch_parameters.h"
#include "wire/packet_pool.h"

namespace weir {

class CongestionDomain {
 public:
  // Masks of priorities of one port.
  struct Port {
    uint8_t points = 0;    // mask of queues that have a congestion point
    uint8_t untagged = 0;  // mask of priorities whose frames leave without CN-TAG
    uint8_t defended = 0;  // mask of CNPVs that frames which come in here do not keep
    uint8_t outside = 0;   // mask of CNPVs of whose domain the neighbour here is no part
    bool has_point(int priority) const { return (points >> priority & 1) != 0; }
  };

  // `parameters` must outlive it.
  CongestionDomain(const SwitchParameters& parameters, PacketPool& pool) : parameters_(parameters), pool_(pool) {}

  // The parameters have changed. Congestion points that were there stay as they are.
  void configure(Port& port, size_t number);

  // A CNM gets its priority, and what is not of the domain is kept out of it. False when the frame is to be dropped.
  bool admits(const Port& port, size_t number, PacketId id, SwitchPriorityCounters& counters) const;
  // Called for a frame that joins a queue with a congestion point, which then holds `queue_bytes`. The CNM that is due to its
  // source, charged to `port`, or kNoPacket.
  PacketId sample(uint16_t port, PacketId id, int64_t queue_bytes, SwitchPriorityCounters& counters);
  // DSCP of CNMs that are datagrams.
  uint8_t cnm_dscp() const;
  // Takes the CN-TAG off a frame that leaves an untagged queue.
  void remove_tag(PacketId id, SwitchPriorityCounters& counters);

 private:
  PacketId make_cnm(uint16_t port, PacketId id, const QcnFeedback& feedback, SwitchPriorityCounters& counters);

  const SwitchParameters& parameters_;
  PacketPool& pool_;
  std::vector<QcnCongestionPoint> points_;  // points of all queues, by port and priority; none where QCN was never on
};

}  // namespace weir
