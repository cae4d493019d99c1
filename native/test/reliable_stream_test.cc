// Streams over a reliable connection: two of them at the ends of a link in virtual time, with payload as on the wire and without
// as in simulation, where a packet is its descriptor and its headers.
#include "endpoint/reliable_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/native_error.h"
#include "base/random.h"
#include "transport/aeth.h"

namespace weir {
namespace {

constexpr uint32_t kLower = 42;  // Ethernet, IPv4, UDP
constexpr Time kDelay = 2'000;   // one way
constexpr uint32_t kDomain = 0x5eed;
constexpr LossRecovery kRecoveries[] = {LossRecovery::go_back_n, LossRecovery::selective_repeat};
constexpr Operation kOperations[] = {Operation::write, Operation::send, Operation::read};

// 100 Gb/s, rounded down to whole ns.
Time link_time(uint32_t frame) { return static_cast<Time>(wire_bytes(frame)) * 8 / 100; }

struct Message {
  uint64_t number, bytes;
  Time posted, completed;
  auto operator<=>(const Message&) const = default;
};

// Packet that was sent: when, by the sender of data or not, opcode, PSN, payload, AckReq, syndrome.
using Sent = std::tuple<Time, bool, uint8_t, uint32_t, uint32_t, bool, uint8_t>;

struct Frame {
  std::vector<uint8_t> bytes;  // exactly what there is: reading beyond is an error that sanitizers find
  PacketMeta meta;
  uint32_t length = 0;
};

Frame build(const OutgoingPacket& out) {
  const DataHeader& h = out.header;
  const uint32_t headers = kLower + kBthHeader + extension_length(h.opcode);
  const uint32_t pad = -out.payload_bytes & 3;
  Frame frame;
  frame.length = headers + out.payload_bytes + pad + kIcrc;
  frame.bytes.resize(headers + (out.payload == nullptr ? 0 : out.payload_bytes + pad));
  uint8_t* at = frame.bytes.data() + kLower;
  store_bth(at, {.opcode = h.opcode,
                 .pad_count = static_cast<uint8_t>(pad),
                 .ack_request = h.ack_request,
                 .partition_key = h.partition_key,
                 .destination_qp = h.destination_qp,
                 .psn = h.psn});
  if ((extensions(h.opcode) & kHasReth) != 0) store_reth(at + kBthHeader, h.reth);
  if ((extensions(h.opcode) & kHasAeth) != 0) store_aeth(at + kBthHeader, h.aeth);
  if (out.payload != nullptr) std::memcpy(frame.bytes.data() + headers, out.payload, out.payload_bytes);
  frame.meta.bth_offset = kLower;
  frame.meta.opcode = h.opcode;
  frame.meta.psn = h.psn;
  frame.meta.pad_count = static_cast<uint8_t>(pad);
  frame.meta.payload_length = static_cast<uint16_t>(out.payload_bytes);
  return frame;
}

class Streams final : public MessageListener {
 public:
  // The left one begins; of READs it is the one who gets them.
  explicit Streams(QueuePairParameters parameters, bool payload = false, uint64_t seed = 1)
      : left(17, for_peer(parameters, 18, 0), payload, *this),
        right(18, for_peer(parameters, 17, kNever), payload, *this),
        source(parameters.reads() ? right : left),
        target(parameters.reads() ? left : right),
        random_(seed) {
    for (size_t i = 0; i < source.bytes.size(); ++i) source.bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  }

  struct Side {
    Side(uint32_t qpn, const QueuePairParameters& parameters, bool payload, MessageListener& listener)
        : parameters(parameters),
          context{bytes.data(), memory, memory.add(ReliableStream::region(bytes.data(), nullptr, kDomain)), kDomain, counters,
                  &listener,    payload},
          stream(qpn, this->parameters, context, by_pair) {}
    const QueuePairParameters parameters;
    std::array<uint8_t, 4'096> bytes{};
    MemoryTable memory{1};
    TransportCounters counters;
    QpCounters by_pair;
    StreamContext context;
    ReliableStream stream;
    Time link_free = 0;
  };

