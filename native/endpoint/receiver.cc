#include "endpoint/receiver.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "wire/bth.h"
#include "wire/ethernet.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/qcn.h"

namespace weir {
namespace {

uint64_t NicCounters::*refuse_cnm(Refusal refusal) {
  if (refusal == Refusal::truncated_cnm) return &NicCounters::rp_cnm_truncated;
  if (refusal == Refusal::bad_cnm_version) return &NicCounters::rp_cnm_bad_version;
  return refusal != Refusal::none ? &NicCounters::rp_cnm_malformed : nullptr;
}

}  // namespace

Receiver::Disposition Receiver::receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                                        InSuperFrame place) {
  events_.begin(now);
  const bool known = place.follows && nic().receiving.qpn == meta.destination_qp && meta.kind == FrameKind::roce;
  const Disposition disposition = known ? consume_next(now, data, length, meta) : consume(now, data, length, meta, refusal);
  if (place.more) return disposition;
  nic().receiving.qpn = kNone;
  end_receiving();
  events_.end();
  return disposition;
}

// The packet is for the queue pair of the one before, with the same headers up to the BTH.
Receiver::Disposition Receiver::consume_next(Time arrived, const uint8_t* data, uint32_t length, const PacketMeta& meta) {
  ++nic().counters.rx_packets;
  nic().counters.rx_bytes += length;
  NicPriorityCounters& by_priority = nic().priorities[static_cast<size_t>(nic().receiving.priority)];
  ++by_priority.rx_prio_packets;
  by_priority.rx_prio_bytes += length;
  if (!take_in(nic().receiving.priority, length)) return ++by_priority.rx_prio_buf_discard, Disposition::consumed;
  if (nic().pool.has_icrc() && !icrc_ok(data, meta)) return ++nic().counters.rx_icrc_encapsulated, Disposition::consumed;
  receive_packet(nic().receiving.index, arrived, data, meta);
  return Disposition::consumed;
}

Receiver::Disposition Receiver::consume(Time arrived, const uint8_t* data, uint32_t length, const PacketMeta& meta,
                                        Refusal refusal) {
  ++nic().counters.rx_packets;
  nic().counters.rx_bytes += length;
  const int priority = nic().parameters.priority_map.priority(meta);
  NicPriorityCounters& by_priority = nic().priorities[static_cast<size_t>(priority)];
  ++by_priority.rx_prio_packets;
  by_priority.rx_prio_bytes += length;
  if (meta.ethertype == kEthertypeCnm) return receive_cnm(data, length, meta, refusal), Disposition::consumed;
  // A fragment is well formed; it is only not for us to reassemble.
  if (refusal != Refusal::none && refusal != Refusal::ip_fragment) return ++nic().counters.drop_malformed, Disposition::consumed;
  if (!nic().pairs.ours(meta.destination_mac) && !is_group(meta.destination_mac)) {
    return ++nic().counters.drop_not_for_us, Disposition::consumed;
  }
  if (nic().parameters.lldp && is_lldp(meta.destination_mac, meta.ethertype))
    return ++nic().counters.rx_punted, Disposition::punt;
  if (nic().parameters.vlan != 0 && (!meta.tagged || meta.vlan() != nic().parameters.vlan)) {
    return ++nic().counters.drop_vlan, Disposition::consumed;
  }
  if (meta.kind != FrameKind::roce && meta.kind != FrameKind::cnp) {
    // A NIC that does not listen for them takes them for datagrams as any.
    if (nic().hears_cnm_datagrams() && refusal == Refusal::none && is_to_cnm_port(data, meta))
      return receive_cnm_datagram(data, meta), Disposition::consumed;
    return nic().stack.size() > 0 ? Disposition::stack : (++nic().counters.rx_punted, Disposition::punt);
  }
  if (!take_in(priority, length)) return ++by_priority.rx_prio_buf_discard, Disposition::consumed;
  if (meta.dscp == nic().parameters.trimmed_dscp && meta.kind == FrameKind::roce)
    return receive_trimmed(arrived, data, meta), Disposition::consumed;
  if (nic().pool.has_icrc() && !icrc_ok(data, meta)) return ++nic().counters.rx_icrc_encapsulated, Disposition::consumed;
  // Connection management is the slow path's.
  if (meta.destination_qp == kGsiQpn && nic().parameters.verbs_queue_pairs > 0)
    return ++nic().counters.rx_punted, Disposition::punt;
  nic().receiving.priority = priority;
  nic().receiving.looped = meta.source_mac == nic().parameters.mac;
  if (meta.destination_qp == kMulticastQpn && meta.kind == FrameKind::roce) {
    return receive_group(arrived, data, meta), Disposition::consumed;
  }
  const uint32_t index = nic().pairs.find(meta.destination_qp);
  if (index == kNone) return ++nic().counters.drop_unknown_qp, Disposition::consumed;
  if (!addresses_fit(nic().pairs[index], data, meta)) return Disposition::consumed;
  if (meta.kind == FrameKind::cnp) {
    receive_cnp(index, arrived);
  } else {
    receive_packet(index, arrived, data, meta);
    if (nic().pairs[index].verbs() != nullptr) nic().receiving.qpn = meta.destination_qp;
  }
  return Disposition::consumed;
}

