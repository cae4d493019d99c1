#include "switching/congestion_domain.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/random.h"
#include "wire/bytes.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

namespace weir {
namespace {

constexpr uint32_t kTciOffset = 14;  // offset of the TCI in a frame with an 802.1Q tag
// Purpose of a congestion point's random stream: its queue is added.
constexpr uint64_t kPurpose = 1 << 16;

}  // namespace

void CongestionDomain::configure(Port& port, size_t number) {
  if (parameters_.cn_priorities != 0) {
    assert(pool_.room() >= (parameters_.cnms_by_ip ? kCnmDatagramMaxLength : kCnmMaxLength));
    points_.resize(parameters_.ports.size() * kPriorities);
  }
  const Port before = std::exchange(port, {});
  for (uint8_t left = parameters_.cn_priorities; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const size_t priority = static_cast<size_t>(__builtin_ctz(left));
    const auto bit = static_cast<uint8_t>(1u << priority);
    const SwitchParameters::Port& own = parameters_.ports[number];
    const CnDefence defence = own.cn_defence[priority];
    if (defence == CnDefence::disabled || defence == CnDefence::edge) port.outside |= bit;
    if (defence == CnDefence::disabled) continue;
    if (defence == CnDefence::edge) port.defended |= bit;
    if (defence != CnDefence::interior_ready) port.untagged |= bit;
    port.points |= bit;
    const uint64_t queue = number * uint64_t{kPriorities} + priority;
    const QcnCongestionParameters* shared = own.qcn ? &*own.qcn : &parameters_.qcn;
    if ((before.points & bit) != 0) {
      points_[queue].follow(shared);
      continue;
    }
    points_[queue].configure(shared, Random(parameters_.seed, parameters_.component, kPurpose + queue));
  }
}

bool CongestionDomain::admits(const Port& port, size_t number, PacketId id, SwitchPriorityCounters& counters) const {
  Packet& packet = pool_[id];
  if (packet.meta.kind == FrameKind::cnm) {
    const bool datagram = packet.meta.ip_version != 0;
    if (!datagram) packet.priority = parameters_.cnm_priority;
    if (port.outside == 0) return true;
    CongestionNotification cnm;
    const uint8_t* const frame = pool_.data(id);
    const bool known =
        datagram ? parse_cnm_datagram(frame, packet.meta, cnm) == Refusal::none : parse_cnm(frame, pool_.present(id), cnm);
    return !known || (port.outside >> cnm.priority & 1) == 0;
  }
  ++counters.cn_remapped_frames;
  packet.priority = parameters_.ports[number].cn_alternate_priority[packet.priority];
  if (packet.meta.tagged) {
    packet.meta.vlan_tci = static_cast<uint16_t>((packet.meta.vlan_tci & 0x1fff) | packet.priority << 13);
    store_be16(pool_.data(id) + kTciOffset, packet.meta.vlan_tci);
  }
  return true;
}

PacketId CongestionDomain::sample(uint16_t port, PacketId id, int64_t queue_bytes, SwitchPriorityCounters& counters) {
  const Packet& packet = pool_[id];
  if (packet.meta.kind == FrameKind::cnm) return kNoPacket;
  ++counters.cn_cp_transmitted_frames;
  QcnCongestionPoint& point = points_[static_cast<size_t>(port) * kPriorities + packet.priority];
  const uint64_t before = point.samples();
  const QcnFeedback feedback = point.on_enqueue(queue_bytes, packet.length);
  counters.cn_cp_sampled_frames += point.samples() - before;
  return feedback.quantized != 0 ? make_cnm(port, id, feedback, counters) : kNoPacket;
}

PacketId CongestionDomain::make_cnm(uint16_t port, PacketId id, const QcnFeedback& feedback, SwitchPriorityCounters& counters) {
  const Packet& packet = pool_[id];
  const bool by_ip = parameters_.cnms_by_ip;
  const uint32_t octets =
      by_ip ? std::max(parameters_.cp_min_header_octets, known_by(packet.meta.ip_version)) : parameters_.cp_min_header_octets;
  const std::span<const uint8_t> msdu = msdu_of(pool_, id, octets);
  if (by_ip ? !sampled_source(msdu) : is_group(packet.meta.source_mac)) {
    ++counters.cn_cp_sourceless_frames;
    return kNoPacket;
  }
  const PacketId made = pool_.allocate();
  if (made == kNoPacket) {
    ++counters.cn_cp_unsent_cnms;
    return kNoPacket;
  }
  const uint64_t mac = parameters_.ports[port].mac;
  LinkHeader header{.destination_mac = packet.meta.source_mac,
                    .source_mac = mac,
                    .tagged = packet.meta.tagged,
                    .vlan_tci = static_cast<uint16_t>(packet.meta.vlan() | parameters_.cnm_priority << 13)};
  if (packet.meta.cn_tagged) header.cn_flow = packet.meta.cn_flow;
  const CongestionNotification content{.quantized_feedback = feedback.quantized,
                                       .priority = packet.priority,
                                       .congestion_point = mac << 16 | (port & 0x1fffu) << 3 | packet.priority,
                                       .queue_offset = feedback.offset,
                                       .queue_delta = feedback.delta,
                                       .destination_mac = packet.meta.destination_mac,
                                       .msdu = msdu};
  Packet& cnm = pool_[made];
  cnm.reset();
  cnm.length = build_cnm(pool_.data(made), header, content);
  classify(pool_.data(made), cnm.length, cnm.meta);
  cnm.meta.vlan_tci = header.vlan_tci;  // also at a port where its VLAN has no tag
  cnm.priority = parameters_.cnm_priority;
  cnm.ingress_port = port;
  ++counters.cn_cp_transmitted_cnms;
  return made;
}

uint8_t CongestionDomain::cnm_dscp() const {
  const auto selector = static_cast<uint8_t>(parameters_.cnm_priority << 3);
  const auto& map = parameters_.priority_map.dscp;
  if (map[selector] == parameters_.cnm_priority) return selector;
  const auto mapped = std::ranges::find(map, parameters_.cnm_priority);
  return mapped == map.end() ? selector : static_cast<uint8_t>(mapped - map.begin());
}

void CongestionDomain::remove_tag(PacketId id, SwitchPriorityCounters& counters) {
  const Packet& packet = pool_[id];
  if (!packet.meta.cn_tagged || packet.meta.kind == FrameKind::cnm) return;
  remove_cn_tag(pool_, id);
  ++counters.cn_tags_removed;
}

}  // namespace weir
