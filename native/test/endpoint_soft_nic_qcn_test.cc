// The soft NIC under QCN: rates follow CNMs, and flows are limited as such. endpoint_soft_nic_cnm_test.cc tests CNMs themselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "test/qcn_harness.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"

namespace weir::test {
namespace {

Rate rate_of(NicHarness& h, uint32_t index) { return h.nic.allowed_rate(h.nic.queue_pairs()[index]); }

// No recovery: rates stay where CNMs put them.
NicParameters steady_parameters(Rate rate) {
  NicParameters p = qcn_parameters(rate);
  qcn(p).rpg_time_reset = 0;
  qcn(p).rpg_byte_reset = 0;
  qcn(p).rpg_min_rate = 1'000;
  return p;
}

std::vector<QueuePairParameters> senders(uint32_t count) {
  std::vector<QueuePairParameters> list;
  for (uint32_t i = 0; i < count; ++i) list.push_back(flow_sender(0x1000 + i));
  return list;
}

uint64_t sent_by(NicHarness& h, uint32_t index) { return h.nic.queue_pairs()[index].counters.tx_wire_bytes; }

}  // namespace

TEST_CASE("soft nic, QCN: a CNM cuts the rate at once by its feedback, and packets keep to the rate") {
  NicHarness h(steady_parameters(k1G), {sender()});
  h.run(kMillisecond);
  CHECK(rate_of(h, 0) == k1G);
  h.receive(kMillisecond, cnm({.feedback = 32}));
  CHECK(rate_of(h, 0) == 750'000'000);
  h.receive(kMillisecond, cnm({.feedback = 63}));
  const auto rate = static_cast<Rate>(750'000'000 * (1 - 63.0 / 128));
  CHECK(rate_of(h, 0) == rate);
  CHECK(h.nic.counters().rp_cnm_handled == 2);
  CHECK(h.nic.counters().rp_cur_flows == 1);
  CHECK(h.nic.queue_pairs()[0].counters.cnp_handled == 2);
  h.frames.clear();
  h.run(2 * kMillisecond);
  REQUIRE(h.frames.size() > 10);
  for (size_t i = 3; i < h.frames.size(); ++i) {
    const double gap = wire_bytes(h.frames[i - 1].packet.length) * 8e9 / static_cast<double>(rate);
    const double shift = (wire_bytes(h.frames[i].packet.length) - wire_bytes(h.frames[i - 1].packet.length)) * 8.0;
    CHECK(std::abs(static_cast<double>(h.frames[i].at - h.frames[i - 1].at) - gap - shift) < 2);
  }
  h.nic.observation().settle_counters();
  CHECK(h.nic.counters(3).rp_port_pri_created_rps == 1);
  CHECK(h.nic.counters(3).rp_port_pri_centiseconds == 0);
  h.run(121 * kMillisecond);
  h.nic.observation().settle_counters();
  CHECK(h.nic.counters(3).rp_port_pri_centiseconds == 12);
  CHECK(h.nic.counters(4).rp_port_pri_centiseconds == 0);
}

TEST_CASE("soft nic, QCN: the timer raises the rate of a flow that waits, as its reaction point by itself") {
  NicParameters p = qcn_parameters(k1G);
  qcn(p).rpg_byte_reset = 0;
  NicHarness h(p, {sender()});
  h.run(kMillisecond);
  QcnReactionPoint reference;
  reference.configure(qcn(p), {.line_rate = k1G, .random = Random(1)});
  for (Time at = kMillisecond; at < 2 * kMillisecond; at += 100'000) {
    h.receive(at, cnm({.feedback = 63}));
    reference.on_cnm(at, 63);
  }
  for (Time at = 2 * kMillisecond; reference.limited(); at += kMillisecond) {
    REQUIRE(at < 10 * kSecond);
    h.run(at);
    reference.advance(at);
    const NicObservation::SenderSample sample = h.nic.observation().sender_sample(0, at);
    REQUIRE(sample.rate == static_cast<double>(reference.rate()));
    REQUIRE(sample.target_rate == static_cast<double>(reference.target_rate()));
    CHECK(sample.alpha == 0);
    h.frames.clear();
  }
  CHECK(rate_of(h, 0) == k1G);
  CHECK(h.nic.counters().rp_cur_flows == 0);
}

TEST_CASE("soft nic, QCN: the byte counter counts what the flow has sent") {
  NicParameters p = qcn_parameters(k1G);
  qcn(p).rpg_time_reset = 0;
  p.grouping.selection = FlowSelection::application;
  NicHarness h(p, senders(3));
  h.on_frame = [](const SentFrame&) {};
  h.run(kMillisecond);
  h.receive(kMillisecond, cnm({.feedback = 63}));
  const uint64_t before = sent_by(h, 0) + sent_by(h, 1) + sent_by(h, 2);
  const Rate cut = rate_of(h, 0);
  for (Time at = kMillisecond; rate_of(h, 0) == cut; at += 1'000) {
    REQUIRE(at < kSecond);
    h.run(at);
  }
  const uint64_t sent = sent_by(h, 0) + sent_by(h, 1) + sent_by(h, 2) - before;
  CHECK(sent >= 150'000);
  CHECK(sent < 150'000 + 2'000);
  CHECK(rate_of(h, 0) == (cut + k1G) / 2);
}

TEST_CASE("soft nic, QCN: data frames name their flow in a CN-TAG; others do not") {
  NicParameters p = qcn_parameters(k1G);
  std::vector<QueuePairParameters> pairs = senders(3);
  pairs[1].path.tagged = true;
  pairs[1].path.vlan_tci = 3 << 13 | 7;
  pairs[2].priority = 5;  // no CNPV
  for (const bool cn_tag : {true, false}) {
    p.grouping.cn_tag = cn_tag;
    NicHarness h(p, pairs);
    h.run(kMillisecond);
    uint32_t seen[3] = {};
    for (const SentFrame& f : h.frames) {
      const uint32_t index = f.meta.destination_qp - 0x1000;
      REQUIRE(index < 3);
      ++seen[index];
      REQUIRE(f.meta.kind == FrameKind::roce);
      REQUIRE(icrc_ok(f.bytes.data(), f.meta));
      REQUIRE(f.meta.cn_tagged == (cn_tag && index < 2));
      if (!f.meta.cn_tagged) continue;
      REQUIRE(f.meta.cn_flow == index + 1);
      const uint8_t* tag = f.bytes.data() + (index == 1 ? 16 : 12);
      REQUIRE(load_be16(tag) == 0x22e9);
      REQUIRE(load_be16(tag + 2) == index + 1);
      REQUIRE(load_be16(tag + 4) == kEthertypeIpv4);
      if (index == 1) REQUIRE(load_be16(f.bytes.data() + 12) == kEthertypeVlan);
    }
    for (const uint32_t count : seen) CHECK(count > 10);
  }
}

TEST_CASE("soft nic, QCN: the queue pairs of a flow share its rate in turns") {
  NicParameters p = steady_parameters(10 * k1G);
  p.grouping.selection = FlowSelection::application;
  std::vector<QueuePairParameters> pairs = senders(9);
  for (uint32_t i = 0; i < 8; ++i) pairs[i].application = 7;
  pairs[2].stop = 30 * kMillisecond;
  pairs[8].application = 8;
  NicHarness h(p, pairs);
  h.on_frame = [](const SentFrame&) {};
  h.run(kMillisecond);
  for (int i = 0; i < 4; ++i) h.receive(kMillisecond, cnm({.feedback = 63, .flow = 1}));
  const Rate rate = rate_of(h, 0);
  CHECK(rate < 700'000'000);
  CHECK(rate_of(h, 8) == 10 * k1G);
  std::vector<uint64_t> before;
  for (uint32_t i = 0; i < 9; ++i) before.push_back(sent_by(h, i));
  h.run(21 * kMillisecond);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint64_t share = sent_by(h, i) - before[i];
    sum += share;
    CHECK(std::abs(static_cast<double>(share) - static_cast<double>(rate) * 0.020 / 8 / 8) < 2'300);
  }
  CHECK(std::abs(static_cast<double>(sum) - static_cast<double>(rate) * 0.020 / 8) < 3'000);
  // The other flow has what is left.
  const double left = static_cast<double>(10 * k1G - rate) * 0.020 / 8;
  CHECK(static_cast<double>(sent_by(h, 8) - before[8]) > 0.99 * left);
  // One that stops leaves its share to the others, at once.
  h.run(30 * kMillisecond);
  CHECK(rate_of(h, 2) == 0);
  const uint64_t stopped = sent_by(h, 2);
  before.clear();
  for (uint32_t i = 0; i < 9; ++i) before.push_back(sent_by(h, i));
  h.run(50 * kMillisecond);
  CHECK(sent_by(h, 2) == stopped);
  for (const uint32_t i : {0u, 1u, 3u, 7u}) {
    CHECK(std::abs(static_cast<double>(sent_by(h, i) - before[i]) - static_cast<double>(rate) * 0.020 / 8 / 7) < 2'300);
  }
  CHECK(h.pool.available() + 1 >= h.pool.size());
}

TEST_CASE("soft nic, QCN: a queue pair's own cap holds within its flow, and leaves the rest to the others") {
  NicParameters p = steady_parameters(k1G);
  p.grouping.selection = FlowSelection::destination_mac;
  std::vector<QueuePairParameters> pairs = senders(2);
  pairs[0].rate_cap = 50'000'000;
  NicHarness h(p, pairs);
  h.on_frame = [](const SentFrame&) {};
  h.receive(kMillisecond, cnm({.feedback = 63}));
  const Rate rate = rate_of(h, 1);
  CHECK(rate_of(h, 0) == 50'000'000);
  const uint64_t before[] = {sent_by(h, 0), sent_by(h, 1)};
  h.run(41 * kMillisecond);
  CHECK(std::abs(static_cast<double>(sent_by(h, 0) - before[0]) - 50e6 * 0.040 / 8) < 3'000);
  CHECK(std::abs(static_cast<double>(sent_by(h, 1) - before[1]) - static_cast<double>(rate - 50'000'000) * 0.040 / 8) < 5'000);
}

TEST_CASE("soft nic, QCN: flows are selected by queue pair, application, destination or five-tuple") {
  std::vector<QueuePairParameters> pairs = senders(6);
  for (uint32_t i = 0; i < 6; ++i) {
    pairs[i].application = i / 3;
    pairs[i].path.destination_mac = kPeerMac + i / 2;
    pairs[i].path.udp_source_port = static_cast<uint16_t>(0xc000 + i % 3);
    pairs[i].path.destination_ip[3] = 2;
  }
  const auto flows = [&](FlowSelection selection) {
    NicParameters p = steady_parameters(k1G);
    p.grouping.selection = selection;
    NicHarness h(p, pairs);
    h.run(kMillisecond);
    std::vector<int> ids(6);
    for (const SentFrame& f : h.frames) ids[f.meta.destination_qp - 0x1000] = f.meta.cn_flow;
    return ids;
  };
  CHECK(flows(FlowSelection::queue_pair) == std::vector{1, 2, 3, 4, 5, 6});
  CHECK(flows(FlowSelection::application) == std::vector{1, 1, 1, 2, 2, 2});
  CHECK(flows(FlowSelection::destination_mac) == std::vector{1, 1, 2, 2, 3, 3});
  CHECK(flows(FlowSelection::five_tuple) == std::vector{1, 2, 3, 1, 2, 3});
}

TEST_CASE("soft nic, QCN: flows beyond the reaction points of their priority share those, priorities apart") {
  NicParameters p = steady_parameters(10 * k1G);
  p.grouping.priorities = 1 << 3 | 1 << 4;
  p.grouping.most = 4;
  std::vector<QueuePairParameters> pairs = senders(64);
  for (uint32_t i = 1; i < 64; i += 2) pairs[i].priority = 4;
  NicHarness h(p, pairs, 256);
  h.run(2 * kMillisecond);
  std::map<int, int> of_priority[2];
  for (const QueuePair& qp : h.nic.queue_pairs()) {
    REQUIRE(qp.counters.tx_packets > 0);
  }
  for (const SentFrame& f : h.frames) ++of_priority[f.meta.destination_qp & 1][f.meta.cn_flow];
  CHECK(of_priority[0].size() == 4);
  CHECK(of_priority[1].size() == 4);
  for (const auto& [flow, frames] : of_priority[0]) CHECK_FALSE(of_priority[1].contains(flow));
  // A CNM for one priority does not touch the other.
  h.receive(2 * kMillisecond, cnm({.feedback = 63, .flow = static_cast<uint16_t>(of_priority[1].begin()->first), .priority = 4}));
  CHECK(h.nic.counters().rp_cnm_handled == 1);
  CHECK(h.nic.counters(4).rp_port_pri_created_rps == 1);
  CHECK(h.nic.counters(3).rp_port_pri_created_rps == 0);
  for (uint32_t i = 0; i < 64; i += 2) CHECK(rate_of(h, i) == 10 * k1G);
}

TEST_CASE("soft nic, QCN: 4,096 flows, each at a rate of its own") {
  constexpr uint32_t kFlows = 4'096;
  NicHarness h(steady_parameters(100 * k1G), senders(kFlows));
  h.on_frame = [](const SentFrame&) {};
  h.run(1'000);
  // 100 Gb/s, halved some times and cut once more.
  const auto cuts = [](uint32_t i) { return 14 + i % 4; };
  for (uint32_t i = 0; i < kFlows; ++i) {
    const auto flow = static_cast<uint16_t>(i + 1);
    for (uint32_t n = 0; n < cuts(i); ++n) h.receive(2'000, cnm({.feedback = 63, .flow = flow}));
    h.receive(2'000, cnm({.feedback = static_cast<uint8_t>(1 + i % 63), .flow = flow}));
  }
  CHECK(h.nic.counters().rp_cur_flows == kFlows);
  CHECK(h.nic.counters().rp_cnm_handled == h.nic.counters().rx_packets);
  h.run(20 * kMillisecond);
  std::vector<uint64_t> before;
  for (uint32_t i = 0; i < kFlows; ++i) before.push_back(sent_by(h, i));
  h.run(120 * kMillisecond);
  double worst = 0;
  for (uint32_t i = 0; i < kFlows; ++i) {
    const double rate = 100e9 * std::pow(1 - 63.0 / 128, cuts(i)) * (1 - (1 + i % 63) / 128.0);
    const double sent = static_cast<double>(sent_by(h, i) - before[i]) * 8 / 0.1;
    worst = std::max(worst, std::abs(sent - rate) * 0.1 / 8);
  }
  CHECK(worst < 2 * 1'110);  // bytes, of two packets
  h.nic.observation().settle_counters();
  CHECK(h.nic.counters(3).rp_port_pri_centiseconds == kFlows * 12 - 1);
}

TEST_CASE("soft nic, QCN: a token bucket gives whole bytes at each tick, from a bucket of its depth") {
  NicParameters p = steady_parameters(k1G);
  p.grouping.limiter = Limiter::token_bucket;
  NicHarness h(p, {sender()});
  h.run(kMillisecond);
  CHECK(rate_of(h, 0) == k1G);
  const uint64_t unlimited = sent_by(h, 0);
  CHECK(static_cast<double>(unlimited) > 0.99 * 125'000);
  for (int i = 0; i < 5; ++i) h.receive(kMillisecond, cnm({.feedback = 63}));
  const double tokens = std::floor(static_cast<double>(rate_of(h, 0)) * 16e-6 / 8);
  h.frames.clear();
  h.run(101 * kMillisecond);
  uint64_t bytes = 0;
  for (const SentFrame& f : h.frames) bytes += wire_bytes(f.packet.length);
  CHECK(std::abs(static_cast<double>(bytes) - tokens * 100e-3 / 16e-6) < 4'200);
  // They leave at ticks, or when the link is free.
  for (size_t i = 4; i < h.frames.size(); ++i) CHECK((h.frames[i].at - wire_time(h.frames[i])) % 16'000 == 0);
}

TEST_CASE("soft nic, QCN: a second flow starts at the configured rate, and queue pairs that follow in a flow do not start anew") {
  NicParameters p = steady_parameters(k1G);
  p.line_rate_start = true;
  p.initial_rate = 100'000'000;
  p.grouping.selection = FlowSelection::application;
  std::vector<QueuePairParameters> pairs = senders(3);
  pairs[1].application = 1;
  pairs[1].start = kMillisecond;
  pairs[2].start = 2 * kMillisecond;
  NicHarness h(p, pairs);
  h.run(kMillisecond);
  CHECK(rate_of(h, 0) == k1G);
  CHECK(rate_of(h, 1) == 100'000'000);
  CHECK(h.nic.counters(3).rp_port_pri_created_rps == 0);
  h.receive(1'500'000, cnm({.feedback = 32}));
  h.run(3 * kMillisecond);
  CHECK(rate_of(h, 2) == 750'000'000);
}

TEST_CASE("soft nic, QCN: a pause holds back a whole flow, and what it missed is not made up for") {
  std::vector<QueuePairParameters> pairs = senders(4);
  NicParameters p = steady_parameters(k1G);
  p.grouping.selection = FlowSelection::destination_mac;
  NicHarness h(p, pairs);
  h.receive(kMillisecond, cnm({.feedback = 63}));
  h.run(2 * kMillisecond);
  h.pfc(2 * kMillisecond, 1 << 3, kMaxPauseQuanta);
  h.run(2 * kMillisecond + 100'000);
  h.frames.clear();
  h.run(10 * kMillisecond);
  CHECK(h.frames.empty());
  h.pfc(10 * kMillisecond, 1 << 3, 0);
  h.run(20 * kMillisecond);
  uint64_t bytes = 0;
  for (const SentFrame& f : h.frames) bytes += wire_bytes(f.packet.length);
  CHECK(std::abs(static_cast<double>(bytes) - static_cast<double>(rate_of(h, 0)) * 0.010 / 8) < 2'300);
}

TEST_CASE("soft nic, QCN: reconfigured, it takes other flows, and goes on sending under any congestion control") {
  NicParameters p = steady_parameters(k1G);
  std::vector<QueuePairParameters> pairs = senders(4);
  pairs[3].start = 50 * kMillisecond;
  NicHarness h(p, pairs);
  h.on_frame = [](const SentFrame&) {};
  h.receive(kMillisecond, cnm({.feedback = 63, .flow = 2}));
  Time now = kMillisecond;
  const auto goes_on = [&] {
    uint64_t before[3];
    for (uint32_t i = 0; i < 3; ++i) before[i] = sent_by(h, i);
    h.run(now += 2 * kMillisecond);
    for (uint32_t i = 0; i < 3; ++i) CHECK(sent_by(h, i) > before[i] + 10'000);
  };
  goes_on();
  qcn(p).rpg_ai_rate = 1;  // rates stay
  h.nic.reconfigure(p, pairs);
  CHECK(rate_of(h, 1) < 600'000'000);
  goes_on();
  p.grouping.selection = FlowSelection::application;
  h.nic.reconfigure(p, pairs);
  CHECK(rate_of(h, 1) == k1G);
  CHECK(h.nic.counters().rp_cur_flows == 0);
  goes_on();
  p.congestion = DcqcnParameters{};
  h.nic.reconfigure(p, pairs);
  goes_on();
  h.receive(now, h.cnp(1));
  CHECK(rate_of(h, 1) < k1G);
  CHECK(h.nic.counters().rp_cur_flows == 1);
  p.congestion = QcnParameters{};
  h.nic.reconfigure(p, pairs);
  CHECK(h.nic.counters().rp_cur_flows == 0);
  goes_on();
  h.run(now = 60 * kMillisecond);
  CHECK(sent_by(h, 3) > 0);
  goes_on();
}

TEST_CASE("soft nic, QCN: each priority has the parameters of its reaction point group, also after a reload") {
  NicParameters p = steady_parameters(k1G);
  p.grouping.priorities = 1 << 3 | 1 << 4;
  p.grouping.rpgs[4] = qcn(p);
  p.grouping.rpgs[4]->gd = 1.0 / 256;
  std::vector<QueuePairParameters> pairs = senders(2);
  pairs[1].priority = 4;
  NicHarness h(p, pairs);
  h.on_frame = [](const SentFrame&) {};
  h.run(kMillisecond);
  Time now = kMillisecond;
  const auto cut = [&](uint32_t index) {
    const Rate before = rate_of(h, index);
    h.receive(now += kMillisecond,
              cnm({.feedback = 32, .flow = static_cast<uint16_t>(index + 1), .priority = static_cast<uint8_t>(3 + index)}));
    return static_cast<double>(rate_of(h, index)) / static_cast<double>(before);
  };
  CHECK(cut(0) == doctest::Approx(0.75));
  CHECK(cut(1) == doctest::Approx(0.875));

  const Rate rate = rate_of(h, 1);
  p.grouping.rpgs[4]->gd = 1.0 / 64;
  p.grouping.rpgs[3] = qcn(p);
  p.grouping.rpgs[3]->gd = 1.0 / 512;
  h.nic.reconfigure(p, pairs);
  CHECK(rate_of(h, 1) == rate);
  CHECK(cut(0) == doctest::Approx(1 - 32.0 / 512));
  CHECK(cut(1) == doctest::Approx(0.5));

  p.grouping.rpgs = {};
  h.nic.reconfigure(p, pairs);
  CHECK(cut(0) == doctest::Approx(0.75));
  CHECK(cut(1) == doctest::Approx(0.75));
  CHECK(h.nic.counters(3).rp_port_pri_created_rps == 1);
  CHECK(h.nic.counters(4).rp_port_pri_created_rps == 1);
}

TEST_CASE("soft nic, QCN: parameters of a group are checked as those of all") {
  NicParameters p = qcn_parameters(k1G);
  p.grouping.rpgs[5] = qcn(p);
  p.grouping.rpgs[5]->gd = 2;
  CHECK_THROWS_AS(NicHarness(p, senders(1)), NativeError);
}

TEST_CASE("flow table: flows of one priority leave another its share of identifiers") {
  constexpr uint32_t kFlows = FlowTable::kMost + 2;
  NicParameters p;
  p.rate = k1G;
  p.grouping.priorities = 1 << 2 | 1 << 3;
  p.grouping.most = FlowTable::kMost;
  p.congestion = QcnParameters{};
  NicCounters counters;
  FlowTable flows(p, kFlows, 0, counters);
  QueuePairParameters sender;
  sender.priority = 3;
  QueuePair qp(sender);
  for (uint32_t i = 0; i + 1 < kFlows; ++i) {
    qp.qpn = i;
    flows.bind(i, qp, 0);
  }
  CHECK(flows.size() == kFlows + FlowTable::kMost / 2);
  qp.parameters.priority = 2;
  flows.bind(kFlows - 1, qp, 0);
  REQUIRE(flows.flow_id(flows.group_of(kFlows - 1)) == FlowTable::kMost / 2 + 1);
  CHECK(flows.priority_of(flows.group_of(kFlows - 1)) == 2);
}

}  // namespace weir::test