// Headers of a packet that a switch had no room for. Its ICRC is gone: whoever it is for may ask for it again, and that is all.
void Receiver::receive_trimmed(Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  ++nic().counters.rx_trimmed_roce_packets;
  const uint32_t index = nic().pairs.find(meta.destination_qp);
  if (index == kNone || !addresses_fit(nic().pairs[index], frame, meta)) return;
  QueuePair& qp = nic().pairs[index];
  ++qp.counters.trimmed;
  if (!qp.transport->understands(meta.opcode)) return;
  qp.transport->receive_trimmed(nic().now, frame, meta);
  hear_acknowledgements(index, arrived);
  flows().attend_to_pair(index);
}

// Puts it into the buffer between the link and a host that takes its time. False: it does not fit.
bool Receiver::take_in(int priority, uint32_t length) {
  if (nic().receive_buffer.unlimited()) return true;
  if (!nic().receive_buffer.add(nic().now, priority, length)) return false;
  const bool lossless = (nic().parameters.pfc_priorities >> priority & 1) != 0;
  if (lossless && nic().receive_buffer.above_xoff(priority)) pauses().stop_peer(priority);
  return true;
}

// Each member gets it as if it had been sent to that queue pair, the sender too if it is one.
void Receiver::receive_group(Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  const std::vector<uint32_t>* const all = nic().members(frame, meta);
  if (all == nullptr) return void(++nic().counters.drop_unknown_group);
  PacketMeta own = meta;
  for (const uint32_t qpn : *all) {
    own.destination_qp = qpn;
    receive_packet(nic().pairs.find(qpn), arrived, frame, own);
  }
}

// A queue pair's packets must come from its peer's address, and to its own. One without a peer yet refuses them all by its state.
bool Receiver::addresses_fit(const QueuePair& qp, const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* source = frame + meta.l3_offset + ip_source_offset(meta.ip_version);
  const uint32_t length = ip_address_length(meta.ip_version);
  // A comparison of constant length is a few instructions, any other a call.
  constexpr uint32_t kShort = ip_address_length(4), kLong = ip_address_length(6);
  const auto same = [length](const uint8_t* a, const uint8_t* b) {
    return (length == kShort ? std::memcmp(a, b, kShort) : std::memcmp(a, b, kLong)) == 0;
  };
  const auto is_destination = [&](uint8_t version, const uint8_t* address) {
    return version == meta.ip_version && same(source + length, address);
  };
  bool fits = true;
  if (qp.connected) {
    const RocePath& path = qp.parameters.path;
    if (meta.ip_version != path.ip_version || !same(source, path.destination_ip)) {
      return ++nic().pairs.counters().drop_wrong_peer, false;
    }
    fits = is_destination(path.ip_version, path.source_ip);
  } else if (qp.datagram()) {
    const auto is_own = [&](const IpAddress& own) { return is_destination(own.version, own.bytes); };
    fits = std::any_of(nic().parameters.addresses.begin(), nic().parameters.addresses.end(), is_own);
  }
  if (!fits) ++nic().pairs.counters().drop_wrong_destination;
  return fits;
}

