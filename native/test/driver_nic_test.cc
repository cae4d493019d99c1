// A NIC that is driven by a simulator sends the same frames as on the wire, byte for byte and at the same times.
//
// Events of one nanosecond may come in another order: on the wire a NIC first looks for all that is due and then picks a
// frame, with a driver it does so for each thing by itself. So frames arrive after all that was due, in both; and odd
// rates keep other things from meeting: no queue pair's packets are released at multiples of the time that frames take of the
// link, and the link is slow enough for meetings by chance to be rare. With these seeds there is none that matters.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/qcn_harness.h"

namespace weir::test {
namespace {

struct Sent {
  Time at = 0;
  FrameKind kind = FrameKind::other;
  uint8_t pfc_enable = 0;
  uint8_t pfc_xoff = 0;
  std::vector<uint8_t> bytes;
  bool operator==(const Sent&) const = default;
};

// Calls the NIC at the times that it has asked for, and at its own deadlines.
class DrivenNic final : public Driver {
 public:
  DrivenNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs)
      : pool(64, 4'096 + 128), nic(parameters, queue_pairs, pool, *this) {}

  void depart(uint16_t port, PacketId id, Time at) override {
    REQUIRE(port == 0);
    nic.seal();
    const Packet& p = pool[id];
    Sent one{at, p.meta.kind, p.pfc_enable, p.pfc_xoff, {}};
    if (one.kind != FrameKind::pfc) {
      one.bytes.assign(pool.data(id), pool.data(id) + p.length);
      PacketMeta meta;
      REQUIRE(classify(one.bytes.data(), p.length, meta) == Refusal::none);
      one.kind = meta.kind;
    }
    sent.push_back(std::move(one));
    departing.emplace(at, id);
  }
  // Wakes come in the order in which they were asked for, at one time.
  void wake(uint32_t what, Time at) override {
    if (at != kNever) asked.emplace(at, what);
  }
  void run(Time until) {
    while (!asked.empty() && asked.begin()->first <= until) {
      REQUIRE(++wakes < 10'000'000);
      const auto [at, what] = *asked.begin();
      asked.erase(asked.begin());
      collect(at);
      nic.wake(what, at);
    }
    nic.advance(until);
    collect(until);
  }
  // A frame counts as sent when its last bit has left, as on the wire.
  void collect(Time until) {
    for (; !departing.empty() && departing.begin()->first <= until; departing.erase(departing.begin())) {
      nic.left(departing.begin()->second);
      pool.free(departing.begin()->second);
    }
  }
  void receive(Time now, const std::vector<uint8_t>& bytes) {
    PacketMeta meta;
    const Refusal refusal = classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta);
    nic.receive(now, bytes.data(), static_cast<uint32_t>(bytes.size()), meta, refusal);
  }