  void message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time completed) override {
    CHECK(qpn == 17);
    CHECK(completed == now);
    messages.push_back({number, bytes, posted, completed});
  }
  void stream_ended(uint32_t qpn, bool failed, Time at) override {
    CHECK(qpn == 17);
    CHECK(at == now);
    CHECK(ended == kNever);
    ended = at;
    this->failed = failed;
  }

  // Runs until nothing moves, or until `until`.
  void run(Time until = 10 * kSecond) {
    for (;;) {
      Time next = std::min(left.stream.next_deadline(), right.stream.next_deadline());
      if (!flying_.empty()) next = std::min(next, flying_.front().at);
      for (const Side* side : {&left, &right}) {
        if (side->stream.control_waits() || side->stream.data_bytes() > 0) next = std::min(next, side->link_free);
      }
      if (next == kNever || next > until) return;
      now = std::max(now, next);
      for (Side* side : {&left, &right}) side->stream.advance(now);
      while (!flying_.empty() && flying_.front().at <= now) {
        const Flying flying = std::move(flying_.front());
        flying_.pop_front();
        flying.to->stream.receive(now, flying.frame.bytes.data(), flying.frame.meta);
      }
      send(left, right);
      send(right, left);
    }
  }

  // All that arrived in sequence came once, and nothing is left behind.
  void check_delivery(uint64_t count, uint64_t bytes) {
    CHECK(ended != kNever);
    CHECK_FALSE(failed);
    REQUIRE(messages.size() == count);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
      CHECK(messages[i].number == i);
      CHECK(messages[i].posted < messages[i].completed);
      if (i > 0) CHECK(messages[i - 1].completed <= messages[i].completed);
      sum += messages[i].bytes;
    }
    CHECK(sum == bytes);
    CHECK(messages.back().completed == ended);
    CHECK(target.by_pair.rx_messages == count);
    CHECK(target.by_pair.rx_bytes == bytes);
    for (const Side* side : {&left, &right}) CHECK(side->stream.data_bytes() == 0);
    CHECK(left.stream.next_deadline() == kNever);
    CHECK(right.counters.out_of_buffer == 0);
  }

  Side left, right;
  Side& source;  // source of the data
  Side& target;
  double loss = 0;
  std::function<bool(bool leftward, const Frame& frame)> on_frame;  // false: it is lost
  std::vector<Message> messages;
  std::vector<Sent> sent;
  Time ended = kNever;
  bool failed = false;
  Time now = 0;

 private:
  struct Flying {
    Time at;
    Side* to;
    Frame frame;
  };

  static QueuePairParameters for_peer(QueuePairParameters parameters, uint32_t qpn, Time start) {
    parameters.start = start;
    parameters.remote_qpn = qpn;
    parameters.remote_address = 0x1'2345'6789;
    return parameters;
  }
  void send(Side& from, Side& to) {
    if (from.link_free > now) return;
    OutgoingPacket out;
    if (from.stream.control_waits()) {
      from.stream.take_control(out);
    } else {
      const uint32_t bytes = from.stream.data_bytes();
      if (bytes == 0) return;
      REQUIRE(from.stream.take_data(now, out));
      const bool as_said = bytes == kBthHeader + extension_length(out.header.opcode) + (out.payload_bytes + 3) / 4 * 4 + kIcrc;
      if (!as_said || (out.payload_bytes > 0 && (out.payload != nullptr) != from.context.payload))
        FAIL("not the packet that was announced");
    }
    const bool leftward = &from == &right;
    sent.emplace_back(now, leftward, out.header.opcode, out.header.psn, out.payload_bytes, out.header.ack_request,
                      leftward ? out.header.aeth.syndrome : uint8_t{0});
    Frame frame = build(out);
    from.link_free = now + link_time(frame.length);
    if (on_frame && !on_frame(leftward, frame)) return;
    if (random_.uniform() < loss) return;
    const auto behind = [](Time at, const Flying& f) { return at < f.at; };
    const Time arrives = from.link_free + kDelay;
    flying_.insert(std::upper_bound(flying_.begin(), flying_.end(), arrives, behind), {arrives, &to, std::move(frame)});
  }

