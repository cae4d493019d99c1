// Hostile frames, made of the input's bytes, to a NIC whose queue pairs stream, as those of labs and of `weir nic`: under DCQCN,
// QCN or neither, with a host that takes data at its own pace. Its frames are whole and no faster than the link, rates and alpha
// stay within their bounds, and when all has ended every packet is at home.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "endpoint/wire_nic.h"
#include "fuzz/input.h"
#include "fuzz/nic.h"
#include "transport/opcode.h"
#include "transport/psn.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/mac_control.h"
#include "wire/qcn.h"

namespace {

using namespace weir;
using fuzz::Input;
using fuzz::kNicMac;
using fuzz::kPeerMac;
using fuzz::kPeerQpn;
using fuzz::path;
using fuzz::require;

constexpr uint64_t kSwitchMac = 0x0200000000fe;
constexpr Rate kRate = 10'000'000'000;
constexpr uint32_t kMtu = 256;
constexpr uint32_t kPackets = 64;
// Four that send, of which one is reliable, and one that only receives of either kind; then one of each kind of reliable ones
// that begin again (those of `weir nic`).
constexpr size_t kPairs = 8;
constexpr size_t kBeginAgain = 6;  // queue pairs from this one on may begin again
constexpr Time kLongest = 60 * kSecond;
constexpr uint64_t kMostEvents = 2'000'000;

NicParameters nic_parameters(Input& in) {
  NicParameters p;
  p.rate = kRate;
  p.mac = kNicMac;
  p.trimmed_dscp = fuzz::kTrimmedDscp;
  const uint8_t style = in.byte();
  DcqcnParameters dcqcn;
  dcqcn.form = style & 4 ? DcqcnParameters::Form::slotted : DcqcnParameters::Form::paper;
  dcqcn.clamp_tgt_rate = style & 8;
  dcqcn.initial_alpha_value = style & 16 ? 0.5 : 1;
  dcqcn.rpg_byte_reset = 20'000;
  p.line_rate_start = style & 32;
  p.initial_rate = style & 64 ? 50'000'000 : 0;
  p.cnp_priority = style & 128 ? 3 : 6;
  const uint8_t groups = in.byte();
  QcnParameters qcn;
  qcn.variant = static_cast<QcnParameters::Variant>(groups % 3);
  qcn.rpg_time_reset = 100 * kMicrosecond;
  p.grouping.priorities = groups & 4 ? 0x7f : 1 << 3;
  p.grouping.selection = static_cast<FlowSelection>((groups >> 3) % 4);
  p.grouping.most = groups & 32 ? 2 : 16;
  p.grouping.cn_tag = groups & 64;
  p.grouping.cnms_by_ip = groups % 7 > 4;
  p.grouping.limiter = groups & 128 ? Limiter::token_bucket : Limiter::pacer;
  const uint8_t host = in.byte();
  dcqcn.alpha_decays_at_line_rate = host & 16;
  dcqcn.increase_restarts_counters = groups & 1;
  dcqcn.stage_by_increases = groups & 2;
  dcqcn.increase_raises_rate = groups & 8;
  dcqcn.hyper_increase_scales = !dcqcn.increase_raises_rate;
  const CongestionParameters controls[] = {dcqcn, qcn, CongestionControl::Parameters{}, DctcpParameters{}};
  p.congestion = controls[(style + (host >> 5)) % 4];
  p.receive_buffer.drain = host % 4 * Rate{100'000'000};
  p.receive_buffer.size = 10'000;
  p.receive_buffer.xoff = 4'000;
  p.receive_buffer.xon = 2'000;
  p.pfc_priorities = host & 4 ? 0xff : 1 << 3;
  p.scheduler.strict = host & 8 ? 0xff : 1 << 6;
  for (size_t dscp = 0; dscp < p.priority_map.dscp.size(); ++dscp) p.priority_map.dscp[dscp] = dscp % kPriorities;
  return p;
}

std::vector<QueuePairParameters> queue_pairs(Input& in) {
  std::vector<QueuePairParameters> list(kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    QueuePairParameters& qp = list[i];
    const uint8_t style = in.byte();
    qp.remote_qpn = kPeerQpn + static_cast<uint32_t>(i);
    qp.path = path(kNicMac, kPeerMac);
    qp.priority = style & 1 ? 0 : 3;
    qp.start = i < 4 || i == kBeginAgain ? (style >> 1) % 4 * 10 * kMicrosecond : kNever;
    qp.rate_cap = style & 8 ? 300'000'000 : 0;
    qp.application = style >> 4 & 1;
    qp.reliable = i == 3 || i >= 5;
    if (i >= kBeginAgain) qp.connection_seed = style | 1;
    qp.transport.recovery = style & 32 ? LossRecovery::selective_repeat : LossRecovery::go_back_n;
    qp.transport.trim_naks = (style & 32) != 0;
    qp.transport.timeout = 8;
    qp.transport.retry_count = 3;
    qp.stream.operation = style & 64 ? Operation::send : Operation::write;
    qp.stream.path_mtu = qp.transport.path_mtu = kMtu;
    qp.stream.message_bytes = style & 128 ? 100 : 2'000;
    qp.stream.first_psn = kPsnMask - 3;
  }
  return list;
}

class World {
 public:
  explicit World(Input& in)
      : parameters_(nic_parameters(in)),
        pairs_(queue_pairs(in)),
        pool_(kPackets, kMaxHeaders + 4'096),
        nic_(parameters_, pairs_, pool_) {
    expected_.fill(kPsnMask - 3);
  }

  void run(Input in) {
    while (!in.empty()) act(in);
    nic_.hold(false);
    for (QueuePair& qp : nic_.queue_pairs()) qp.parameters.stop = nic_.now();
    live_until(nic_.now() + kLongest);
    require(pool_.available() == kPackets);
  }

 private:
  void act(Input& in) {
    const uint8_t what = in.byte();
    const uint32_t i = in.byte() % kPairs;
    switch (what % 16) {
      case 0:
        live_until(nic_.now() + (Time{1} << in.byte() % 18));
        break;
      case 1: {
        std::array<uint16_t, kPriorities> quanta{};
        const uint8_t enable = in.byte();
        for (uint16_t& one : quanta) one = in.byte() & 1 ? static_cast<uint16_t>(in.number(2) % 2'000) : 0;
        nic_.receive_pfc(nic_.now(), enable, quanta);
        break;
      }
      case 2:
        nic_.receive_pause(nic_.now(), static_cast<uint16_t>(in.number(2) % 2'000));
        break;
      case 3:
        reconfigure(in);
        break;
      case 4:
        nic_.set_crowded(in.byte() & 1);
        nic_.hold(in.byte() & 1);
        nic_.skip_to(nic_.now() + in.byte() * 100);
        break;
      case 5:
        receive(in.take(in.number(2)));  // word for word
        break;
      case 6:
      case 7:
        receive(damaged(in, cnp(i)));
        break;
      case 8:
      case 9:
        receive(damaged(in, cnm(in)));
        break;
      default:
        receive(damaged(in, packet(in, i)));
    }
    collect();
    look();
  }

  // Rate, addresses and queue pairs stay as they are.
  void reconfigure(Input& in) {
    if (in.byte() % 4 != 0) return;
    parameters_ = nic_parameters(in);
    for (QueuePairParameters& qp : pairs_) qp.rate_cap = in.byte() & 1 ? 200'000'000 : 0;
    nic_.reconfigure(parameters_, pairs_);
  }

  std::vector<uint8_t> cnp(uint32_t i) const {
    std::vector<uint8_t> bytes(kMaxHeaders);
    bytes.resize(RoceTemplate(path(kPeerMac, kNicMac)).build_cnp(bytes.data(), nic_.state().parameters.first_qpn + i, 48, 6));
    return bytes;
  }

  // Is about a flow that there may be, or about none.
  std::vector<uint8_t> cnm(Input& in) const {
    const uint8_t style = in.byte();
    CongestionNotification notification;
    notification.quantized_feedback = in.byte() % 64;
    notification.priority = style & 1 ? in.byte() % kPriorities : 3;
    notification.destination_mac = style & 2 ? in.number(6) : kPeerMac;
    const auto msdu = in.take(style & 4 ? 64 : 0);
    notification.msdu = msdu;
    LinkHeader envelope;
    envelope.destination_mac = kNicMac;
    envelope.source_mac = kSwitchMac;
    envelope.tagged = style & 8;
    envelope.vlan_tci = 6 << 13;
    if (style & 16) envelope.cn_flow = static_cast<uint16_t>(in.byte() % 20);
    std::vector<uint8_t> bytes(kCnmMaxLength);
    bytes.resize(build_cnm(bytes.data(), envelope, notification));
    return style & 32 ? by_ip(in, envelope, notification) : bytes;
  }

  // The same as a datagram, about a packet to one of the peer's queue pairs.
  std::vector<uint8_t> by_ip(Input& in, const LinkHeader& envelope, CongestionNotification notification) const {
    DataHeader header;
    header.opcode = 0x24;
    header.destination_qp = kPeerQpn + in.byte() % kPairs;
    std::vector<uint8_t> sampled(kMaxHeaders + 4);
    const uint8_t payload[4] = {};
    RoceTemplate(path(kNicMac, kPeerMac)).build_data(sampled.data(), header, payload, sizeof payload);
    notification.msdu = std::span(sampled).subspan(12, known_by(4));
    PacketPool pool(1, kTelemetryStride);
    const PacketId id = pool.allocate();
    pool[id].reset();
    pool[id].length = build_cnm(pool.data(id), envelope, notification);
    require(wrap_cnm(pool, id, {.version = 4, .bytes = {10, 9, 0, 1}}, 48, 64));
    return {pool.data(id), pool.data(id) + pool[id].length};
  }

  // A request or an answer, mostly with the PSN that comes next.
  std::vector<uint8_t> packet(Input& in, uint32_t i) {
    const uint8_t style = in.byte();
    DataHeader h;
    const bool answer = pairs_[i].reliable && (style & 1) != 0;
    h.opcode = answer ? kOpcodeRcAcknowledge : in.byte() % 0x18;
    h.destination_qp = nic_.state().parameters.first_qpn + i;
    h.psn = answer ? sent_[i] : expected_[i];
    if (style & 2) h.psn = psn_add(h.psn, static_cast<uint32_t>(static_cast<int8_t>(in.byte())) & kPsnMask);
    h.ack_request = style & 4;
    const bool opens = i >= kBeginAgain && (style & 64) != 0;
    if (opens) h.opcode = kOpcodeRcWriteOnlyImmediate;
    if (opens) h.immediate = style >> 7;
    h.aeth = {static_cast<uint8_t>(style & 8 ? in.byte() : 0x1f), static_cast<uint32_t>(in.number(1))};
    h.reth = {in.number(2), static_cast<uint32_t>(in.number(1)), static_cast<uint32_t>(in.number(2))};
    if (opens) h.reth = {};
    const OpcodeShape request = opcode_shape(h.opcode);
    const uint32_t some = opens ? 0 : in.byte();
    const uint32_t length = request.kind == RequestKind::none ? (style & 16 ? 32 : 0) : request.last ? some : kMtu;
    if (!answer) expected_[i] = psn_add(h.psn, 1);
    RocePath from = path(kPeerMac, kNicMac);
    from.ecn = style & 32 ? 3 : 2;
    if (in.byte() % 8 == 7) from.dscp = fuzz::kTrimmedDscp;
    const std::vector<uint8_t> payload(length, style);
    std::vector<uint8_t> bytes(kMaxHeaders + length);
    bytes.resize(RoceTemplate(from).build_data(bytes.data(), h, payload.data(), length));
    return bytes;
  }

  // Sometimes changed or cut short; then mostly with an ICRC that is right all the same.
  static std::vector<uint8_t> damaged(Input& in, std::vector<uint8_t> bytes) {
    const uint8_t damage = in.byte();
    for (int n = damage & 7; n > 4; --n) {
      uint8_t& byte = bytes[in.number(2) % bytes.size()];
      byte = static_cast<uint8_t>(byte ^ in.byte());
    }
    if ((damage & 0xf8) == 0x10) bytes.resize(in.number(2) % bytes.size());
    PacketMeta meta;
    const bool whole = classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none && meta.bth_offset > 0;
    if (whole && meta.ip_version == 4 && (damage & 0xf8) != 0x08) {
      const uint32_t end = load_be16(bytes.data() + meta.l3_offset + 2) + uint32_t{meta.l3_offset};
      write_icrc(bytes.data(), meta.l3_offset, end - kIcrc);
    }
    return bytes;
  }

  // Receives as the device of a worker does it, from memory that ends where the frame does.
  void receive(std::span<const uint8_t> frame) {
    const std::vector<uint8_t> bytes(frame.begin(), frame.end());
    const auto length = static_cast<uint32_t>(bytes.size());
    PacketMeta meta;
    const Refusal refusal = classify(bytes.data(), length, meta);
    PfcFrame pfc;
    uint16_t quanta = 0;
    if (parse_pfc(bytes.data(), length, pfc)) return nic_.receive_pfc(nic_.now(), pfc.enable, pfc.quanta);
    if (parse_pause(bytes.data(), length, quanta)) return nic_.receive_pause(nic_.now(), quanta);
    if (meta.kind == FrameKind::mac_control) return;
    nic_.receive(nic_.now(), bytes.data(), length, meta, refusal);
  }

  void live_until(Time until) {
    uint64_t events = 0;
    for (Time at = nic_.next_deadline(); at <= until; at = nic_.next_deadline()) {
      require(++events < kMostEvents);
      nic_.advance(at);
      collect();
    }
    nic_.advance(until);
    collect();
  }

  void collect() {
    for (PacketId id = nic_.transmit(); id != kNoPacket; id = nic_.transmit()) {
      const Packet& packet = pool_[id];
      // One frame after the other: each takes its time on the link.
      const uint32_t on_link = wire_bytes(packet.meta.kind == FrameKind::pfc ? kMinimumFrame : packet.length);
      require(packet.departs >= link_free_ + static_cast<Time>(on_link) * 8 * kSecond / kRate - 1);
      link_free_ = packet.departs;
      if (packet.meta.kind != FrameKind::pfc) check_sent(pool_.data(id), packet.length);
      nic_.left(id);
      pool_.free(id);
    }
  }
  void check_sent(const uint8_t* bytes, uint32_t length) {
    PacketMeta meta;
    require(classify(bytes, length, meta) == Refusal::none && icrc_ok(bytes, meta));
    require(meta.source_mac == kNicMac && meta.destination_mac == kPeerMac);
    const uint32_t i = meta.destination_qp - kPeerQpn;
    require(i < kPairs);
    if (opcode_shape(meta.opcode).kind != RequestKind::none) sent_[i] = meta.psn;
  }

  void look() {
    nic_.observation().settle_counters();
    for (uint32_t i = 0; i < kPairs; ++i) {
      const NicObservation::SenderSample sample = nic_.observation().sender_sample(i, nic_.now());
      require(sample.rate >= 0 && sample.rate <= kRate && sample.target_rate >= 0 && sample.target_rate <= kRate);
      require(sample.alpha >= 0 && sample.alpha <= 1 && sample.window >= 0);
    }
  }

  NicParameters parameters_;
  std::vector<QueuePairParameters> pairs_;
  PacketPool pool_;
  WireNic nic_;
  Time link_free_ = 0;
  std::array<uint32_t, kPairs> expected_{};  // the PSN that a queue pair expects, if it took what came before
  std::array<uint32_t, kPairs> sent_{};      // the PSN of its latest request
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in({data, size});
  std::make_unique<World>(in)->run(in);
  return 0;
}
