#include "engine/nic_device.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "base/native_error.h"
#include "base/secret.h"
#include "endpoint/samples.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/mac_control.h"
#include "wire/super_frame.h"

namespace weir {
namespace {

std::vector<QueuePairParameters> begun(const NicDeviceConfig& config, Time begin) {
  std::vector<QueuePairParameters> queue_pairs = config.queue_pairs;
  for (QueuePairParameters& qp : queue_pairs) {
    if (qp.start != kNever) qp.start += begin;
    if (qp.stop != kNever) qp.stop += begin;
    qp.peer_start += begin;
    if (qp.reliable && !config.lab) qp.connection_seed = secret() | 1;
  }
  return queue_pairs;
}

PauseStorm begun(PauseStorm storm, Time begin) {
  storm.start += begin;
  if (storm.stop != kNever) storm.stop += begin;
  return storm;
}

Refusal classify_alone(const RxFrame& frame, const uint8_t* data, uint32_t length, PacketMeta& meta) {
  return frame.vlan_stripped ? classify(data, length, meta, frame.vlan_tci) : classify(data, length, meta);
}

// True for frames of the host's stack that connection management hears as well: who cannot be reached.
bool tells_unreachable(const uint8_t* data, uint32_t length, const PacketMeta& meta) {
  constexpr uint8_t kUnreachable = 3, kUnreachableV6 = 1;
  if (meta.ip_version == 0) return false;
  const uint8_t* ip = data + meta.l3_offset;
  const uint32_t header = ip_header_length(ip);
  if (meta.l3_offset + header >= length) return false;
  const uint8_t type = ip[header];
  if (meta.ip_version == 4) return ip[9] == kProtocolIcmp && type == kUnreachable;
  return ip[6] == kProtocolIcmpv6 && type == kUnreachableV6;
}

// A late NIC makes up for so much of the link's time at once: for so many bytes of a queue pair. Fewer packets of each than a
// super-frame may have go with those that follow.
constexpr uint64_t kPiece = 128 * 1024;
constexpr uint64_t kWorthSending = 64;
// A NIC whose port takes many frames in one call makes up for this at least: such a call may take so long, frames made.
constexpr Time kCall = 500 * kMicrosecond;
Time time_on(Rate rate, uint64_t bytes) {
  return rate == 0 ? kSecond : static_cast<Time>(bytes * 8 * kSecond / static_cast<uint64_t>(rate));
}

}  // namespace

NicDevice::NicDevice(const NicDeviceConfig& config, uint16_t index, WirePort port, PacketPool& pool, FrameRing& punted,
                     SpscRing<Record>& records, Time begin, std::unique_ptr<WirePort> stack_port)
    : config_(config),
      index_(index),
      pool_(pool),
      punted_(punted),
      records_(records),
      applications_(config.parameters.verbs_queue_pairs > 0 && !config.lent ? std::make_unique<NicApplications>(nic_, ports_)
                                                                            : nullptr),
      begin_(begin),
      piece_(time_on(config.parameters.rate, kPiece)),
      nic_(completed(config.parameters), begun(config_, begin), pool, verbs()) {
  ports_.push_back(std::move(port));
  if (stack_port != nullptr) ports_.push_back(std::move(*stack_port));
  if (stack_port != nullptr) stack_ = std::make_unique<StackPort>(config_, ports_.back(), ports_.front(), nic_, pool_);
  if (config_.neighbours) {
    NicNeighbours::Host host{[this](PacketId id) { return send_own(id); },
                             [this](uint32_t place, uint64_t mac) { tell_of_neighbour(place, mac); }};
    neighbours_ = std::make_unique<NicNeighbours>(*config_.neighbours, config_.parameters.mac, pool_, std::move(host));
  }
  nic_.measure(&latencies_);
  nic_.number_datagrams(ports_.front().port().capabilities().joins);
}

// Keys of memory that peers may reach are not to be guessed.
NicParameters NicDevice::completed(NicParameters parameters) {
  if (parameters.verbs_queue_pairs > 0) parameters.key_secret = secret();
  parameters.listener = this;
  parameters.pause_storm = begun(parameters.pause_storm, begin_);
  return parameters;
}

void NicDevice::reconfigure(const NicDeviceConfig& config) {
  NicParameters parameters = config.parameters;
  parameters.pause_storm = begun(parameters.pause_storm, begin_);
  nic_.reconfigure(parameters, config.queue_pairs);
  config_.parameters = config.parameters;
  if (programs() != nullptr) programs()->rewrite_paths(lent_config());
  if (neighbours_ != nullptr && config.neighbours) neighbours_->take_addresses(config.neighbours->addresses);
}

LentNicConfig NicDevice::lent_config() const {
  LentNicConfig lent{config_, pool_.room()};
  lent.nic.stack_port.reset();
  lent.nic.neighbours.reset();
  lent.nic.queue_pairs.clear();
  lent.nic.queue_pair_settings.clear();
  lent.nic.parameters.stack_queue = 0;
  lent.nic.parameters.lldp = false;
  lent.nic.port.transmit_by = Backend::af_packet;
  lent.nic.port.impairment.reset();
  // The socket is where it is: the program may neither see that namespace nor enter it.
  lent.nic.port.namespace_fd = -1;
  lent.nic.port.namespace_path.clear();
  return lent;
}

void NicDevice::message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time now) {
  if (!config_.lab) return;
  const uint32_t stream = qpn - config_.parameters.first_qpn;
  const Record record{now,
                      Record::Kind::message,
                      index_,
                      stream,
                      {static_cast<double>(number), static_cast<double>(bytes), static_cast<double>(posted)}};
  if (!records_.push(record)) ++nic_.counters().untold_messages;
}

