// Messages of a switch's shard to the others, and what it does when they send theirs: see switching/shard.h.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "switching/shard.h"
#include "switching/switch_state.h"
#include "wire/packet.h"

namespace weir {

class Pauses;
class RoutedPath;
class TrafficManager;

class ShardTraffic {
 public:
  // All must outlive it.
  ShardTraffic(SwitchState& state, TrafficManager& traffic, Pauses& pauses, RoutedPath& routed)
      : state_(state), traffic_(traffic), pauses_(pauses), routed_(routed) {}

  // The two frame a turn: see SoftSwitch.
  void begin_turn();
  uint64_t end_turn();
  // Takes the oldest message, if its time has come. Messages behind it wait for events that are due before.
  void take_message(Time at);
  // The frame is charged to its ingress here, and joins a queue of another shard.
  void lend_frame(SwitchPort& out, PacketId id);
  // The shard where a frame came in hears what became of it here.
  void report_fate(const Packet& packet, Admission fate);
  // An address that is news was learned at `in`.
  void tell_learned(const SwitchPort& in, const PacketMeta& meta);

 private:
  void take_frame(SwitchPort& out, PacketId id);
  void take_trimmed_frame(SwitchPort& out, PacketId id, Admission why);
  void settle_frame(const ShardMessage& message);

  SwitchState& state_;
  TrafficManager& traffic_;
  Pauses& pauses_;
  RoutedPath& routed_;
};

}  // namespace weir
