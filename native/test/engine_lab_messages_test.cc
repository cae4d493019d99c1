// Reliable messages of a lab: two NIC devices with a wire between them, in virtual time. Their records and counters are held
// against what the wire has done to every frame.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/nic_device.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate kRate = 1'000'000'000;
constexpr Time kTurn = 5 * kMicrosecond;
constexpr Time kBegin = kSecond;

struct End {
  explicit End(const NicDeviceConfig& config, size_t records_room = 1 << 12)
      : pool(512, 2'048), punted(16), records(records_room) {
    WirePort port(std::make_unique<ScriptedPort>(wire), kRate, 0, 128);
    device = std::make_unique<NicDevice>(config, uint16_t{0}, std::move(port), pool, punted, records, kBegin);
  }
  const QpCounters& pair(size_t index) { return device->soft_nic().queue_pairs()[index].counters; }
  const TransportCounters& transport() { return device->soft_nic().transport_counters(); }
  std::vector<Record> told() {
    std::vector<Record> list;
    for (Record record; records.pop(record);) list.push_back(record);
    return list;
  }

  PacketPool pool;
  FrameRing punted;
  SpscRing<Record> records;
  PortScript wire;
  std::unique_ptr<NicDevice> device;
};

NicDeviceConfig config_of(bool left, const QueuePairParameters& flow) {
  NicDeviceConfig config;
  config.name = left ? "a" : "b";
  config.lab = true;
  config.arrears = 50 * kMicrosecond;
  config.parameters = nic_parameters(kRate);
  if (!left) config.parameters.mac = kPeerMac;
  QueuePairParameters qp = flow;
  qp.remote_qpn = kFirstQpn;
  qp.path = left ? path_to(kPeerMac, kNicMac) : path_to(kNicMac, kPeerMac);
  if (!left) {
    qp.peer_start = std::exchange(qp.start, kNever);
    qp.stop = kNever;
  }
  config.queue_pairs = {qp};
  config.queue_pair_settings = {{"flow"}};
  return config;
}

QueuePairParameters reliable() {
  QueuePairParameters qp;
  qp.reliable = true;
  qp.start = 0;
  qp.transport.timeout = 8;  // 1.05 ms
  return qp;
}

// The two ends take turns every 5 us; a frame arrives a turn after it was sent, unless the wire loses it.
struct Wire {
  Wire(const NicDeviceConfig& left, const NicDeviceConfig& right, double loss = 0, size_t room = 1 << 12)
      : a(left, room), b(right), loss_(loss) {}

  void run(Time until) {
    for (; now < until; now += kTurn) {
      for (End* end : {&a, &b}) end->device->turn(now, now);
      carry(a, b);
      carry(b, a);
    }
  }

  End a;
  End b;
  Time now = kBegin;
  uint64_t lost_data = 0;

 private:
  void carry(End& from, End& to) {
    for (auto& [bytes, offload] : from.wire.sent) {
      if (random_.uniform() < loss_) {
        PacketMeta meta;
        REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
        lost_data += meta.opcode != kOpcodeRcAcknowledge;
        continue;
      }
      to.wire.give(now + kTurn, std::move(bytes));
    }
    from.wire.sent.clear();
  }

  Random random_{17};
  double loss_;
};

}  // namespace

TEST_CASE("lab messages: each is told once, in order, posted when the one before was complete") {
  const std::vector<uint32_t> sizes{4'000, 1, 65'536, 1'024, 300'000};
  QueuePairParameters flow = reliable();
  flow.outstanding = 1;
  flow.start = kMillisecond;
  flow.sizes = sizes;
  Wire wire(config_of(true, flow), config_of(false, flow));
  wire.run(kBegin + 20 * kMillisecond);
  const std::vector<Record> told = wire.a.told();
  REQUIRE(told.size() == sizes.size());
  double posted = kBegin + kMillisecond;
  for (size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].kind == Record::Kind::message);
    CHECK(told[i].index == 0);
    CHECK(told[i].values[0] == static_cast<double>(i));
    CHECK(told[i].values[1] == static_cast<double>(sizes[i]));
    CHECK(told[i].values[2] == posted);
    posted = static_cast<double>(told[i].time);
    // No sooner than its bytes fit through the link.
    CHECK(posted - told[i].values[2] >= sizes[i] * 8.0);
  }
  CHECK(wire.b.told().empty());
  CHECK(wire.b.pair(0).rx_messages == sizes.size());
  CHECK(wire.a.transport().retransmitted == 0);
  CHECK(wire.a.pool.available() == wire.a.pool.size());
}

