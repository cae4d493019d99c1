// The receiving half of the soft NIC: for whom a frame is, what is refused and counted, and what congestion control hears of it.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "endpoint/soft_nic.h"
#include "wire/bth.h"
#include "wire/ethernet.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/qcn.h"

namespace weir {

SoftNic::Disposition SoftNic::receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                                      InSuperFrame place) {
  catch_up(now);
  const bool known = place.follows && receiving_.qpn == meta.destination_qp && meta.kind == FrameKind::roce;
  const Disposition disposition = known ? consume_next(now, data, length, meta) : consume(now, data, length, meta, refusal);
  if (place.more) return disposition;
  receiving_.qpn = kNone;
  end_receiving();
  go_on();
  return disposition;
}

// The packet is for the queue pair of the one before, with the same headers up to the BTH.
SoftNic::Disposition SoftNic::consume_next(Time arrived, const uint8_t* data, uint32_t length, const PacketMeta& meta) {
  ++counters_.rx_packets;
  counters_.rx_bytes += length;
  NicPriorityCounters& by_priority = priorities_[static_cast<size_t>(receiving_.priority)];
  ++by_priority.rx_prio_packets;
  by_priority.rx_prio_bytes += length;
  if (!take_in(receiving_.priority, length)) return ++by_priority.rx_prio_buf_discard, Disposition::consumed;
  if (pool_.has_payload() && !icrc_ok(data, meta)) return ++counters_.rx_icrc_encapsulated, Disposition::consumed;
  receive_packet(receiving_.index, arrived, data, meta);
  return Disposition::consumed;
}

SoftNic::Disposition SoftNic::consume(Time arrived, const uint8_t* data, uint32_t length, const PacketMeta& meta,
                                      Refusal refusal) {
  ++counters_.rx_packets;
  counters_.rx_bytes += length;
  const int priority = parameters_.priority_map.priority(meta);
  NicPriorityCounters& by_priority = priorities_[static_cast<size_t>(priority)];
  ++by_priority.rx_prio_packets;
  by_priority.rx_prio_bytes += length;
  if (meta.ethertype == kEthertypeCnm) return receive_cnm(data, length, meta, refusal), Disposition::consumed;
  // A fragment is well formed; it is only not for us to reassemble.
  if (refusal != Refusal::none && refusal != Refusal::ip_fragment) return ++counters_.drop_malformed, Disposition::consumed;
  if (!pairs_.ours(meta.destination_mac) && !is_group(meta.destination_mac)) {
    return ++counters_.drop_not_for_us, Disposition::consumed;
  }
  if (parameters_.lldp && is_lldp(meta.destination_mac, meta.ethertype)) return ++counters_.rx_punted, Disposition::punt;
  if (parameters_.vlan != 0 && (!meta.tagged || meta.vlan() != parameters_.vlan)) {
    return ++counters_.drop_vlan, Disposition::consumed;
  }
  if (meta.kind != FrameKind::roce && meta.kind != FrameKind::cnp) {
    // A NIC that does not listen for them takes them for datagrams as any.
    if (hears_cnm_datagrams() && refusal == Refusal::none && is_to_cnm_port(data, meta))
      return receive_cnm_datagram(data, meta), Disposition::consumed;
    return stack_.size() > 0 ? Disposition::stack : (++counters_.rx_punted, Disposition::punt);
  }
  if (!take_in(priority, length)) return ++by_priority.rx_prio_buf_discard, Disposition::consumed;
  if (meta.dscp == parameters_.trimmed_dscp && meta.kind == FrameKind::roce)
    return receive_trimmed(arrived, data, meta), Disposition::consumed;
  if (pool_.has_payload() && !icrc_ok(data, meta)) return ++counters_.rx_icrc_encapsulated, Disposition::consumed;
  // Connection management is the slow path's.
  if (meta.destination_qp == kGsiQpn && parameters_.verbs_queue_pairs > 0) return ++counters_.rx_punted, Disposition::punt;
  receiving_.priority = priority;
  receiving_.looped = meta.source_mac == parameters_.mac;
  if (meta.destination_qp == kMulticastQpn && meta.kind == FrameKind::roce) {
    return receive_group(arrived, data, meta), Disposition::consumed;
  }
  const uint32_t index = pairs_.find(meta.destination_qp);
  if (index == kNone) return ++counters_.drop_unknown_qp, Disposition::consumed;
  if (!addresses_fit(pairs_[index], data, meta)) return Disposition::consumed;
  if (meta.kind == FrameKind::cnp) {
    receive_cnp(index, arrived);
  } else {
    receive_packet(index, arrived, data, meta);
    if (pairs_[index].verbs() != nullptr) receiving_.qpn = meta.destination_qp;
  }
  return Disposition::consumed;
}

