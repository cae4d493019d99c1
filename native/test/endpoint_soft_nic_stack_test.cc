// Frames that the host's own stack sends by the soft NIC: they share priorities, pauses, rates and the link with queue pairs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/qcn_harness.h"
#include "test/stack_frames.h"
#include "wire/carried.h"

namespace weir::test {
namespace {

constexpr uint8_t kRoceDscp = 26;  // priority 3

NicParameters with_stack(NicParameters p, uint32_t most = 1 << 20) {
  p.stack_queue = most;
  p.congestion = CongestionParameters{};
  return p;
}

struct StackNic : NicHarness {
  explicit StackNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& pairs = {}, uint32_t packets = 2'048)
      : NicHarness(parameters, pairs, packets) {}

  void send(Time now, const TcpShape& shape) { send(now, finished_tcp(shape)); }
  void send(Time now, const std::vector<uint8_t>& bytes) {
    if (now > nic.now()) run(now);
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id].reset();
    pool[id].length = static_cast<uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), pool.data(id));
    classify(pool.data(id), pool[id].length, pool[id].meta);
    nic.send_for_stack(now, id);
  }
  // Sends as many as that, one behind the other.
  void send_many(Time now, TcpShape shape, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, shape.sequence += shape.payload) send(now, shape);
  }
  uint64_t wire_bytes_of(const SentFrame& frame) const { return wire_bytes(frame.packet.length); }
  // Counts the frames sent between two times that `is` names.
  template <class Is>
  uint64_t sent(Time from, Time to, Is is) const {
    uint64_t sum = 0;
    for (const SentFrame& frame : frames) {
      if (frame.at > from && frame.at <= to && is(frame)) sum += wire_bytes(frame.packet.length);
    }
    return sum;
  }
};