TEST_CASE("lab messages: under loss each is complete once, and every packet is accounted for") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    QueuePairParameters flow = reliable();
    flow.transport.recovery = recovery;
    flow.outstanding = 3;
    flow.stream.message_bytes = 20'000;
    flow.stream.total_bytes = 1'990'000;
    Wire wire(config_of(true, flow), config_of(false, flow), 0.02);
    wire.run(kBegin + 400 * kMillisecond);
    const std::vector<Record> told = wire.a.told();
    REQUIRE(told.size() == 100);
    uint64_t bytes = 0;
    for (size_t i = 0; i < told.size(); ++i) {
      CHECK(told[i].values[0] == static_cast<double>(i));
      bytes += static_cast<uint64_t>(told[i].values[1]);
    }
    CHECK(bytes == 1'990'000);
    const QpCounters& sent = wire.a.pair(0);
    const QpCounters& taken = wire.b.pair(0);
    const uint64_t packets = 99 * 20 + 10;
    CHECK(taken.rx_packets == packets);
    CHECK(taken.rx_bytes == 1'990'000);
    CHECK(wire.a.transport().retransmitted > 0);
    CHECK(sent.tx_packets == packets + wire.a.transport().retransmitted);
    // Packets that arrived were taken in sequence, or came again, or too early to be of use.
    const uint64_t arrived = sent.tx_packets - wire.lost_data;
    const uint64_t early = recovery == LossRecovery::go_back_n ? wire.b.transport().out_of_sequence : 0;
    CHECK(arrived == taken.rx_packets + taken.duplicate + early);
  }
}

TEST_CASE("lab messages: the retransmission timeout is as much longer as the clock is slower") {
  const auto again_after = [](double scale) {
    QueuePairParameters flow = reliable();
    flow.stream.message_bytes = 1'000;
    flow.stream.total_bytes = 1'000;
    flow.transport.time_scale = scale;
    Wire wire(config_of(true, flow), config_of(false, flow), 1);  // nothing arrives
    while (wire.a.pair(0).tx_packets < 2) wire.run(wire.now + kTurn);
    return wire.now - kBegin;
  };
  CHECK(again_after(1) == doctest::Approx(1'048'576).epsilon(0.03));
  CHECK(again_after(7.5) == doctest::Approx(7.5 * 1'048'576).epsilon(0.03));
}

TEST_CASE("lab messages: without acknowledgements the receiver tells of the end") {
  QueuePairParameters flow;
  flow.start = 2 * kMillisecond;
  flow.stream.message_bytes = 10'000;
  flow.stream.total_bytes = 25'000;
  Wire wire(config_of(true, flow), config_of(false, flow));
  wire.run(kBegin + 10 * kMillisecond);
  CHECK(wire.a.told().empty());
  const std::vector<Record> told = wire.b.told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].kind == Record::Kind::message);
  CHECK(told[0].values[0] == 2);
  CHECK(told[0].values[1] == 25'000);
  CHECK(told[0].values[2] == kBegin + 2 * kMillisecond);
}

TEST_CASE("lab messages: those that find the ring of records full are counted") {
  QueuePairParameters flow = reliable();
  flow.stream.message_bytes = 1'000;
  flow.stream.total_bytes = 50'000;
  Wire wire(config_of(true, flow), config_of(false, flow), 0, 16);
  wire.run(kBegin + 10 * kMillisecond);
  CHECK(wire.a.told().size() == 16);
  CHECK(wire.a.device->soft_nic().counters().untold_messages == 34);
}
