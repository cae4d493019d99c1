// Reliable streams of two NICs on the wire, either of which may go and come back: how connections begin, fail and follow one
// another, and what each end counts.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "test/nic_harness.h"

namespace weir::test {
namespace {

constexpr Time kDelay = 1'500;

class News final : public MessageListener {
 public:
  void message_completed(uint32_t, uint64_t number, uint64_t bytes, Time, Time) override {
    CHECK(number == messages++);
    acknowledged += bytes;
  }
  void stream_ended(uint32_t, bool failed, Time) override { CHECK_FALSE(failed); }
  void stream_connected(uint32_t qpn, WorkStatus status, Time) override { told.emplace_back(qpn, status); }

  uint64_t messages = 0;
  uint64_t acknowledged = 0;
  std::vector<std::pair<uint32_t, WorkStatus>> told;
};

struct End {
  End(NicParameters parameters, const std::vector<QueuePairParameters>& queue_pairs)
      : pool(64, 2'048), nic((parameters.listener = &news, parameters), queue_pairs, pool) {}

  QpCounters& counters(size_t pair = 0) { return nic.queue_pairs()[pair].counters; }
  TransportCounters& transport() { return nic.transport_counters(); }
  bool connecting() { return static_cast<ReliableStream&>(*nic.queue_pairs()[0].transport).connecting(); }

  News news;
  PacketPool pool;
  WireNic nic;
};

struct Frame {
  bool of_left;
  PacketMeta meta;
  std::vector<uint8_t> bytes;
};

class Wire {
 public:
  Wire() { qp.reliable = true; }

  // Each time another NIC, with other numbers for its connections.
  void start_left() { left_ = start(true); }
  void start_right() { right_ = start(false); }
  void stop_left() { left_.reset(); }
  void stop_right() { right_.reset(); }
  End& left() { return *left_; }
  End& right() { return *right_; }

  void run(Time until) {
    for (uint64_t steps = 0;; ++steps) {
      REQUIRE(steps < 4'000'000);
      Time next = flying_.empty() ? kNever : flying_.begin()->first;
      for (End* end : {left_.get(), right_.get()}) {
        if (end != nullptr) next = std::min(next, end->nic.next_deadline());
      }
      if (next > until) break;
      now = std::max(now, next);
      for (End* end : {left_.get(), right_.get()}) {
        if (end != nullptr) end->nic.advance(now);
      }
      while (!flying_.empty() && flying_.begin()->first <= now) {
        const Frame frame = std::move(flying_.begin()->second);
        flying_.erase(flying_.begin());
        deliver(frame);
      }
      collect(left_.get());
      collect(right_.get());
    }
    now = until;
    for (End* end : {left_.get(), right_.get()}) {
      if (end != nullptr) end->nic.advance(now);
    }
    collect(left_.get());
    collect(right_.get());
  }
  // Runs until the last message of the left NIC is acknowledged.
  void finish() {
    for (Time limit = now + 100 * kSecond; left().nic.queue_pairs()[0].state != QueuePair::State::finished;) {
      REQUIRE(now < limit);
      run(now + kMillisecond);
    }
  }
  void deliver(const Frame& frame) {
    End* const to = frame.of_left ? right_.get() : left_.get();
    if (to == nullptr) return;
    PacketMeta meta;
    const auto length = static_cast<uint32_t>(frame.bytes.size());
    const Refusal refusal = classify(frame.bytes.data(), length, meta);
    to->nic.receive(now, frame.bytes.data(), length, meta, refusal);
    collect(left_.get());
    collect(right_.get());
  }

  QueuePairParameters qp;  // common to both, but for what differs
  uint8_t ack_priority = kPriorityOfData;
  bool both_send = false;  // else only the left one does
  bool knows_left = true;  // the right one has the left one's MAC address
  Time now = 0;
  double loss = 0, duplication = 0, reordering = 0;
  std::function<bool(const Frame&)> drops;  // frames to drop besides
  std::function<void(const Frame&)> seen;
  uint64_t lost = 0;

