// The switch between its ports: whether a frame may leave by a port and finds room in the shared buffer, the queues, and the
// links that they are picked for. The way of a frame is emit -> admit -> enqueue -> serve -> depart, in the order of
// traffic_manager.cc; one that meets a free link and no queue goes past the queue.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/types.h"
#include "switching/shared_buffer.h"
#include "switching/switch_state.h"
#include "wire/packet.h"
#include "wire/trim.h"

namespace weir {

class Pauses;
class RoutedPath;
class ShardTraffic;
class Vlans;

class TrafficManager {
 public:
  // All must outlive it.
  TrafficManager(SwitchState& state, Vlans& vlans, RoutedPath& routed, Pauses& pauses, ShardTraffic& shards);

  // A frame that came in at `in`, and is charged to it, is to leave by port `to`; or it may, where it has not come from there.
  void emit(SwitchPort& in, uint16_t to, PacketId id);
  void forward(SwitchPort& in, uint16_t to, PacketId id) {
    if (to == in.number()) return state_.drop(in.counters.drop_same_port, id);
    emit(in, to, id);
  }
  // Charges a frame to its egress queue alone: it came in at another shard.
  Admission charge_queue(const SwitchPort& out, const Packet& packet);
  // Whether a frame that was not let in for that reason may be trimmed.
  bool may_trim(const Packet& packet, Admission why) const {
    const TrimmingParameters& trimming = state_.parameters.trimming;
    const bool full = why != Admission::pfc_storm && why != Admission::headroom_full;
    const bool may = (trimming.priorities >> packet.priority & 1) != 0 && packet.offload.gso == Gso::none;
    return full && may && can_trim(packet, trimming.size);
  }
  // The frame, which its queue has no room for, becomes one of another queue.
  void trim(SwitchPort& out, PacketId id);
  // The frame, which has been charged, joins its queue.
  void enqueue(SwitchPort& out, PacketId id);
  // The frame leaves its queue: it is sent, or dropped after all, and that is its fate.
  void release(const Packet& packet, const SwitchPort& out, Admission fate = Admission::admitted);
  // Something has changed at the port: picks frames if its link is free.
  void serve_and_reschedule(SwitchPort& port);

 private:
  bool takes_offload(const SwitchPort& out, const Packet& packet) const;
  void finish_offload(SwitchPort& in, uint16_t to, PacketId id);
  void admit(SwitchPort& in, SwitchPort& out, PacketId id);
  Admission charge(const SwitchPort& in, const SwitchPort& out, const Packet& packet);
  bool beyond_limit(const SwitchPort& out, const Packet& packet) const {
    const int priority = packet.priority;
    return out.egress.has_limit(priority) && state_.buffer.egress_bytes(out.number(), priority) + carried_bytes(packet) >
                                                 out.egress.parameters().queue_limits[packet.priority];
  }
  bool may_queue_whole(const SwitchPort& in, const SwitchPort& out, const Packet& packet) const;
  void drop_in_pfc_storm(SwitchPort& in, PacketId id);
  void refuse(SwitchPort& in, SwitchPort& out, PacketId id, Admission why);
  void trim_or_drop(SwitchPort& in, SwitchPort& out, PacketId id, Admission why);
  void join_queue(SwitchPort& in, SwitchPort& out, PacketId id);
  void bypass_queue(SwitchPort& in, SwitchPort& out, PacketId id);
  void send_cnm(SwitchPort& out, PacketId cnm, uint16_t from);
  void mark(SwitchPort& out, Packet& packet, int64_t queue_bytes) {
    if ((state_.parameters.ecn_priorities >> packet.priority & 1) != 0) out.egress.mark(packet, queue_bytes, random_);
  }
  void serve(SwitchPort& out);
  PacketId dequeue(SwitchPort& out, int priority);
  void write_telemetry_hop(SwitchPort& out, PacketId id);
  void depart(SwitchPort& out, PacketId id) {
    if (out.egress.writes_telemetry()) write_telemetry_hop(out, id);
    const Time at = out.egress.serialize(state_.now, state_.pool[id].length);
    state_.driver.depart(out.number(), id, at);
  }

  SwitchState& state_;
  Vlans& vlans_;
  RoutedPath& routed_;
  Pauses& pauses_;
  ShardTraffic& shards_;
  Random random_;
};

}  // namespace weir
