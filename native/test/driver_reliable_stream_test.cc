// Reliable streams of two NICs whose frames are bytes, as on the wire: with payload, and with an ICRC that is checked.
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/random.h"
#include "test/nic_harness.h"

namespace weir::test {
namespace {

constexpr Time kDelay = 1'500;
constexpr uint32_t kFlows = 3;

struct Message {
  uint64_t number = 0, bytes = 0;
  Time posted = 0, completed = 0;
};

class Listener final : public MessageListener {
 public:
  void message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time now) override {
    messages[qpn - kFirstQpn].push_back({number, bytes, posted, now});
  }
  void stream_ended(uint32_t, bool has_failed, Time) override { ++(has_failed ? failed : ended); }

  std::vector<Message> messages[kFlows];
  uint32_t ended = 0;
  uint32_t failed = 0;
};

struct End {
  End(NicParameters parameters, const std::vector<QueuePairParameters>& queue_pairs)
      : pool(32, 2'048), nic((parameters.listener = &listener, parameters), queue_pairs, pool) {}
  Listener listener;
  PacketPool pool;
  WireNic nic;
};

std::vector<QueuePairParameters> queue_pairs(bool left, LossRecovery recovery, std::span<const uint32_t> sizes) {
  std::vector<QueuePairParameters> list;
  for (uint32_t i = 0; i < kFlows; ++i) {
    QueuePairParameters qp;
    qp.path = left ? path_to(kPeerMac, kNicMac) : path_to(kNicMac, kPeerMac);
    qp.remote_qpn = kFirstQpn + i;
    qp.reliable = true;
    qp.transport.recovery = recovery;
    qp.transport.timeout = 5;
    qp.stream.operation = i == 1 ? Operation::send : Operation::write;
    qp.stream.path_mtu = i == 0 ? 1'024 : 512;
    qp.stream.first_psn = 0xffff80;
    if (i == 2) {
      qp.sizes = sizes;
    } else {
      qp.stream.message_bytes = 40'007;
      qp.stream.total_bytes = 900'000;
    }
    // The third is sent from the right to the left.
    if (left != (i == 2)) qp.start = 1'000 * i;
    list.push_back(qp);
  }
  return list;
}

class Wire {
 public:
  Wire(LossRecovery recovery, std::span<const uint32_t> sizes, double loss, double reorder)
      : left(nic_parameters(), queue_pairs(true, recovery, sizes)),
        right(peer(), queue_pairs(false, recovery, sizes)),
        loss_(loss),
        reorder_(reorder) {}

  void run() {
    for (uint64_t steps = 0;; ++steps) {
      REQUIRE(steps < 2'000'000);
      const Time arrival = flying_.empty() ? kNever : flying_.begin()->first;
      const Time next = std::min({left.nic.next_deadline(), right.nic.next_deadline(), arrival});
      if (next == kNever) return;
      now = std::max(now, next);
      left.nic.advance(now);
      right.nic.advance(now);
      while (!flying_.empty() && flying_.begin()->first <= now) {
        const auto [to_right, bytes] = std::move(flying_.begin()->second);
        flying_.erase(flying_.begin());
        PacketMeta meta;
        const Refusal refusal = classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta);
        (to_right ? right : left).nic.receive(now, bytes.data(), static_cast<uint32_t>(bytes.size()), meta, refusal);
      }
      collect(true);
      collect(false);
    }
  }

  End left;
  End right;
  Time now = 0;
  uint64_t data = 0, lost = 0, spoilt = 0;

 private:
  static NicParameters peer() {
    NicParameters p = nic_parameters();
    p.mac = kPeerMac;
    return p;
  }

  void collect(bool of_left) {
    End& from = of_left ? left : right;
    for (PacketId id = from.nic.transmit(); id != kNoPacket; id = from.nic.transmit()) {
      std::vector<uint8_t> bytes(from.pool.data(id), from.pool.data(id) + from.pool[id].length);
      from.nic.left(id);
      from.pool.free(id);
      check(bytes);
      if (random_.uniform() < loss_) {
        ++lost;
        continue;
      }
      if (loss_ > 0 && random_.uniform() < 0.002) {
        ++spoilt;
        bytes[bytes.size() - 1 - random_.next() % (bytes.size() - 46)] ^= 0x10;
      }
      const Time late = random_.uniform() < reorder_ ? 4'000 : 0;
      flying_.emplace(now + kDelay + late, std::pair(of_left, std::move(bytes)));
    }
  }