void NicDevice::stream_connected(uint32_t qpn, WorkStatus status, Time now) {
  const uint32_t stream = qpn - config_.parameters.first_qpn;
  records_.push({now, Record::Kind::stream, index_, stream, {static_cast<double>(status)}});
}

void NicDevice::tell_of_neighbour(uint32_t place, uint64_t mac) {
  records_.push({nic_.now(), Record::Kind::neighbour, index_, place, {static_cast<double>(mac)}});
}

void NicDevice::accept(const RxFrame& frame) {
  if (frame.stamp < nic_.now()) ++nic_.counters().stragglers;
  if (frame.offload.gso == Gso::none) {
    accept_packet(frame);
  } else {
    accept_super_frame(frame);
  }
}

// A super-frame of another kind than RoCEv2's is for the host's stack, or for nobody.
void NicDevice::accept_super_frame(const RxFrame& frame) {
  Offload offload = frame.offload;
  if (!check_offload(frame.data, frame.length, offload) || !is_roce_super_frame(frame.data, offload)) {
    if (stack_ != nullptr) return stack_->deliver_super_frame(frame);
    ++nic_.counters().rx_packets;
    nic_.counters().rx_bytes += frame.length;
    ++nic_.counters().drop_malformed;
    return;
  }
  // The port has lent the bytes, and does not look at them again.
  SuperFrameSlices slices(const_cast<uint8_t*>(frame.data), frame.length, offload);
  PacketMeta meta;
  uint32_t length = 0;
  uint32_t packets = 0;
  for (const uint8_t* data = slices.next(length); data != nullptr; data = slices.next(length)) {
    const bool known = meta.bth_offset != 0;
    const Refusal refusal = known ? classify_next_slice(data, length, meta) : classify_alone(frame, data, length, meta);
    if (++packets == 2 && refusal == Refusal::none && !icrc_ok(data, meta)) slices.hold_identification();
    receive(frame, data, length, meta, refusal, {.follows = known, .more = slices.more()});
  }
}

void NicDevice::receive(const RxFrame& frame, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                        InSuperFrame place) {
  const SoftNic::Disposition whose = nic_.receive(frame.stamp, data, length, meta, refusal, place);
  if (whose == SoftNic::Disposition::consumed) return;
  const bool heard = hear(frame, data, length, meta);
  if (whose == SoftNic::Disposition::stack) {
    stack_->deliver(frame, meta);
    if (!heard && !tells_unreachable(data, length, meta)) return;
    ++nic_.counters().rx_punted;
  }
  if (heard) return;
  if (!punted_.push(index_, 0, frame.stamp, std::span(data, length))) ++nic_.counters().drop_punt_full;
}

// True: it was about neighbours, or a ping.
bool NicDevice::hear(const RxFrame& frame, const uint8_t* data, uint32_t length, const PacketMeta& meta) {
  if (neighbours_ == nullptr) return false;
  PacketMeta present = meta;
  present.tagged = meta.tagged && !frame.vlan_stripped;
  return neighbours_->hear(frame.stamp, data, length, present);
}

bool NicDevice::send_own(PacketId id) {
  WirePort& port = ports_.front();
  if (port.unsent_bytes() > kMostUnsent) return false;
  port.send(pool_, id);
  return true;
}

