#include "switching/switch_port.h"

#include "link/pfc.h"
#include "wire/carried.h"

namespace weir {

uint64_t* SwitchPort::exceeded_storm_counter(Time now, const Packet& packet) {
  const Storm kind = storm_of(packet.meta.destination_mac);
  if (!storms.exceeded(now, kind, carried_wire_bytes(packet.length, packet.offload))) return nullptr;
  return kind == Storm::broadcast   ? &counters.drop_storm_broadcast
         : kind == Storm::multicast ? &counters.drop_storm_multicast
                                    : &counters.drop_storm_unknown_unicast;
}

void SwitchPort::count_refused(int priority, Admission why, uint32_t frames) {
  (why == Admission::queue_limit       ? counters.drop_queue_limit
   : why == Admission::pfc_storm       ? counters.drop_pfc_watchdog
   : why == Admission::headroom_full   ? counters.drop_headroom_full
   : why == Admission::lossy_threshold ? counters.drop_lossy_threshold
                                       : counters.drop_buffer_full) += frames;
  if (why != Admission::queue_limit && why != Admission::pfc_storm) egress.queue(priority).counters.pg_dropped_packets += frames;
}

void SwitchPort::count_own(const Packet& packet) {
  if (!is_flow_control(packet.meta.kind)) return void(++counters.tx_slow_path);
  ++(packet.meta.kind == FrameKind::pfc ? counters.tx_pfc_frames : counters.tx_pause_frames);
  for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    ++egress.queue(__builtin_ctz(left)).counters.pfc_tx_packets;
  }
}

}  // namespace weir