// IBTA annex A17, CA17-45: "reduce the rate of injection for the QP indicated", which for datagrams is that of all its
// destinations.
void Receiver::receive_cnp(uint32_t index, Time arrived) {
  QueuePair& qp = nic().pairs[index];
  if (!nic().hears(kHearsCnps)) return void(++nic().counters.rp_cnp_ignored);
  if (qp.verbs() != nullptr && !qp.verbs()->may_receive()) return void(++nic().pairs.counters().drop_wrong_state);
  ++nic().counters.rp_cnp_handled;
  ++qp.counters.cnp_handled;
  Time awaited = kNever;
  Time cut = kNever;
  nic().flow(index).tell([&](auto& c) {
    awaited = c.cut_at();
    c.on_cnp(nic().now);
    cut = c.cut_at();
  });
  if (nic().latencies != nullptr && (cut == kNever || cut != awaited))
    nic().latencies->cut(arrived, cut == kNever ? arrived : cut);
  flows().repace_pair(index);
}

void Receiver::receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal) {
  NicCounters& c = nic().counters;
  CongestionNotification cnm;
  if (!nic().pairs.ours(meta.destination_mac)) return void(++c.rp_cnm_not_for_us);
  if (!nic().hears(kHearsCnms) || nic().parameters.grouping.cnms_by_ip) return void(++c.rp_cnm_ignored);
  if (const auto refused = refuse_cnm(refusal); refused != nullptr) return void(++(c.*refused));
  if (!parse_cnm(frame, length, cnm)) return void(++c.rp_cnm_malformed);
  uint32_t group = kNone;
  if (const auto refused = nic().flow_table->find(meta, cnm, group); refused != nullptr) return void(++(c.*refused));
  on_cnm(group, cnm);
}

// The flow shows that it is to an address of ours, and no other's.
void Receiver::receive_cnm_datagram(const uint8_t* frame, const PacketMeta& meta) {
  NicCounters& c = nic().counters;
  if (is_group(meta.destination_mac)) return void(++c.rp_cnm_not_for_us);
  CongestionNotification cnm;
  const Refusal refusal = parse_cnm_datagram(frame, meta, cnm);
  if (const auto refused = refuse_cnm(refusal); refused != nullptr) return void(++(c.*refused));
  IpAddress own{.version = meta.ip_version};
  const uint32_t bytes = ip_address_length(own.version);
  std::memcpy(own.bytes, frame + meta.l3_offset + ip_source_offset(own.version) + bytes, bytes);
  uint32_t group = kNone;
  if (const auto refused = nic().flow_table->find(meta, own, cnm, group); refused != nullptr) return void(++(c.*refused));
  on_cnm(group, cnm);
}

void Receiver::on_cnm(uint32_t group, const CongestionNotification& cnm) {
  Flow& flow = nic().flow(group);
  ++nic().counters.rp_cnm_handled;
  // A flow of several has no queue pair that is more at fault than the others.
  const uint32_t index = flow.sent_last != kNone ? flow.sent_last : flow.first;
  if (index < nic().pairs.size()) {
    QpCounters& of = nic().pairs[index].counters;
    ++of.cnp_handled;
    if (cnm.quantized_feedback == 1) ++of.cnm_lowest;
  }
  flow.tell([this](auto& c) { c.advance(nic().now); });
  nic().count_held(group);
  flow.tell([&](auto& c) { c.on_cnm(nic().now, cnm.quantized_feedback); });
  if (nic().count_held(group)) ++nic().by_priority(nic().flow_table->priority_of(group)).rp_port_pri_created_rps;
  flows().serve_group(group);
}