// Headers of a packet that a switch had no room for. Its ICRC is gone: whoever it is for may ask for it again, and that is all.
void SoftNic::receive_trimmed(Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  ++counters_.rx_trimmed_roce_packets;
  const uint32_t index = pairs_.find(meta.destination_qp);
  if (index == kNone || !addresses_fit(pairs_[index], frame, meta)) return;
  QueuePair& qp = pairs_[index];
  ++qp.counters.trimmed;
  if (!qp.transport->understands(meta.opcode)) return;
  qp.transport->receive_trimmed(now_, frame, meta);
  hear(index, arrived);
  attend(index);
}

// Puts it into the buffer between the link and a host that takes its time. False: it does not fit.
bool SoftNic::take_in(int priority, uint32_t length) {
  if (receive_buffer_.unlimited()) return true;
  if (!receive_buffer_.add(now_, priority, length)) return false;
  const bool lossless = (parameters_.pfc_priorities >> priority & 1) != 0;
  if (lossless && receive_buffer_.above_xoff(priority) && !egress_.pfc.stopped(priority)) egress_.pfc.stop(priority, now_);
  return true;
}

const std::vector<uint32_t>* SoftNic::members(const uint8_t* frame, const PacketMeta& meta) const {
  if (groups_.empty() || meta.destination_qp != kMulticastQpn) return nullptr;
  return groups_.members(meta.ip_version,
                         frame + meta.l3_offset + ip_source_offset(meta.ip_version) + ip_address_length(meta.ip_version));
}

// Each member gets it as if it had been sent to that queue pair, the sender too if it is one.
void SoftNic::receive_group(Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  const std::vector<uint32_t>* const all = members(frame, meta);
  if (all == nullptr) return void(++counters_.drop_unknown_group);
  PacketMeta own = meta;
  for (const uint32_t qpn : *all) {
    own.destination_qp = qpn;
    receive_packet(pairs_.find(qpn), arrived, frame, own);
  }
}

// A queue pair's packets must come from its peer's address, and to its own. One without a peer yet refuses them all by its state.
bool SoftNic::addresses_fit(const QueuePair& qp, const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* source = frame + meta.l3_offset + ip_source_offset(meta.ip_version);
  const uint32_t length = ip_address_length(meta.ip_version);
  const auto is_destination = [&](uint8_t version, const uint8_t* address) {
    return version == meta.ip_version && std::memcmp(source + length, address, length) == 0;
  };
  bool fits = true;
  if (qp.connected) {
    const RocePath& path = qp.parameters.path;
    if (meta.ip_version != path.ip_version || std::memcmp(source, path.destination_ip, length) != 0) {
      return ++transport_counters().drop_wrong_peer, false;
    }
    fits = is_destination(path.ip_version, path.source_ip);
  } else if (qp.datagram()) {
    const auto is_own = [&](const IpAddress& own) { return is_destination(own.version, own.bytes); };
    fits = std::any_of(parameters_.addresses.begin(), parameters_.addresses.end(), is_own);
  }
  if (!fits) ++transport_counters().drop_wrong_destination;
  return fits;
}