void NicDevice::accept_packet(const RxFrame& frame) {
  const Time at = frame.stamp;
  PacketMeta meta;
  const Refusal refusal = classify_alone(frame, frame.data, frame.length, meta);
  meta.failure = frame.failure;
  if (!is_mac_control(meta.kind)) {
    if (frame.slowed != slowed_) [[unlikely]]
      nic_.slow(slowed_ = frame.slowed);
    return receive(frame, frame.data, frame.length, meta, refusal, {});
  }
  const bool known = read_mac_control(
      frame.data, frame.length, [&](uint8_t enable, const auto& quanta) { nic_.receive_pfc(at, enable, quanta); },
      [&](uint16_t quanta) { nic_.receive_pause(at, quanta); });
  if (!known) ++nic_.counters().rx_unsupported_op_phy;
}

void NicDevice::turn(Time horizon, Time now) {
  WirePort& port = ports_.front();
  latencies_.now = now;
  port.poll();
  nic_.skip_to(now - std::max(config_.arrears, port.port().capabilities().batch > 1 ? kCall : 0));
  nic_.set_crowded(port.crowded());
  // Work is taken after reading and before looking at frames: a receive that was posted before its message is there for it.
  if (applications_ != nullptr) applications_->take(now);
  if (stack_ == nullptr) {
    for (; port.next_arrival() <= horizon; port.pop()) {
      catch_up(port.next_arrival(), now);
      accept(port.front());
    }
  } else {
    accept_all(horizon, now);
  }
  port.give_back();
  catch_up(horizon, now);
  if (graph_ != nullptr && graph_->wakes(number_) <= horizon) graph_->wake(number_, horizon);
  nic_.advance(horizon);
  if (neighbours_ != nullptr) neighbours_->advance(horizon);
  collect();
  send_collected(horizon, now);
  if (applications_ != nullptr) {
    applications_->programs().tell_link(port.up());
    applications_->programs().publish();
  }
  if (stack_ != nullptr) stack_->flush(now);
}

// A late NIC's frames leave in pieces that caches have room for, and the peer has the first while the next is made.
void NicDevice::catch_up(Time until, Time now) {
  const uint64_t batch = ports_.front().port().capabilities().batch;
  for (Time piece = next_piece(); until - nic_.now() > piece && nic_.next_deadline() <= until; piece = next_piece()) {
    const Time at = nic_.now() + piece;
    nic_.advance(at);
    collect();
    if (collected_ >= std::max(kWorthSending * senders_, batch)) send_collected(at, now);
  }
}

// As many short frames as a super-frame may have take the host long enough, and are a small part of a piece.
Time NicDevice::next_piece() const {
  const uint64_t joined = kWorthSending * last_wire_bytes_;
  return (joined < kPiece / 4 ? time_on(nic_.line_rate(), joined) + 1 : piece_) * senders_;
}

// Collects the frames that have left the link since the last time.
void NicDevice::collect() {
  WirePort& port = ports_.front();
  const bool joins = port.port().capabilities().joins;
  PacketId last = kNoPacket;
  for (PacketId id = nic_.transmit(); id != kNoPacket; last = id, id = nic_.transmit()) {
    if (is_flow_control(pool_[id].meta.kind)) write_flow_control(pool_, id);
    ++collected_;
    const uint64_t to = load_be48(pool_.data(id));
    if (applications_ != nullptr && (to == config_.parameters.mac || (is_group(to) && !is_mac_control(pool_[id].meta.kind)))) {
      looped_.push_back(id);
    } else if (joins) {
      gathered_.push_back(id);
    } else {
      port.send(pool_, id);
    }
  }
  if (joins && last != kNoPacket) last_wire_bytes_ = wire_bytes(pool_[last].length);
}

// Sends to the port, and to this NIC itself, which gets it at `at`.
void NicDevice::send_collected(Time at, Time now) {
  WirePort& port = ports_.front();
  collected_ = 0;
  if (!gathered_.empty()) gather();
  if (!looped_.empty()) loop(at);
  if (port.unsent() == 0) return;
  port.flush(
      pool_, now, [&](PacketId id) { nic_.left(id); },
      [&](PacketId, bool down) {
        if (down) ++nic_.counters().tx_port_down;
      });
  nic_.hold(port.unsent_bytes() > kMostUnsent);
}

// Takes frames from the link and from the host's stack in the order of time.
void NicDevice::accept_all(Time horizon, Time now) {
  WirePort& link = ports_.front();
  ports_.back().poll();
  for (;;) {
    const Time from_link = link.next_arrival(), from_stack = stack_->next_arrival();
    if (std::min(from_link, from_stack) > horizon) return;
    if (from_stack < from_link) {
      stack_->accept();
      continue;
    }
    catch_up(from_link, now);
    accept(link.front());
    link.pop();
  }
}