 private:
  std::unique_ptr<End> start(bool of_left) {
    NicParameters parameters = nic_parameters(1'000'000'000);
    parameters.mac = of_left ? kNicMac : kPeerMac;
    parameters.ack_priority = ack_priority;
    QueuePairParameters own = qp;
    own.path = of_left ? path_to(kPeerMac, kNicMac) : path_to(kNicMac, kPeerMac);
    if (!of_left && !knows_left) own.path.destination_mac = 0;
    own.remote_qpn = kFirstQpn;
    own.connection_seed = ++seed_;
    if (of_left || both_send) own.start = now;
    auto end = std::make_unique<End>(parameters, std::vector{own});
    end->nic.skip_to(now);
    return end;
  }
  void collect(End* from) {
    if (from == nullptr) return;
    for (PacketId id = from->nic.transmit(); id != kNoPacket; id = from->nic.transmit()) {
      Frame frame{from == left_.get(), {}, {from->pool.data(id), from->pool.data(id) + from->pool[id].length}};
      from->nic.left(id);
      from->pool.free(id);
      REQUIRE(classify(frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size()), frame.meta) == Refusal::none);
      REQUIRE(frame.meta.destination_mac != 0);
      if (seen) seen(frame);
      if (random_.uniform() < loss || (drops && drops(frame))) {
        ++lost;
        continue;
      }
      const Time late = random_.uniform() < reordering ? 40'000 : 0;
      if (random_.uniform() < duplication) flying_.emplace(now + kDelay + 60'000, frame);
      flying_.emplace(now + kDelay + late, std::move(frame));
    }
  }

  uint64_t seed_ = 0;
  Random random_{5};
  std::unique_ptr<End> left_;
  std::unique_ptr<End> right_;
  std::multimap<Time, Frame> flying_;
};

bool is_opening(const Frame& frame) { return frame.meta.opcode == kOpcodeRcWriteOnlyImmediate; }

}  // namespace

TEST_CASE("stream connections: acknowledgements are of the NIC's class for them, or else of that of their data") {
  for (const uint8_t priority : {kPriorityOfData, uint8_t{6}, uint8_t{3}}) {
    CAPTURE(priority);
    Wire wire;
    wire.ack_priority = priority;
    wire.qp.stream.total_bytes = 10'000;
    wire.start_right();
    wire.start_left();
    uint64_t answers = 0;
    wire.seen = [&](const Frame& frame) {
      if (frame.of_left) CHECK(frame.meta.dscp == 26);
      if (frame.of_left) return;
      if (frame.meta.opcode != kOpcodeRcAcknowledge) return;
      ++answers;
      CHECK(frame.meta.dscp == (priority == 6 ? 48 : 26));
      CHECK(frame.meta.ecn == 2);
    };
    wire.finish();
    CHECK(answers > 0);
    const auto sent = [&](uint8_t of) { return wire.right().nic.counters(of).tx_prio_packets; };
    CHECK((sent(6) > 0) == (priority == 6));
  }
}

TEST_CASE("stream connections: what is sent arrives once and in order, whatever the wire does to it") {
  for (const Operation operation : {Operation::write, Operation::send}) {
    for (const double loss : {0.0, 0.05}) {
      CAPTURE(static_cast<int>(operation));
      CAPTURE(loss);
      Wire wire;
      wire.qp.stream.operation = operation;
      wire.qp.stream.message_bytes = 10'007;
      wire.qp.stream.total_bytes = 3'000'000;
      wire.qp.outstanding = 64;
      wire.qp.transport.timeout = 8;
      wire.loss = wire.reordering = wire.duplication = loss;
      wire.start_left();
      wire.start_right();
      wire.finish();
      QpCounters& received = wire.right().counters();
      const uint64_t messages = (3'000'000 + 10'006) / 10'007;
      CHECK(wire.left().news.messages == messages);
      CHECK(wire.left().news.acknowledged == 3'000'000);
      CHECK(received.rx_messages == messages);
      CHECK(received.rx_bytes == 3'000'000);
      // The last is the one that has opened the connection.
      CHECK(received.rx_packets == 299 * 10 + 8 + 1);
      CHECK(wire.left().counters().tx_packets == received.rx_packets + wire.left().transport().retransmitted);
      CHECK((wire.left().transport().retransmitted > 0) == (loss > 0));
      CHECK(wire.left().news.told == std::vector{std::pair(kFirstQpn, WorkStatus::success)});
      CHECK(wire.left().transport().req_transport_retries_exceeded == 0);
    }
  }
}

TEST_CASE("stream connections: many small messages are under way at a time, whatever the receiver posts") {
  Wire wire;
  wire.qp.stream.operation = Operation::send;
  wire.qp.stream.message_bytes = 64;
  wire.qp.stream.total_bytes = 64 * 1'000;
  wire.qp.outstanding = 500;
  wire.start_left();
  wire.start_right();
  wire.finish();
  // 1000 frames of 146 bytes on a link of 1 Gb/s, and not a round trip for each.
  CHECK(wire.right().counters().rx_messages == 1'000);
  CHECK(wire.now <= 3 * kMillisecond);
  CHECK(wire.left().transport().rnr_nak_retry_err == 0);
}

TEST_CASE("stream connections: a receiver that comes later, or again, is found without a restart") {
  Wire wire;
  wire.qp.stream.message_bytes = 50'000;
  wire.qp.stream.total_bytes = 20'000'000;
  uint64_t openings = 0;
  wire.seen = [&](const Frame& frame) { openings += is_opening(frame); };
  wire.start_left();
  wire.run(10 * kSecond);
  CHECK(wire.left().connecting());
  CHECK(wire.left().counters().rx_packets == 0);
  // Eight of each connection, which takes half a second and a pause: not more than that.
  CHECK(openings == wire.left().counters().tx_packets);
  CHECK(openings > 100);
  CHECK(openings < 180);
  CHECK(wire.left().transport().req_transport_retries_exceeded >= 10);
  CHECK(wire.left().news.told == std::vector{std::pair(kFirstQpn, WorkStatus::retry_exceeded_error)});
  wire.start_right();
  wire.run(wire.now + kSecond / 10);
  CHECK_FALSE(wire.left().connecting());
  CHECK(wire.left().news.told.size() == 2);
  CHECK(wire.left().news.told.back().second == WorkStatus::success);
  const uint64_t before = wire.left().news.acknowledged;
  CHECK(before > 5'000'000);
  CHECK(before < 20'000'000);
  wire.stop_right();
  wire.run(wire.now + 2 * kSecond);
  CHECK(wire.left().connecting());
  CHECK(wire.left().news.told.size() == 3);
  wire.start_right();
  wire.finish();
  CHECK_FALSE(wire.left().connecting());
  CHECK(wire.left().news.told.size() == 4);
  // The second receiver has all that the first did not acknowledge, from the beginning of a message on.
  CHECK(wire.left().news.acknowledged == 20'000'000);
  CHECK(wire.left().news.messages == 400);
  CHECK(wire.right().counters().rx_bytes <= 20'000'000 - before);
  CHECK(wire.right().counters().rx_bytes % 50'000 == 0);
  CHECK(wire.right().counters().rx_messages * 50'000 == wire.right().counters().rx_bytes);
}

TEST_CASE("stream connections: a sender that comes again is taken at its word, in the middle of a message too") {
  Wire wire;
  wire.qp.stream.message_bytes = 1'000'000;
  wire.start_left();
  wire.start_right();
  for (int times = 0; times < 20; ++times) {
    wire.run(wire.now + 7 * kMillisecond);
    wire.stop_left();
    wire.start_left();
  }
  wire.stop_left();
  wire.run(wire.now + kMillisecond);
  const uint64_t received = wire.right().counters().rx_bytes;
  wire.qp.stream.total_bytes = 5'000'000;
  wire.start_left();
  wire.finish();
  CHECK(wire.left().news.acknowledged == 5'000'000);
  CHECK(wire.right().counters().rx_bytes == received + 5'000'000);
  CHECK(wire.left().transport().retransmitted == 0);
}

TEST_CASE("stream connections: a first packet that comes again begins nothing anew, one of an acknowledged past does no harm") {
  Wire wire;
  wire.qp.stream.message_bytes = 10'000;
  wire.qp.stream.total_bytes = 1'000'000;
  wire.qp.transport.timeout = 8;
  std::vector<Frame> first;
  wire.seen = [&](const Frame& frame) {
    if (is_opening(frame)) first.push_back(frame);
  };
  wire.start_left();
  wire.start_right();
  wire.run(2 * kMillisecond);
  REQUIRE(first.size() == 1);
  REQUIRE(wire.right().counters().rx_bytes > 0);
  wire.deliver(first[0]);
  wire.finish();
  CHECK(wire.right().counters().rx_bytes == 1'000'000);
  CHECK(wire.right().counters().rx_messages == 100);
  CHECK(wire.right().counters().duplicate == 1);
  CHECK(first.size() == 1);
  // The frame is the sender's before: the one now finds out, and opens another.
  wire.stop_left();
  wire.start_left();
  wire.run(wire.now + 2 * kMillisecond);
  wire.deliver(first[0]);
  wire.finish();
  CHECK(wire.left().news.acknowledged == 1'000'000);
  CHECK(wire.left().news.told.size() == 3);
}

TEST_CASE("stream connections: packets before a connection are dropped and counted") {
  Wire wire;
  wire.qp.stream.message_bytes = 10'000;
  wire.start_left();
  wire.start_right();
  wire.run(kMillisecond);
  wire.stop_right();
  wire.start_right();
  wire.run(wire.now + kMillisecond);
  CHECK(wire.right().counters().rx_packets == 0);
  CHECK(wire.right().counters().rx_bytes == 0);
  CHECK(wire.right().transport().drop_wrong_state > 10);
  CHECK(wire.right().transport().tx_acks + wire.right().transport().tx_naks == 0);
}

TEST_CASE("stream connections: a peer that refuses what it is sent is asked again, but not at once") {
  Wire wire;
  wire.qp.stream.path_mtu = 512;
  wire.qp.stream.message_bytes = 10'000;
  wire.start_right();
  wire.qp.stream.path_mtu = 1'024;
  wire.start_left();
  wire.run(kSecond);
  CHECK(wire.left().connecting());
  CHECK(wire.left().news.acknowledged == 0);
  CHECK(wire.right().counters().rx_bytes == 0);
  CHECK(wire.left().transport().req_remote_invalid_request == 10);
  CHECK(wire.right().transport().resp_invalid_requests == 10);
  // Each time it is acknowledged before it is refused.
  REQUIRE(wire.left().news.told.size() == 20);
  CHECK(wire.left().news.told[1].second == WorkStatus::remote_invalid_request_error);
}

TEST_CASE("stream connections: both ends of a queue pair may send") {
  Wire wire;
  wire.both_send = true;
  wire.qp.stream.message_bytes = 10'000;
  wire.qp.stream.total_bytes = 2'000'000;
  wire.qp.transport.timeout = 8;
  wire.loss = 0.01;
  wire.start_left();
  wire.start_right();
  wire.finish();
  wire.run(wire.now + kSecond);
  for (End* end : {&wire.left(), &wire.right()}) {
    CHECK(end->news.acknowledged == 2'000'000);
    CHECK(end->counters().rx_bytes == 2'000'000);
    CHECK(end->counters().rx_messages == 200);
    CHECK(end->nic.queue_pairs()[0].state == QueuePair::State::finished);
    CHECK(end->transport().req_transport_retries_exceeded == 0);
  }
  // The one that has sent everything still receives.
  wire.stop_left();
  wire.start_left();
  wire.finish();
  CHECK(wire.right().counters().rx_bytes == 4'000'000);
}

TEST_CASE("stream connections: nothing is acknowledged to a peer whose MAC address is not known yet") {
  Wire wire;
  wire.knows_left = false;
  wire.qp.stream.message_bytes = 10'000;
  wire.qp.stream.total_bytes = 100'000;
  wire.start_left();
  wire.start_right();
  wire.run(kMillisecond);
  CHECK(wire.left().connecting());
  NicParameters parameters = nic_parameters(1'000'000'000);
  parameters.mac = kPeerMac;
  QueuePairParameters known = wire.right().nic.queue_pairs()[0].parameters;
  known.path.destination_mac = kNicMac;
  wire.right().nic.reconfigure(parameters, {known});
  wire.run(wire.now + 3 * kMillisecond);
  CHECK(wire.left().news.acknowledged == 100'000);
  CHECK(wire.left().transport().local_ack_timeout_err == 0);
}

TEST_CASE("stream connections: peers write to the same key at every NIC, and what they write is not sent to others") {
  NicParameters secret = nic_parameters();
  secret.key_secret = 0x5eed;
  secret.verbs_queue_pairs = 1;
  secret.memory_regions = 4;
  Wire wire;
  wire.qp.stream.message_bytes = 10'000;
  wire.qp.stream.total_bytes = 100'000;
  wire.both_send = true;
  uint32_t odd = 0;
  wire.seen = [&](const Frame& frame) {
    const uint8_t* payload = frame.bytes.data() + frame.meta.bth_offset + kBthHeader + extension_length(frame.meta.opcode);
    for (uint32_t i = 1; i < frame.meta.payload_length; ++i) odd += payload[i] != static_cast<uint8_t>(payload[i - 1] + 1);
  };
  wire.start_right();
  wire.start_left();
  wire.run(10 * kMillisecond);
  CHECK(wire.right().counters().rx_bytes == 100'000);
  CHECK(odd == 0);
  // A WRITE of other bytes, and what is sent after it.
  NicHarness nic(secret, {[] {
                   QueuePairParameters qp = sender(0x21);
                   qp.reliable = true;
                   qp.connection_seed = 7;
                   qp.stream.message_bytes = 1'000;
                   qp.start = kMillisecond;
                   return qp;
                 }()});
  const auto request = [](uint8_t opcode, uint32_t psn, uint32_t key, const std::vector<uint8_t>& payload) {
    const Reth reth{0, key, static_cast<uint32_t>(payload.size())};
    return roce(opcode).to(kFirstQpn).psn(psn).ack_request().reth(reth).immediate(99).payload(payload).bytes();
  };
  nic.receive(0, request(kOpcodeRcWriteOnlyImmediate, 500, 0, {}));
  nic.receive(1'000, request(kOpcodeRcWriteOnly, 501, KeySequence(0).next(), std::vector<uint8_t>(1'000, 0xee)));
  CHECK(nic.nic.queue_pairs()[0].counters.rx_bytes == 1'000);
  CHECK(nic.nic.transport_counters().tx_naks == 0);
  nic.run(2 * kMillisecond);
  // Its own first packet is acknowledged: it sends.
  const auto opening = std::find_if(nic.frames.begin(), nic.frames.end(),
                                    [](const SentFrame& frame) { return frame.meta.opcode == kOpcodeRcWriteOnlyImmediate; });
  REQUIRE(opening != nic.frames.end());
  nic.receive(2 * kMillisecond, roce(kOpcodeRcAcknowledge).to(kFirstQpn).psn(opening->bth.psn).aeth({0x1f, 1}).bytes());
  nic.run(3 * kMillisecond);
  uint32_t sent = 0;
  for (const SentFrame& frame : nic.frames) {
    if (frame.meta.opcode != kOpcodeRcWriteOnly) continue;
    ++sent;
    const uint8_t* payload = frame.bytes.data() + frame.meta.bth_offset + kBthHeader + kRethHeader;
    CHECK(payload[0] == 0);
    CHECK(payload[999] == static_cast<uint8_t>(999));
  }
  CHECK(sent >= 2);
}

}  // namespace weir::test
