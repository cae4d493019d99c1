// What the switch does for congestion notification: see switching/congestion_notification.h.
#include <cassert>

#include "switching/soft_switch.h"
#include "wire/bytes.h"
#include "wire/classify.h"
#include "wire/qcn.h"

namespace weir {
namespace {

constexpr uint32_t kTciOffset = 14;  // of a frame with an 802.1Q tag
// Of a congestion point's random stream: its queue is added.
constexpr uint64_t kPurpose = 1 << 16;

}  // namespace

// Congestion points that were there stay as they are.
void SoftSwitch::apply_congestion_notification() {
  if (parameters_.cn_priorities != 0) {
    assert(pool_.room() >= kCnmMaxLength);
    congestion_points_.resize(ports_.size() * kPriorities);
  }
  for (Port& port : ports_) {
    const uint8_t before = port.congestion_points;
    port.congestion_points = port.untagged = port.defended = port.outside = 0;
    for (uint8_t left = parameters_.cn_priorities; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const size_t priority = static_cast<size_t>(__builtin_ctz(left));
      const auto bit = static_cast<uint8_t>(1u << priority);
      const CnDefence defence = port.parameters.cn_defence[priority];
      if (defence == CnDefence::disabled || defence == CnDefence::edge) port.outside |= bit;
      if (defence == CnDefence::disabled) continue;
      if (defence == CnDefence::edge) port.defended |= bit;
      if (defence != CnDefence::interior_ready) port.untagged |= bit;
      port.congestion_points |= bit;
      if ((before & bit) != 0) continue;
      const uint64_t queue = port.number * uint64_t{kPriorities} + priority;
      congestion_points_[queue].configure(&parameters_.qcn, Random(parameters_.seed, parameters_.component, kPurpose + queue));
    }
  }
}

// A CNM gets its priority, and what is not of the domain is kept out of it. False when the frame was dropped.
bool SoftSwitch::guard(Port& in, PacketId id) {
  Packet& packet = pool_[id];
  if (packet.meta.kind == FrameKind::cnm) {
    packet.priority = parameters_.cnm_priority;
    CongestionNotification cnm;
    if (in.outside == 0 || !parse_cnm(pool_.data(id), pool_.present(id), cnm)) return true;
    if ((in.outside >> cnm.priority & 1) == 0) return true;
    drop(in.counters.drop_cnm_from_outside, id);
    return false;
  }
  ++in.queues[packet.priority].counters.cn_remapped_frames;
  packet.priority = in.parameters.cn_alternate_priority[packet.priority];
  if (packet.meta.tagged) {
    packet.meta.vlan_tci = static_cast<uint16_t>((packet.meta.vlan_tci & 0x1fff) | packet.priority << 13);
    store_be16(pool_.data(id) + kTciOffset, packet.meta.vlan_tci);
  }
  return true;
}

// The frame joins a queue with a congestion point, which then holds `queue_bytes`. The CNM that is due to its source, not yet
// among the frames of the switch, or kNoPacket.
PacketId SoftSwitch::sample(Port& out, PacketId id, int64_t queue_bytes) {
  const Packet& packet = pool_[id];
  if (packet.meta.kind == FrameKind::cnm) return kNoPacket;
  SwitchPriorityCounters& counters = out.queues[packet.priority].counters;
  ++counters.cn_cp_transmitted_frames;
  QcnCongestionPoint& point = congestion_points_[static_cast<size_t>(out.number) * kPriorities + packet.priority];
  const uint64_t before = point.samples();
  const QcnFeedback feedback = point.on_enqueue(queue_bytes, packet.length);
  counters.cn_cp_sampled_frames += point.samples() - before;
  return feedback.quantized != 0 ? make_cnm(out, id, feedback) : kNoPacket;
}

PacketId SoftSwitch::make_cnm(Port& out, PacketId id, const QcnFeedback& feedback) {
  const Packet& packet = pool_[id];
  SwitchPriorityCounters& counters = out.queues[packet.priority].counters;
  if (is_group(packet.meta.source_mac)) {
    ++counters.cn_cp_sourceless_frames;
    return kNoPacket;
  }
  const PacketId made = pool_.allocate();
  if (made == kNoPacket) {
    ++counters.cn_cp_unsent_cnms;
    return kNoPacket;
  }
  CnmEnvelope envelope;
  envelope.destination_mac = packet.meta.source_mac;
  envelope.source_mac = out.parameters.mac;
  envelope.tagged = packet.meta.tagged;
  envelope.vlan_tci = static_cast<uint16_t>(packet.meta.vlan() | parameters_.cnm_priority << 13);
  if (packet.meta.cn_tagged) envelope.cn_flow = packet.meta.cn_flow;
  CongestionNotification content;
  content.quantized_feedback = feedback.quantized;
  content.priority = packet.priority;
  content.congestion_point = out.parameters.mac << 16 | (out.number & 0x1fffu) << 3 | packet.priority;
  content.queue_offset = feedback.offset;
  content.queue_delta = feedback.delta;
  content.destination_mac = packet.meta.destination_mac;
  content.msdu = msdu_of(pool_, id, parameters_.cp_min_header_octets);
  Packet& cnm = pool_[made];
  cnm.reset();
  cnm.length = build_cnm(pool_.data(made), envelope, content);
  classify(pool_.data(made), cnm.length, cnm.meta);
  cnm.priority = parameters_.cnm_priority;
  cnm.ingress_port = packet.ingress_port;
  ++counters.cn_cp_transmitted_cnms;
  return made;
}

// A CNM that sample() made goes where the sampled frame came from. Called when `out` has done with that frame.
void SoftSwitch::send_back(Port& out, PacketId cnm) {
  Packet& packet = pool_[cnm];
  const uint16_t back = packet.ingress_port;
  packet.ingress_port = out.number;
  ++held_;
  forward(out, back, cnm);
}

void SoftSwitch::remove_tag(Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  if (!packet.meta.cn_tagged || packet.meta.kind == FrameKind::cnm) return;
  remove_cn_tag(pool_, id);
  ++out.queues[packet.priority].counters.cn_tags_removed;
}

}  // namespace weir