// IBTA annex A17, CA17-45: "reduce the rate of injection for the QP indicated", which for datagrams is that of all its
// destinations.
void SoftNic::receive_cnp(uint32_t index, Time arrived) {
  QueuePair& qp = pairs_[index];
  if (!hears(kHearsCnps)) return void(++counters_.rp_cnp_ignored);
  if (qp.verbs() != nullptr && !qp.verbs()->may_receive()) return void(++transport_counters().drop_wrong_state);
  ++counters_.rp_cnp_handled;
  ++qp.counters.cnp_handled;
  Time awaited = kNever;
  Time cut = kNever;
  (*flows_)[index].tell([&](auto& c) {
    awaited = c.cut_at();
    c.on_cnp(now_);
    cut = c.cut_at();
  });
  if (latencies_ != nullptr && (cut == kNever || cut != awaited)) latencies_->cut(arrived, cut == kNever ? arrived : cut);
  repace(index);
}

void SoftNic::receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal) {
  NicCounters& c = counters_;
  CongestionNotification cnm;
  if (!pairs_.ours(meta.destination_mac)) return void(++c.rp_cnm_not_for_us);
  if (!hears(kHearsCnms) || parameters_.grouping.cnms_by_ip) return void(++c.rp_cnm_ignored);
  if (const auto refused = refuse_cnm(refusal); refused != nullptr) return void(++(c.*refused));
  if (!parse_cnm(frame, length, cnm)) return void(++c.rp_cnm_malformed);
  uint32_t group = kNone;
  if (const auto refused = flows_->find(meta, cnm, group); refused != nullptr) return void(++(c.*refused));
  on_cnm(group, cnm);
}

uint64_t NicCounters::*SoftNic::refuse_cnm(Refusal refusal) const {
  if (refusal == Refusal::truncated_cnm) return &NicCounters::rp_cnm_truncated;
  if (refusal == Refusal::bad_cnm_version) return &NicCounters::rp_cnm_bad_version;
  return refusal != Refusal::none ? &NicCounters::rp_cnm_malformed : nullptr;
}

// The flow shows that it is to an address of ours, and no other's.
void SoftNic::receive_cnm_datagram(const uint8_t* frame, const PacketMeta& meta) {
  NicCounters& c = counters_;
  if (is_group(meta.destination_mac)) return void(++c.rp_cnm_not_for_us);
  CongestionNotification cnm;
  const Refusal refusal = parse_cnm_datagram(frame, meta, cnm);
  if (const auto refused = refuse_cnm(refusal); refused != nullptr) return void(++(c.*refused));
  IpAddress own{.version = meta.ip_version};
  const uint32_t bytes = ip_address_length(own.version);
  std::memcpy(own.bytes, frame + meta.l3_offset + ip_source_offset(own.version) + bytes, bytes);
  uint32_t group = kNone;
  if (const auto refused = flows_->find(meta, own, cnm, group); refused != nullptr) return void(++(c.*refused));
  on_cnm(group, cnm);
}

void SoftNic::on_cnm(uint32_t group, const CongestionNotification& cnm) {
  Flow& flow = (*flows_)[group];
  ++counters_.rp_cnm_handled;
  // A flow of several has no queue pair that is more at fault than the others.
  const uint32_t index = flow.sent_last != kNone ? flow.sent_last : flow.first;
  if (index < pairs_.size()) {
    QpCounters& of = pairs_[index].counters;
    ++of.cnp_handled;
    if (cnm.quantized_feedback == 1) ++of.cnm_lowest;
  }
  flow.tell([this](auto& c) { c.advance(now_); });
  count(group);
  flow.tell([&](auto& c) { c.on_cnm(now_, cnm.quantized_feedback); });
  if (count(group)) ++counters(flows_->priority_of(group)).rp_port_pri_created_rps;
  serve(group);
}

// Hears the news of acknowledgements, or of their absence. `arrived`: when the frame did, which a NIC in arrears (skip_to())
// hears of later.
void SoftNic::hear(uint32_t index, Time arrived) {
  Heard heard;
  Transport& transport = *pairs_[index].transport;
  if (!hears(kHearsAcknowledgements) || !transport.take_heard(heard)) return;
  Ack& ack = heard.ack;
  ack.arrived = arrived;
  Flow& flow = (*flows_)[index];
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
  if (known || window != CongestionControl::kNoWindow) limit(index, window, known ? ack.arrived - ack.sent : 0);
  if (flow.rate != flow.paced_rate) repace(index);
}