// Queue pairs have taken turns. Their packets that leave now leave in a row, so that they can be joined.
void NicDevice::gather() {
  constexpr uint32_t kAhead = 256;
  const auto count = static_cast<uint32_t>(gathered_.size());
  const auto sender = [&](PacketId id) { return pool_[id].meta.flow_hash; };
  const uint32_t only = sender(gathered_.front());
  if (std::all_of(gathered_.begin(), gathered_.end(), [&](PacketId id) { return sender(id) == only; })) {
    for (const PacketId id : gathered_) ports_.front().send(pool_, id);
    senders_ = 1;
    return gathered_.clear();
  }
  next_gathered_.assign(count, count);
  ++gatherings_;
  senders_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t queue_pair = sender(gathered_[i]);
    if (queue_pair == 0) continue;
    Gathered& last = last_gathered_[queue_pair % last_gathered_.size()];
    if (last.gathering == gatherings_ && last.queue_pair == queue_pair) {
      next_gathered_[last.at] = i;
    } else {
      ++senders_;
    }
    last = {gatherings_, queue_pair, i};
  }
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = i; j < std::min(count, i + kAhead) && gathered_[j] != kNoPacket; j = next_gathered_[j]) {
      ports_.front().send(pool_, std::exchange(gathered_[j], kNoPacket));
    }
  }
  senders_ = std::max(senders_, 1u);
  gathered_.clear();
}

// Carries frames between two queue pairs of this NIC: no link brings them back. A frame for a group goes to others as well.
void NicDevice::loop(Time now) {
  for (const PacketId id : looped_) {
    PacketMeta meta;
    const Refusal refusal = classify(pool_.data(id), pool_[id].length, meta);
    const bool is_for_group = is_group(meta.destination_mac);
    if (!is_for_group || nic_.joined(pool_.data(id), meta)) nic_.receive(now, pool_.data(id), pool_[id].length, meta, refusal);
    if (is_for_group) {
      ports_.front().send(pool_, id);
      continue;
    }
    nic_.left(id);
    pool_.free(id);
  }
  looped_.clear();
}

void NicDevice::settle_counters() {
  nic_.observation().settle_counters();
  if (applications_ != nullptr) applications_->programs().count(nic_, &ports_.front());
}

Time NicDevice::next_deadline() {
  const Time neighbours = neighbours_ != nullptr ? neighbours_->next_deadline() : kNever;
  const Time graph = graph_ != nullptr ? graph_->wakes(number_) : kNever;
  return std::min({nic_.next_deadline(), ports_.front().next_deadline(), ports_.back().next_deadline(), neighbours, graph});
}

void NicDevice::stop_traffic(Time now) {
  for (uint32_t i = 0; i < nic_.streams(); ++i) {
    Time& stop = nic_.queue_pairs()[i].parameters.stop;
    stop = std::min(stop, now);
  }
}

void NicDevice::sample(Time at, SpscRing<Record>& ring) {
  for (uint32_t i = 0; i < nic_.streams(); ++i) {
    const QueuePair& qp = nic_.queue_pairs()[i];
    if (nic_.observation().controls(qp.parameters)) ring.push(sample_sender(nic_, i, at, index_, i));
    if (qp.counters.rx_packets > 0) ring.push(sample_receiver(qp.counters, at, index_, i));
  }
}

void NicDevice::register_counters(CounterBlock& block) {
  const CounterLabels device{{"device", config_.name}};
  block.add(nic_.counters(), device);
  block.add(nic_.transport_counters(), device);
  if (neighbours_ != nullptr) block.add(neighbours_->counters(), device);
  block.add(ports_.front().counters(), device);
  if (stack_ != nullptr) block.add(ports_.back().counters(), {{"device", config_.name}, {"port", config_.stack_port->name}});
  for (int p = 0; p < kPriorities; ++p) {
    block.add(nic_.counters(p), {{"device", config_.name}, {"priority", std::to_string(p)}});
  }
  std::vector<QueuePair>& queue_pairs = nic_.queue_pairs();
  for (size_t i = 0; i < nic_.streams(); ++i) {
    char qpn[16];
    std::snprintf(qpn, sizeof qpn, "0x%06x", queue_pairs[i].qpn);
    block.add(queue_pairs[i].counters, {{"device", config_.name}, {"qpn", qpn}, {"flow", config_.queue_pair_settings[i].name}});
  }
}

}  // namespace weir