  PacketPool pool;
  std::multimap<Time, uint32_t> asked;
  std::multimap<Time, PacketId> departing;
  SoftNic nic;
  std::vector<Sent> sent;
  uint64_t wakes = 0;
};

template <class Counters>
void check_same(const Counters& wire, const Counters& driven) {
  for (int i = 0; i < Counters::kCount; ++i) {
    CAPTURE(std::string(Counters::kDescriptions[i].name));
    CHECK(wire.words()[i] == driven.words()[i]);
  }
}

void check_same(SoftNic& wire, SoftNic& driven) {
  wire.observation().settle_counters();
  driven.observation().settle_counters();
  check_same(wire.counters(), driven.counters());
  check_same(wire.transport_counters(), driven.transport_counters());
  for (int p = 0; p < kPriorities; ++p) {
    CAPTURE(p);
    check_same(wire.counters(p), driven.counters(p));
  }
  for (uint32_t i = 0; i < wire.streams(); ++i) {
    CAPTURE(i);
    check_same(wire.queue_pairs()[i].counters, driven.queue_pairs()[i].counters);
    const NicObservation::SenderSample a = wire.observation().sender_sample(i, wire.now());
    const NicObservation::SenderSample b = driven.observation().sender_sample(i, driven.now());
    CHECK(std::tuple(a.rate, a.target_rate, a.alpha, a.window) == std::tuple(b.rate, b.target_rate, b.alpha, b.window));
  }
}

// The wire knows of a frame when it has left, a driver when it is picked.
void check_same(const std::vector<Sent>& wire, const std::vector<Sent>& driven) {
  const size_t common = std::min(wire.size(), driven.size());
  for (size_t i = 0; i < common; ++i) {
    CAPTURE(i);
    REQUIRE(wire[i].at == driven[i].at);
    REQUIRE(wire[i].kind == driven[i].kind);
    REQUIRE(wire[i].bytes == driven[i].bytes);
    REQUIRE(wire[i] == driven[i]);
  }
  REQUIRE(wire.size() == common);
  REQUIRE(driven.size() <= common + 1);
}

constexpr uint32_t kSenders = 6;
constexpr uint32_t kReliable = kSenders;      // receives, and acknowledges
constexpr uint32_t kAsking = kSenders + 1;    // sends reliably, to nobody: its timer expires
constexpr uint32_t kReceiver = kSenders + 2;  // receives a stream

std::vector<QueuePairParameters> queue_pairs() {
  std::vector<QueuePairParameters> list;
  const uint8_t priorities[kSenders] = {3, 3, 3, 5, 0, 6};
  const Rate caps[kSenders] = {61'803'399, 57'721'567, 83'462'684, 70'710'679, 3'000'017, 64'231'879};
  for (uint32_t i = 0; i < kSenders; ++i) {
    QueuePairParameters qp = sender(0x21 + i, i * 7'000'137);
    qp.priority = priorities[i];
    qp.stream.operation = i % 2 == 0 ? Operation::write : Operation::send;
    qp.stream.path_mtu = i == 1 ? 4'096 : i == 2 ? 256 : 1'024;
    qp.stream.message_bytes = 30'001 * (i + 1);
    if (i == 3) qp.stream.total_bytes = 500'003;
    qp.rate_cap = caps[i];
    if (i == 5) qp.stop = 400'000'037;
    list.push_back(qp);
  }
  QueuePairParameters reliable = receiver(0x40);
  reliable.reliable = true;
  reliable.stream.operation = Operation::send;
  list.push_back(reliable);
  reliable.start = 50'000'111;
  reliable.transport.timeout = 10;
  reliable.stream.message_bytes = 9'000;
  list.push_back(reliable);
  list.push_back(receiver(0x41));
  return list;
}

void compare(uint64_t seed, const CongestionParameters& control) {
  const bool qcn = std::holds_alternative<QcnParameters>(control);
  Random random(seed);
  const auto below = [&](uint64_t limit) { return random.next() % limit; };
  NicParameters parameters = nic_parameters(97'351'873);
  parameters.congestion = control;
  if (qcn) {
    test::qcn(parameters).rpg_time_reset = 5'000'017;
    test::qcn(parameters).rpg_min_rate = 1'000'003;
  } else {
    dcqcn(parameters).form = seed % 2 == 0 ? DcqcnParameters::Form::paper : DcqcnParameters::Form::slotted;
  }
  parameters.grouping.selection = FlowSelection::application;
  parameters.grouping.most = 2;
  parameters.grouping.priorities = 1 << 3 | 1 << 5 | 1 << 0;
  parameters.grouping.limiter = seed % 2 == 0 ? Limiter::pacer : Limiter::token_bucket;
  parameters.pfc_priorities = 1 << 3 | 1 << 6;
  parameters.scheduler.weights = {1, 1, 1, 7, 1, 3, 1, 1};
  if (seed % 3 == 0) parameters.receive_buffer = {.size = 60'000, .drain = 4'000'003, .xoff = 20'000, .xon = 8'000};
  std::vector<QueuePairParameters> pairs = queue_pairs();
  for (uint32_t i = 0; i < kSenders; ++i) pairs[i].application = i / 2;
  NicHarness wire(parameters, pairs);
  DrivenNic driven(parameters, pairs);
  std::vector<Sent> expected;
  wire.on_frame = [&](const SentFrame& frame) {
    expected.push_back({frame.at, frame.meta.kind, frame.packet.pfc_enable, frame.packet.pfc_xoff, frame.bytes});
  };
  uint32_t psns[kReceiver + 1] = {};
  Time now = 0;
  for (int step = 0; step < 3'000; ++step) {
    now += below(20) == 0 ? static_cast<Time>(below(10'000'000)) : static_cast<Time>(below(300'000));
    wire.run(now);
    driven.run(now);
    const uint64_t what = below(20);
    if (what == 0) {
      const uint8_t enable = static_cast<uint8_t>(below(256));
      std::array<uint16_t, kPriorities> quanta;
      for (uint16_t& q : quanta) q = static_cast<uint16_t>(below(2) == 0 ? 0 : below(2'000));
      wire.nic.receive_pfc(now, enable, quanta);
      driven.nic.receive_pfc(now, enable, quanta);
    } else if (what == 1) {
      const auto quanta = static_cast<uint16_t>(below(300));
      wire.nic.receive_pause(now, quanta);
      driven.nic.receive_pause(now, quanta);
    } else if (what == 2) {
      pairs[below(kSenders)].rate_cap = static_cast<Rate>((1 + below(4)) * 12'345'689);
      wire.nic.reconfigure(parameters, pairs);
      driven.nic.reconfigure(parameters, pairs);
    } else if (what < 5) {
      constexpr uint8_t kPriorityOfFlow[] = {3, 3, 5, 0, 3};
      const auto flow = static_cast<uint16_t>(qcn ? below(5) : 0);
      const auto feedback = static_cast<uint8_t>(qcn ? below(64) : 0);
      const std::vector<uint8_t> bytes =
          qcn ? cnm({.feedback = feedback, .flow = static_cast<uint16_t>(flow + 1), .priority = kPriorityOfFlow[flow]})
              : wire.cnp(static_cast<uint32_t>(below(kSenders + 2)));
      wire.receive(now, bytes);
      driven.receive(now, bytes);
    } else {
      const uint32_t index = below(2) == 0 ? kReceiver : kReliable;
      const bool early = below(40) == 0;
      RoceFrame frame = roce(kOpcodeRcSendOnly).to(kFirstQpn + index).psn(psns[index] + early);
      if (!early) ++psns[index];
      frame.ack_request(below(2) == 0).ecn(below(3) == 0 ? 3 : 2).payload(1 + below(1'024));
      const std::vector<uint8_t> bytes = frame.bytes();
      wire.receive(now, bytes);
      driven.receive(now, bytes);
    }
    if (step % 300 == 0) check_same(expected, driven.sent);
    if (step % 300 == 0) check_same(wire.nic, driven.nic);
  }
  // Frames that were picked by now have left after the longest frame's time, and nothing follows a pause.
  wire.run(now);
  driven.run(now);
  wire.nic.receive_pause(now, 60'000);
  driven.nic.receive_pause(now, 60'000);
  wire.run(now + kMillisecond);
  driven.run(now + kMillisecond);
  check_same(expected, driven.sent);
  REQUIRE(expected.size() == driven.sent.size());
  check_same(wire.nic, driven.nic);
  CHECK(wire.pool.available() == wire.pool.size());
  CHECK(driven.pool.available() == driven.pool.size());
  // All of it was there: the comparison is worth something.
  const NicCounters& counters = driven.nic.counters();
  if (qcn) {
    CHECK(counters.rp_cnm_handled > 100);
    CHECK(counters.rp_cnm_unknown_flow > 10);
  } else {
    CHECK(counters.np_cnp_sent > 100);
    CHECK(counters.rp_cnp_handled > 100);
  }
  CHECK(driven.nic.transport_counters().tx_acks > 20);
  CHECK(driven.nic.transport_counters().local_ack_timeout_err > 0);
  CHECK(driven.nic.transport_counters().tx_naks > 0);
  CHECK((counters.tx_pfc_frames > 0) == (seed % 3 == 0));
  CHECK(driven.nic.counters(3).rx_prio_pause_duration > 0);
  for (uint32_t i = 0; i < kSenders; ++i) CHECK(driven.nic.queue_pairs()[i].counters.tx_packets > 20);
  CHECK(driven.nic.queue_pairs()[3].counters.tx_bytes == 500'003);
}

TEST_CASE("driver: a NIC sends the same frames at the same times as on the wire") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    compare(seed, DcqcnParameters{});
  }
}

TEST_CASE("driver: and so does one under QCN, with pacers and with token buckets") {
  // Token buckets are filled at the same ticks. These seeds never have two flows go on at one nanosecond, where the order is
  // open.
  for (const uint64_t seed : {1, 2, 4, 6, 9, 13}) {
    CAPTURE(seed);
    compare(seed, QcnParameters{});
  }
}

TEST_CASE("driver: a NIC with nothing else to do need not be woken when its link falls free") {
  NicParameters parameters = nic_parameters();
  QueuePairParameters qp = sender();
  qp.stream.operation = Operation::send;
  qp.stream.message_bytes = 1'024;
  qp.rate_cap = parameters.rate / 10;
  DrivenNic driven(parameters, {qp});
  driven.run(10 * kMillisecond);
  CHECK(driven.sent.size() > 1'000);
  CHECK(driven.wakes <= driven.sent.size() + 1);
}

}  // namespace
}  // namespace weir::test