void SoftNic::receive_packet(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  QueuePair& qp = pairs_[index];
  if (!qp.transport->understands(meta.opcode)) return void(++counters_.drop_unsupported_opcode);
  if (receiving_.index != index) {
    end_receiving();
    receiving_.index = index;
    receiving_.bth_offset = meta.bth_offset;
    if (qp.verbs() != nullptr) receiving_.before = qp.verbs()->received();
  }
  const bool valid = qp.transport->receive(now_, frame, meta);
  if (hears(kHearsAcknowledgements)) hear(index, arrived);
  if (!valid) return;
  if (meta.ecn == 3) {
    ++counters_.np_ecn_marked_roce_packets;
    ++qp.counters.ecn_marked;
    notify(index, arrived, frame, meta);
  } else if (crowded_ && qp.verbs() != nullptr && meta.payload_length > 0) {
    ++counters_.np_crowded_roce_packets;
    notify(index, arrived, frame, meta);
  }
}

// Does once the work for all packets of a queue pair that have come together.
void SoftNic::end_receiving() {
  const uint32_t index = std::exchange(receiving_.index, kNone);
  if (index == kNone) return;
  QueuePair& qp = pairs_[index];
  if (qp.verbs() != nullptr) {
    count_received(qp.counters, receiving_.before, qp.verbs()->received(), receiving_.bth_offset);
    if (!receiving_.looped && qp.verbs()->crowded(now_)) wait_for_programs(receiving_.priority);
  }
  attend(index);
}

// If the priority is not lossless, a frame that finds no room is lost.
void SoftNic::wait_for_programs(int priority) {
  const auto bit = static_cast<uint8_t>(1u << priority & parameters_.pfc_priorities);
  if (bit == 0 || (awaited_ & bit) != 0) return;
  awaited_ |= bit;
  if (!egress_.pfc.stopped(priority)) egress_.pfc.stop(priority, now_);
}

void SoftNic::obey(int priority, uint16_t quanta) {
  ++priorities_[static_cast<size_t>(priority)].rx_prio_pause;
  egress_.pause.apply(priority, quanta, now_, parameters_.rate);
}

void SoftNic::receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  catch_up(now);
  ++counters_.rx_pfc_frames;
  const uint8_t obeyed = parameters_.link_pause ? uint8_t{0} : parameters_.pfc_priorities;
  for (uint8_t left = enable & obeyed; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int priority = __builtin_ctz(left);
    obey(priority, quanta[static_cast<size_t>(priority)]);
  }
  go_on();
}

void SoftNic::receive_pause(Time now, uint16_t quanta) {
  catch_up(now);
  ++counters_.rx_pause_frames;
  for (int priority = 0; priority < kPriorities; ++priority) obey(priority, quanta);
  go_on();
}

void SoftNic::end_pauses(Time now) {
  catch_up(now);
  egress_.pfc.clear(now_);
  for (int priority = 0; priority < kPriorities; ++priority) egress_.pause.apply(priority, 0, now_, parameters_.rate);
  go_on();
}

// The notification point: a valid packet of this queue pair came through congestion. IBTA annex A17, CA17-44: its CNP is
// "directed to the source of the received packet", which of a datagram is whoever sent it, and not a peer.
void SoftNic::notify(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta) {
  if (!hears(kHearsCnps) || pairs_[index].unresolved()) return;
  expire_windows(now_);  // after skip_to() some may have ended that advance() has not come to yet
  const bool datagram = pairs_[index].datagram();
  const Bth bth = load_bth(frame + meta.bth_offset);
  // CNPs of all members together would stop a sender that is slow enough for most of them.
  if (bth.destination_qp == kMulticastQpn) return void(++counters_.np_cnp_unsent);
  const uint32_t place = datagram ? notifications_.sender(index, parameters_.mac, frame, meta) : index;
  if (place == NotificationPoints::kNone) return void(++counters_.np_cnp_unsent);
  notifications_.on_marked(place, now_, parameters_.cnp_interval, bth.partition_key, latencies_ != nullptr ? arrived : kNever);
}

void SoftNic::expire_windows(Time at) {
  notifications_.expire(at, parameters_.cnp_interval);
  if (notifications_.owed()) start_next();
}

}  // namespace weir