void Receiver::hear_acknowledgements(uint32_t index, Time arrived) {
  Heard heard;
  Transport& transport = *nic().pairs[index].transport;
  if (!nic().hears(kHearsAcknowledgements) || !transport.take_heard(heard)) return;
  Ack& ack = heard.ack;
  ack.arrived = arrived;
  Flow& flow = nic().flow(index);
  uint32_t window = 0;
  flow.tell([&](auto& c) {
    if (ack.packets > 0) c.on_ack(ack);
    if (heard.trimmed.packets > 0) {
      heard.trimmed.at = ack.arrived;
      if constexpr ((std::remove_cvref_t<decltype(c)>::kHears & kHearsTrims) != 0) {
        c.on_trimmed(heard.trimmed);
      } else {
        heard.lost = true;
      }
    }
    if (heard.lost || heard.timed_out) c.on_loss({.in_flight = ack.in_flight, .timeout = heard.timed_out, .at = ack.arrived});
    window = c.window();
  });
  const bool known = ack.packets > 0 && ack.sent != kNever;
  if (known || window != CongestionControl::kNoWindow) flows().limit_in_flight(index, window, known ? ack.arrived - ack.sent : 0);
  if (flow.rate != flow.paced_rate) flows().repace_pair(index);
}

void Receiver::receive_packet(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  QueuePair& qp = nic().pairs[index];
  if (!qp.transport->understands(meta.opcode)) return void(++nic().counters.drop_unsupported_opcode);
  if (nic().receiving.index != index) {
    end_receiving();
    nic().receiving.index = index;
    nic().receiving.bth_offset = meta.bth_offset;
    if (qp.verbs() != nullptr) nic().receiving.before = qp.verbs()->received();
  }
  const bool valid = qp.transport->receive(nic().now, frame, meta);
  if (nic().hears(kHearsAcknowledgements)) hear_acknowledgements(index, arrived);
  if (!valid) return;
  if (meta.ecn == 3) {
    ++nic().counters.np_ecn_marked_roce_packets;
    ++qp.counters.ecn_marked;
    note_congestion(index, arrived, frame, meta);
  } else if (nic().crowded && qp.verbs() != nullptr && meta.payload_length > 0) {
    ++nic().counters.np_crowded_roce_packets;
    note_congestion(index, arrived, frame, meta);
  }
}

// The notification point: a valid packet of this queue pair came through congestion. IBTA annex A17, CA17-44: its CNP is
// "directed to the source of the received packet", which of a datagram is whoever sent it, and not a peer.
void Receiver::note_congestion(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  if (!nic().hears(kHearsCnps) || nic().pairs[index].unresolved()) return;
  events_.sender().expire_windows(nic().now);  // after skip_to() some may have ended that events_.advance() has not come to yet
  const bool datagram = nic().pairs[index].datagram();
  const Bth bth = load_bth(frame + meta.bth_offset);
  // CNPs of all members together would stop a sender that is slow enough for most of them.
  if (bth.destination_qp == kMulticastQpn) return void(++nic().counters.np_cnp_unsent);
  const uint32_t place = datagram ? nic().notifications.sender(index, nic().parameters.mac, frame, meta) : index;
  if (place == NotificationPoints::kNone) return void(++nic().counters.np_cnp_unsent);
  nic().notifications.on_marked(place, nic().now, nic().parameters.cnp_interval, bth.partition_key,
                                nic().latencies != nullptr ? arrived : kNever);
}

// Does once the work for all packets of a queue pair that have come together.
void Receiver::end_receiving() {
  const uint32_t index = std::exchange(nic().receiving.index, kNone);
  if (index == kNone) return;
  QueuePair& qp = nic().pairs[index];
  if (qp.verbs() != nullptr) {
    count_received(qp.counters, nic().receiving.before, qp.verbs()->received(), nic().receiving.bth_offset);
    if (!nic().receiving.looped && qp.verbs()->crowded(nic().now)) pauses().wait_for_programs(nic().receiving.priority);
  }
  flows().attend_to_pair(index);
}

}  // namespace weir