  std::deque<Flying> flying_;
  Random random_;
};

QueuePairParameters parameters_of(Operation operation, LossRecovery recovery, uint32_t message, uint64_t total) {
  QueuePairParameters parameters;
  parameters.stream = {
      .operation = operation, .path_mtu = 1'024, .message_bytes = message, .total_bytes = total, .first_psn = 0xff'fff0};
  parameters.reliable = true;
  parameters.transport.recovery = recovery;
  parameters.transport.timeout = 8;  // 1 ms
  return parameters;
}

TEST_CASE("reliable stream: every message arrives once and in order, also on a bad link, with payload or without") {
  constexpr uint64_t kTotal = 200 * 5'001 - 100;
  for (const Operation operation : kOperations) {
    for (const LossRecovery recovery : kRecoveries) {
      for (const double loss : {0.0, 0.01, 0.1}) {
        CAPTURE(static_cast<int>(operation));
        CAPTURE(static_cast<int>(recovery));
        CAPTURE(loss);
        const auto run = [&](bool payload) {
          Streams streams(parameters_of(operation, recovery, 5'001, kTotal), payload, 7);
          streams.loss = loss;
          streams.left.stream.begin(0);
          streams.run();
          streams.check_delivery(200, kTotal);
          const QpCounters& received = streams.target.by_pair;
          const bool reads = operation == Operation::read;
          const uint64_t extended = 200 * (reads ? 2 * kAethHeader : operation == Operation::write ? kRethHeader : 0);
          const uint64_t around = 1'000 * (kLower + kBthHeader + kIcrc + kEthernetOverhead);
          CHECK(received.rx_packets == 1'000);
          const uint64_t once = kTotal + 200 * 3 + extended + around;
          // A message that is asked for again comes with headers of its own.
          CHECK((reads && loss > 0 ? received.rx_wire_bytes >= once : received.rx_wire_bytes == once));
          CHECK((received.lost > 0) == (loss > 0));
          if (recovery == LossRecovery::go_back_n && !reads) CHECK((received.duplicate > 0) == (loss > 0));
          if (loss == 0) CHECK(received.duplicate == 0);
          const auto& bytes = streams.target.bytes;
          if (payload) CHECK(std::equal(bytes.begin(), bytes.begin() + 1'024, streams.source.bytes.begin()));
          if (!payload) CHECK(std::count(bytes.begin(), bytes.end(), 0) == 4'096);
          return std::pair(streams.sent, streams.messages);
        };
        CHECK(run(true) == run(false));
      }
    }
  }
}

TEST_CASE("reliable stream: with one message at a time the next is posted when the one before is complete") {
  const std::vector<uint32_t> sizes = {1, 1'024, 1'025, 70'000, 3, 500'000, 4};
  for (const Operation operation : kOperations) {
    for (const double loss : {0.0, 0.02}) {
      CAPTURE(loss);
      QueuePairParameters parameters = parameters_of(operation, LossRecovery::go_back_n, 1, 0);
      parameters.sizes = sizes;
      parameters.outstanding = 1;
      Streams streams(parameters);
      streams.loss = loss;
      streams.left.stream.begin(0);
      streams.run();
      streams.check_delivery(sizes.size(), std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
      for (size_t i = 0; i < sizes.size(); ++i) {
        CHECK(streams.messages[i].bytes == sizes[i]);
        CHECK(streams.messages[i].posted == (i == 0 ? 0 : streams.messages[i - 1].completed));
      }
      if (loss > 0) continue;
      // A packet there, an acknowledgement back, or what was asked for.
      const bool reads = operation == Operation::read;
      const uint32_t reth = operation == Operation::send ? 0 : kRethHeader;
      const Time there = link_time(kLower + kBthHeader + reth + (reads ? 0 : 4) + kIcrc) + kDelay;
      const Time back = link_time(kLower + kBthHeader + kAethHeader + (reads ? 4 : 0) + kIcrc) + kDelay;
      CHECK(streams.messages[0].completed == there + back);
      CHECK(streams.messages[6].completed - streams.messages[6].posted == there + back);
    }
  }
}

TEST_CASE("reliable stream: as many messages are posted at a time as asked for, and SENDs always find a receive") {
  for (const Operation operation : kOperations) {
    for (const uint16_t outstanding : std::to_array<uint16_t>({2, 5, 32, 45})) {
      CAPTURE(outstanding);
      QueuePairParameters parameters = parameters_of(operation, LossRecovery::go_back_n, 700, 700 * 400);
      parameters.outstanding = outstanding;
      Streams streams(parameters);
      uint32_t most = 0;
      streams.on_frame = [&](bool leftward, const Frame& frame) {
        const auto sent = static_cast<uint32_t>(psn_distance(frame.meta.psn, 0xff'fff0)) + 1;
        if (!leftward) most = std::max(most, sent - static_cast<uint32_t>(streams.messages.size()));
        return true;
      };
      streams.left.stream.begin(0);
      streams.run();
      streams.check_delivery(400, 700 * 400);
      CHECK(most == (operation == Operation::read ? std::min<uint32_t>(outstanding, 16) : outstanding));
      for (size_t i = 0; i < 400; ++i) {
        CHECK(streams.messages[i].posted == (i < outstanding ? 0 : streams.messages[i - outstanding].completed));
      }
    }
  }
}

TEST_CASE("reliable stream: no more packets in flight than the window, up to 65536 of them") {
  for (const LossRecovery recovery : kRecoveries) {
    for (const uint32_t window : {4u, 100u, 256u, 5'000u, 65'536u}) {
      if (recovery == LossRecovery::selective_repeat && window > kMaxSelectiveWindow) continue;
      CAPTURE(window);
      constexpr uint64_t kTotal = 256 * 150'000;
      QueuePairParameters parameters = parameters_of(Operation::write, recovery, 256 * 70'000, kTotal);
      parameters.stream.path_mtu = 256;
      parameters.transport.window = window;
      parameters.transport.timeout = 14;  // 67 ms
      Streams streams(parameters);
      uint32_t furthest = 0;
      streams.on_frame = [&](bool leftward, const Frame& frame) {
        if (!leftward) furthest = static_cast<uint32_t>(psn_distance(frame.meta.psn, 0xff'fff0)) + 1;
        return !leftward;
      };
      streams.left.stream.begin(0);
      streams.run(50 * kMillisecond);
      CHECK(furthest == window);
      streams.on_frame = nullptr;
      streams.run();
      streams.check_delivery(3, kTotal);
    }
  }
}

TEST_CASE("reliable stream: a wide window fills a long link, a narrow one does not; lost packets are made up for") {
  const auto time_of = [](uint32_t window, double loss) {
    QueuePairParameters parameters = parameters_of(Operation::write, LossRecovery::go_back_n, 1 << 20, 20 << 20);
    parameters.transport.window = window;
    Streams streams(parameters, false, 3);
    streams.loss = loss;
    streams.left.stream.begin(0);
    streams.run();
    streams.check_delivery(20, 20 << 20);
    return streams.ended;
  };
  const Time at_line_rate = static_cast<Time>(20 << 10) * link_time(kLower + kBthHeader + 1'024 + kIcrc);
  const Time wide = time_of(2'048, 0);
  CHECK(wide > at_line_rate);
  CHECK(wide < at_line_rate * 101 / 100 + 2 * kDelay);
  // 8 packets in two delays and a bit.
  CHECK(time_of(8, 0) > static_cast<Time>(20 << 10) / 8 * 2 * kDelay);
  CHECK(time_of(2'048, 0.001) > wide);
}

TEST_CASE("reliable stream: one without end goes on until it is closed; then nothing moves and nothing is told") {
  for (const LossRecovery recovery : kRecoveries) {
    Streams streams(parameters_of(Operation::send, recovery, 10'000, 0));
    streams.loss = 0.001;
    streams.left.stream.begin(0);
    streams.run(2 * kMillisecond);
    const size_t before = streams.messages.size();
    CHECK(before > 100);
    streams.run(20 * kMillisecond);
    CHECK(streams.messages.size() > 2 * before);
    CHECK(streams.ended == kNever);
    const size_t messages = streams.messages.size();
    streams.left.stream.close();
    CHECK(streams.left.stream.data_bytes() == 0);
    CHECK(streams.left.stream.next_deadline() == kNever);
    const uint64_t received = streams.right.by_pair.rx_packets;
    streams.run(30 * kMillisecond);
    CHECK(streams.right.by_pair.rx_packets >= received);
    streams.right.stream.close();
    CHECK_FALSE(streams.right.stream.control_waits());
    CHECK(streams.messages.size() == messages);
    CHECK(streams.ended == kNever);
  }
}

TEST_CASE("reliable stream: who has asked for data and is closed still gets them, and tells nobody; either end may be closed") {
  for (const LossRecovery recovery : kRecoveries) {
    QueuePairParameters parameters = parameters_of(Operation::read, recovery, 10'000, 0);
    parameters.outstanding = 4;
    Streams streams(parameters);
    streams.left.stream.begin(0);
    streams.run(2 * kMillisecond);
    const std::pair before(streams.messages.size(), streams.left.by_pair.rx_bytes);
    streams.left.stream.close();
    streams.run();
    CHECK(streams.left.by_pair.rx_bytes >= before.second + 30'000);
    CHECK(streams.left.by_pair.rx_bytes % 10'000 == 0);
    CHECK(streams.messages.size() == before.first);
    CHECK((streams.left.stream.data_bytes() == 0 && streams.right.stream.data_bytes() == 0));

    Streams others(parameters);
    others.left.stream.begin(0);
    others.run(2 * kMillisecond);
    CHECK(others.right.stream.data_bytes() > 0);
    others.right.stream.close();
    CHECK(others.right.stream.data_bytes() == 0);
    others.run(3 * kMillisecond);
    CHECK(others.right.counters.drop_wrong_state > 0);
  }
}

TEST_CASE("reliable stream: packets to a receiver that is closed, and answers to one that never sent, change nothing") {
  Streams streams(parameters_of(Operation::write, LossRecovery::go_back_n, 5'000, 5'000));
  std::vector<Frame> requests, answers;
  streams.on_frame = [&](bool leftward, const Frame& frame) { return (leftward ? answers : requests).push_back(frame), true; };
  streams.left.stream.begin(0);
  streams.run();
  streams.check_delivery(1, 5'000);
  REQUIRE(requests.size() == 5);
  REQUIRE(answers.size() == 1);
  const auto give = [](Streams::Side& to, const Frame& frame) { to.stream.receive(kSecond, frame.bytes.data(), frame.meta); };
  // Requests that come again before it is closed are acknowledged again.
  give(streams.right, requests[4]);
  CHECK(streams.right.stream.control_waits());
  CHECK(streams.right.by_pair.duplicate == 1);
  give(streams.right, answers[0]);
  CHECK(streams.right.counters.drop_wrong_state == 1);
  streams.right.stream.close();
  for (const Frame& frame : requests) give(streams.right, frame);
  for (const Frame& frame : answers) give(streams.left, frame);
  CHECK_FALSE(streams.right.stream.control_waits());
  CHECK(streams.right.by_pair.rx_packets == 5);
  CHECK(streams.messages.size() == 1);

  Streams idle(parameters_of(Operation::write, LossRecovery::go_back_n, 5'000, 5'000));
  give(idle.left, answers[0]);
  CHECK(idle.left.counters.drop_wrong_state == 1);
  idle.left.stream.begin(0);
  idle.run();
  idle.check_delivery(1, 5'000);
}

TEST_CASE("reliable stream: without answers it gives up after all its retries, and says so once") {
  for (const LossRecovery recovery : kRecoveries) {
    QueuePairParameters parameters = parameters_of(Operation::write, recovery, 3'000, 0);
    parameters.transport.retry_count = 2;
    parameters.outstanding = 3;
    Streams streams(parameters);
    streams.on_frame = [&](bool, const Frame&) { return streams.now < 1 * kMillisecond; };
    streams.left.stream.begin(0);
    streams.run();
    CHECK(streams.failed);
    const size_t completed = streams.messages.size();
    CHECK(completed > 0);
    CHECK(streams.left.counters.local_ack_timeout_err == 3);
    CHECK(streams.left.counters.req_transport_retries_exceeded == 1);
    // Each time about one timeout after what was sent last.
    const Time since = streams.ended - streams.messages.back().completed;
    CHECK(since >= 3 * ack_timeout(8));
    CHECK(since < 3 * ack_timeout(8) + 100 * kMicrosecond);
    CHECK(streams.left.stream.next_deadline() == kNever);
    CHECK(streams.left.stream.data_bytes() == 0);
    streams.on_frame = nullptr;
    streams.run(20 * kSecond);
    CHECK(streams.messages.size() == completed);
  }
}

TEST_CASE("reliable stream: no messages at all end at once; without its region it fails") {
  QueuePairParameters parameters = parameters_of(Operation::write, LossRecovery::go_back_n, 0, 0);
  Streams empty(parameters);
  empty.left.stream.begin(0);
  CHECK(empty.ended == 0);
  CHECK_FALSE(empty.failed);
  CHECK(empty.sent.empty());

  Streams streams(parameters_of(Operation::write, LossRecovery::go_back_n, 5'000, 0));
  REQUIRE(streams.left.memory.remove(streams.left.context.key));
  streams.left.stream.begin(0);
  OutgoingPacket out;
  REQUIRE(streams.left.stream.data_bytes() > 0);
  CHECK_FALSE(streams.left.stream.take_data(0, out));
  CHECK(streams.failed);
  CHECK(streams.left.stream.data_bytes() == 0);
}

TEST_CASE("reliable stream: parameters out of their range are refused") {
  const auto make = [](auto change) {
    QueuePairParameters parameters = parameters_of(Operation::write, LossRecovery::go_back_n, 1, 1);
    change(parameters);
    Streams streams(parameters);
  };
  CHECK_NOTHROW(make([](QueuePairParameters& p) { p.transport.window = 65'536; }));
  CHECK_THROWS_AS(make([](QueuePairParameters& p) { p.transport.window = 65'537; }), NativeError);
  CHECK_THROWS_AS(
      make([](QueuePairParameters& p) { p.transport.window = 257, p.transport.recovery = LossRecovery::selective_repeat; }),
      NativeError);
  CHECK_THROWS_AS(make([](QueuePairParameters& p) { p.stream.path_mtu = 1'500; }), NativeError);
  CHECK_THROWS_AS(make([](QueuePairParameters& p) { p.transport.timeout = 32; }), NativeError);
}

TEST_CASE("reliable stream: what is idle weighs little") {
  CHECK(sizeof(ReliableStream) <= 320);
  CHECK(sizeof(ReliableConnection) <= 768);
}

}  // namespace
}  // namespace weir