  // A whole frame: its ICRC is right, and its payload is where it should be.
  void check(const std::vector<uint8_t>& bytes) {
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    REQUIRE(icrc_ok(bytes.data(), meta));
    if (meta.opcode == kOpcodeRcAcknowledge) return;
    ++data;
    const uint32_t headers = meta.bth_offset + kBthHeader + extension_length(meta.opcode);
    REQUIRE(bytes.size() == headers + meta.payload_length + meta.pad_count + kIcrc);
    // The NIC's pattern, whatever the address that it is read from.
    const uint8_t* payload = bytes.data() + headers;
    for (uint32_t i = 1; i < meta.payload_length; ++i) {
      REQUIRE(payload[i] == static_cast<uint8_t>(payload[i - 1] + 1));
    }
  }

  Random random_{11};
  double loss_;
  double reorder_;
  std::multimap<Time, std::pair<bool, std::vector<uint8_t>>> flying_;
};

void check_flow(const std::vector<Message>& messages, const QpCounters& sent, const QpCounters& received,
                const std::vector<uint32_t>& sizes, uint32_t mtu) {
  REQUIRE(messages.size() == sizes.size());
  uint64_t bytes = 0, packets = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(messages[i].number == i);
    CHECK(messages[i].bytes == sizes[i]);
    CHECK(messages[i].completed >= messages[i].posted + 2 * kDelay);
    bytes += sizes[i];
    packets += (sizes[i] + mtu - 1) / mtu;
  }
  CHECK(received.rx_bytes == bytes);
  CHECK(received.rx_packets == packets);
  CHECK(received.rx_messages == sizes.size());
  CHECK(sent.tx_packets >= packets);
}

TEST_CASE("driver: reliable streams carry real bytes between two NICs, with and without loss") {
  const std::vector<uint32_t> sizes{1, 511, 512, 513, 100'000, 3, 4'096, 250'000, 2};
  std::vector<uint32_t> even(22, 40'007);
  even.push_back(900'000 - 22 * 40'007);
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const double loss : {0.0, 0.01}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(loss);
      Wire wire(recovery, sizes, loss, loss / 2);
      wire.run();
      CHECK(wire.left.listener.ended == 2);
      CHECK(wire.right.listener.ended == 1);
      CHECK(wire.left.listener.failed + wire.right.listener.failed == 0);
      std::vector<QueuePair>& left = wire.left.nic.queue_pairs();
      std::vector<QueuePair>& right = wire.right.nic.queue_pairs();
      check_flow(wire.left.listener.messages[0], left[0].counters, right[0].counters, even, 1'024);
      check_flow(wire.left.listener.messages[1], left[1].counters, right[1].counters, even, 512);
      check_flow(wire.right.listener.messages[2], right[2].counters, left[2].counters, sizes, 512);
      const uint64_t sent = left[0].counters.tx_packets + left[1].counters.tx_packets + right[2].counters.tx_packets;
      CHECK(sent == wire.data);
      const uint64_t again = wire.left.nic.transport_counters().retransmitted + wire.right.nic.transport_counters().retransmitted;
      const uint64_t needed = right[0].counters.rx_packets + right[1].counters.rx_packets + left[2].counters.rx_packets;
      CHECK(sent == needed + again);
      if (loss == 0) CHECK(again == 0);
      if (loss > 0) {
        CHECK(wire.lost > 20);
        CHECK(wire.spoilt > 2);
        CHECK(again > 20);
      }
      CHECK(wire.left.nic.counters().rx_icrc_encapsulated + wire.right.nic.counters().rx_icrc_encapsulated == wire.spoilt);
      CHECK(wire.left.pool.available() == wire.left.pool.size());
      CHECK(wire.right.pool.available() == wire.right.pool.size());
    }
  }
}

}  // namespace
}  // namespace weir::test