bool is_tcp(const SentFrame& frame) { return frame.meta.kind == FrameKind::other; }
bool is_roce(const SentFrame& frame) { return frame.meta.kind == FrameKind::roce; }
// Port of a flow that has another queue than port 40,000 has.
const uint16_t kOtherPort = [] {
  const auto queue = [](uint16_t port) {
    PacketMeta meta;
    const auto frame = finished_tcp({.port = port, .dscp = kRoceDscp});
    classify(frame.data(), static_cast<uint32_t>(frame.size()), meta);
    return StackQueues::queue_of(3, meta.flow_hash);
  };
  uint16_t port = 40'001;
  while (queue(port) == queue(40'000)) ++port;
  return port;
}();

uint16_t tcp_port(const SentFrame& frame) { return load_be16(frame.bytes.data() + kTcpAt); }

}  // namespace

TEST_CASE("soft nic, stack: frames leave as they are, in order, no faster than the link, and are counted") {
  StackNic h(with_stack(nic_parameters(k1G)));
  std::vector<uint8_t> arp(kMinimumFrame);
  store_ethernet(arp.data(), {.destination_mac = 0xffffffffffff, .source_mac = kNicMac}, kEthertypeArp);
  h.send(1'000, arp);
  h.send_many(1'000, {.dscp = kRoceDscp}, 3);
  h.run(kMillisecond);
  REQUIRE(h.frames.size() == 4);
  // The first went as soon as it came; of what waited then the weights of priorities 0 and 3 have nothing to choose.
  CHECK(h.frames[0].bytes == arp);
  Time free = 1'000;
  for (size_t i = 0; i < 4; ++i) {
    free += wire_time(h.frames[i]);
    CHECK(h.frames[i].at == free);
    if (i > 0) CHECK(h.frames[i].bytes == finished_tcp({.dscp = kRoceDscp, .sequence = 1'000 * static_cast<uint32_t>(i - 1)}));
  }
  CHECK(h.nic.counters().stack_tx_packets == 4);
  CHECK(h.nic.counters(0).tx_prio_stack_packets == 1);
  CHECK(h.nic.counters(3).tx_prio_stack_packets == 3);
  CHECK(h.nic.counters(3).tx_prio_stack_bytes == 3 * 1'054);
  CHECK(h.nic.counters(3).tx_prio_packets == 3);
  CHECK(h.nic.counters().tx_packets == 4);
  CHECK(h.pool.available() == h.pool.size());
}

TEST_CASE("soft nic, stack: priorities share by the scheduler, whoever sends at them") {
  for (const bool strict : {false, true}) {
    NicParameters p = with_stack(nic_parameters(k1G));
    if (strict) p.scheduler.strict = 1 << 5;
    p.scheduler.weights[5] = 3;
    p.priority_map.dscp[40] = 5;
    StackNic h(p, {sender()});
    h.send_many(0, {.dscp = 40}, 300);
    h.run(2 * kMillisecond);
    const auto tcp = static_cast<double>(h.sent(0, 2 * kMillisecond, is_tcp));
    const auto roce = static_cast<double>(h.sent(0, 2 * kMillisecond, is_roce));
    // The link is never idle.
    CHECK(tcp + roce > 0.99 * 250'000);
    CHECK(tcp + roce <= 250'000);
    if (strict) {
      CHECK(roce < 3'000);  // those that were on the link when the first came
    } else {
      CHECK(tcp / roce == doctest::Approx(3).epsilon(0.05));
    }
  }
}

TEST_CASE("soft nic, stack: in one priority its flows take turns with queue pairs, each as one of them") {
  StackNic h(with_stack(nic_parameters(k1G), 1 << 22), {sender(0x21), sender(0x22)});
  h.send_many(0, {.port = 40'000, .dscp = kRoceDscp}, 250);
  h.send_many(0, {.port = kOtherPort, .dscp = kRoceDscp}, 250);
  h.run(2 * kMillisecond);
  const auto share = [&](auto is) { return std::count_if(h.frames.begin(), h.frames.end(), is); };
  const auto all = static_cast<double>(h.frames.size());
  for (const uint16_t port : {uint16_t{40'000}, kOtherPort}) {
    const auto own = [=](const SentFrame& f) { return is_tcp(f) && tcp_port(f) == port; };
    CHECK(static_cast<double>(share(own)) / all == doctest::Approx(0.25).epsilon(0.03));
  }
  for (const uint32_t qp : {0x21u, 0x22u}) {
    const auto own = [=](const SentFrame& f) { return is_roce(f) && f.bth.destination_qp == qp; };
    CHECK(static_cast<double>(share(own)) / all == doctest::Approx(0.25).epsilon(0.03));
  }
}

TEST_CASE("soft nic, stack: a pause of its priority holds it, and nothing else") {
  NicParameters p = with_stack(nic_parameters(k1G));
  p.pfc_priorities = 1 << 0 | 1 << 3;
  StackNic h(p, {sender()});
  h.pfc(0, 1 << 0, 65'535);
  h.send_many(0, {}, 10);
  h.run(kMillisecond);
  CHECK(h.sent(0, kMillisecond, is_tcp) == 0);
  CHECK(h.sent(0, kMillisecond, is_roce) > 120'000);
  h.pfc(kMillisecond, 1 << 3, 65'535);
  h.pfc(kMillisecond, 1 << 0, 0);
  h.run(2 * kMillisecond);
  CHECK(h.nic.counters(0).tx_prio_stack_packets == 10);
  CHECK(h.sent(kMillisecond + 20'000, 2 * kMillisecond, is_roce) == 0);
}

TEST_CASE("soft nic, stack: a priority takes so much memory and no more, and what is dropped is counted") {
  StackNic h(with_stack(nic_parameters(k1G), 10 * (4'096 + 128)));
  h.pfc(0, 0, 0);
  h.nic.hold(true);
  h.send_many(0, {.payload = 10}, 25);
  h.send_many(0, {.dscp = kRoceDscp}, 3);
  CHECK(h.nic.counters(0).tx_prio_stack_discard == 15);
  CHECK(h.nic.counters(3).tx_prio_stack_discard == 0);
  // Another flow has room, at the cost of the one that has most, which loses its oldest.
  h.send_many(0, {.port = kOtherPort, .payload = 11}, 8);
  CHECK(h.nic.counters(0).tx_prio_stack_discard == 23);
  h.nic.hold(false);
  h.run(kMillisecond);
  CHECK(h.nic.counters(0).tx_prio_stack_packets == 10);
  CHECK(h.nic.counters().stack_tx_packets == 36);
  CHECK(h.frames.size() == 13);
  std::vector<uint32_t> kept;
  for (const SentFrame& f : h.frames) {
    if (is_tcp(f) && tcp_port(f) == 40'000 && f.meta.dscp == 0) kept.push_back(load_be32(f.bytes.data() + kTcpAt + 4));
  }
  CHECK(kept == std::vector<uint32_t>{50, 60, 70, 80, 90});
  h.send_many(kMillisecond, {.payload = 10}, 10);
  h.run(2 * kMillisecond);
  CHECK(h.frames.size() == 23);
  CHECK(h.pool.available() == h.pool.size());
}

TEST_CASE("soft nic, stack: what is not for a queue pair is the stack's, MAC control and RoCEv2 are not") {
  StackNic h(with_stack(nic_parameters(k1G)), {sender()});
  const auto tcp = finished_tcp({.to = kNicMac, .from = kPeerMac});
  CHECK(h.receive(0, tcp) == SoftNic::Disposition::stack);
  CHECK(h.receive(0, finished_tcp({.to = 0xffffffffffff, .from = kPeerMac})) == SoftNic::Disposition::stack);
  CHECK(h.receive(0, finished_tcp({.to = kPeerMac, .from = kSwitchMac})) == SoftNic::Disposition::consumed);
  CHECK(h.receive(0, h.data(0, 2, 7)) == SoftNic::Disposition::consumed);
  CHECK(h.receive(0, cnm({})) == SoftNic::Disposition::consumed);
  CHECK(h.nic.counters().drop_not_for_us == 1);
  CHECK(h.nic.counters().drop_unknown_qp == 1);
  CHECK(h.nic.counters().rx_punted == 0);
  StackNic without(nic_parameters(k1G), {sender()});
  CHECK(without.receive(0, tcp) == SoftNic::Disposition::punt);
}

TEST_CASE("soft nic, stack, QCN: a CNM holds the flow of its five-tuple, by CN-TAG or by what it encapsulates") {
  for (const bool cn_tag : {true, false}) {
    NicParameters p = qcn_parameters(k1G);
    p.stack_queue = 1 << 21;
    p.grouping.cn_tag = cn_tag;
    qcn(p).rpg_time_reset = 0;
    qcn(p).rpg_byte_reset = 0;
    StackNic h(p, {sender()});
    h.send_many(0, {.port = 40'000, .dscp = kRoceDscp}, 200);
    h.send_many(0, {.port = kOtherPort, .dscp = kRoceDscp}, 200);
    h.send_many(0, {}, 1);  // at priority 0, which is no CNPV
    h.run(kMillisecond);
    const auto first =
        std::find_if(h.frames.begin(), h.frames.end(), [](const SentFrame& f) { return is_tcp(f) && f.meta.dscp > 0; });
    REQUIRE(first != h.frames.end());
    CHECK(first->meta.cn_tagged == cn_tag);
    for (const SentFrame& f : h.frames) {
      if (f.meta.dscp == 0) CHECK(!f.meta.cn_tagged);
    }
    CnmShape shape{.feedback = 63, .flow = std::nullopt};
    if (cn_tag) shape.flow = first->meta.cn_flow;
    const auto plain = finished_tcp({.port = 40'000, .dscp = kRoceDscp});
    const uint16_t slow = cn_tag ? load_be16(first->bytes.data() + kTcpAt + kCnTag) : uint16_t{40'000};
    if (!cn_tag) shape.msdu = {plain.data() + 12, 26};
    for (int i = 0; i < 3; ++i) h.receive(kMillisecond, cnm(shape));
    CHECK(h.nic.counters().rp_cnm_handled == 3);
    CHECK(h.nic.counters().rp_cur_flows == 1);
    const Time from = kMillisecond + 100'000, to = 3 * kMillisecond;
    h.run(to);
    const auto of_port = [&](uint16_t port) {
      return h.sent(from, to, [&](const SentFrame& f) {
        return is_tcp(f) && load_be16(f.bytes.data() + kTcpAt + (f.meta.cn_tagged ? kCnTag : 0)) == port;
      });
    };
    // (1 - 63/128)^3 of the link, and the other flow shares the rest with the queue pair.
    const double held = 1e9 * (65.0 / 128) * (65.0 / 128) * (65.0 / 128) / 8 * static_cast<double>(to - from) / 1e9;
    CHECK(static_cast<double>(of_port(slow)) == doctest::Approx(held).epsilon(0.05));
    CHECK(of_port(slow == 40'000 ? kOtherPort : 40'000) > 1.5 * held);
    h.nic.observation().settle_counters();
    CHECK(h.nic.counters(3).rp_port_pri_created_rps == 1);
    if (cn_tag) continue;
    // A five-tuple of which nothing was sent, RoCEv2 and what does not tell.
    const auto other = finished_tcp({.port = 40'009, .dscp = kRoceDscp});
    const auto whose = [&](std::span<const uint8_t> msdu) {
      shape.msdu = msdu;
      h.receive(to, cnm(shape));
    };
    whose({other.data() + 12, 26});
    CHECK(h.nic.counters().rp_cnm_unknown_flow == 1);
    whose({other.data() + 12, 20});
    CHECK(h.nic.counters().rp_cnm_ambiguous == 1);
    const auto roce = std::find_if(h.frames.begin(), h.frames.end(), is_roce);
    whose({roce->bytes.data() + 12, 42});
    CHECK(h.nic.counters().rp_cur_flows == 2);
    CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) < k1G);
  }
}

TEST_CASE("soft nic, stack, QCN: another algorithm takes over what waits") {
  NicParameters p = qcn_parameters(k1G);
  p.stack_queue = 1 << 21;
  StackNic h(p);
  h.send_many(0, {.dscp = kRoceDscp}, 200);
  h.run(100'000);
  for (int i = 0; i < 12; ++i) h.receive(100'000, cnm({.feedback = 63, .flow = 1}));
  h.run(kMillisecond);
  const uint64_t before = h.nic.counters(3).tx_prio_stack_packets;
  CHECK(before < 40);
  NicParameters none = p;
  none.congestion = CongestionParameters{};
  h.nic.reconfigure(none, {});
  h.run(2 * kMillisecond);
  CHECK(h.nic.counters(3).tx_prio_stack_packets > before + 100);
  h.nic.reconfigure(p, {});
  h.run(4 * kMillisecond);
  CHECK(h.nic.counters(3).tx_prio_stack_packets == 200);
  CHECK(h.pool.available() == h.pool.size());
}

}  // namespace weir::test
