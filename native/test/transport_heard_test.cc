// News of acknowledgements for congestion control: how much, of which mark, and when it was sent.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "test/refusal.h"
#include "test/transport_harness.h"

namespace weir::test {
namespace {

constexpr uint32_t kMtu = 1'024;

// Sends `packets` of a message, one after another, and gives them the send times 1'000, 2'000 ...
std::vector<OutgoingPacket> send(End& from, uint32_t packets, Time first = 1'000) {
  std::vector<OutgoingPacket> sent(packets);
  for (uint32_t i = 0; i < packets; ++i) {
    REQUIRE(from.rc.data_bytes() > 0);
    REQUIRE(from.rc.take_data(first + i * Time{1'000}, sent[i]));
  }
  return sent;
}

struct Talk {
  explicit Talk(LossRecovery recovery, Spraying spraying = Spraying::none) {
    pair.both([&](QueueAttributes& a) {
      a.path_mtu = kMtu;
      a.spraying = spraying;
      a.entropies = kMaxEntropies;
      a.recovery = recovery;
      a.informs = true;
    });
    pair.connect();
    source = pair.left.make_region(8 * kMtu);
    target = pair.right.make_region(8 * kMtu);
    SendWork work;
    work.opcode = WorkOpcode::write;
    work.length = 8 * kMtu;
    work.local_address = source.address;
    work.local_key = source.key;
    work.remote_address = target.address;
    work.remote_key = target.key;
    pair.left.rc.post_send(work);
  }
  // An acknowledgement of all up to packet `last` arrives.
  Heard acknowledge(uint32_t last, Time at, bool echo = false) {
    DataHeader header;
    header.opcode = kOpcodeRcAcknowledge;
    header.psn = psn_add(pair.left_attributes.send_psn, last);
    header.aeth = {kNoCredits, 0};
    header.becn = echo;
    pair.now = at;
    pair.deliver(pair.left, pair.to(pair.left, header));
    Heard heard;
    CHECK(pair.left.rc.take_heard(heard));
    return heard;
  }

  Pair pair;
  Region source, target;
};

}  // namespace

TEST_CASE("transport: an acknowledgement tells when the newest of its packets was sent, unless one was sent twice") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    CAPTURE(static_cast<int>(recovery));
    Talk talk(recovery);
    send(talk.pair.left, 5);
    const Heard first = talk.acknowledge(0, 9'000, true);
    CHECK(first.ack.packets == 1);
    CHECK(first.ack.marked);
    CHECK(first.ack.sent == 1'000);
    CHECK(first.ack.arrived == 9'000);
    CHECK(first.ack.in_flight == 4);
    CHECK(first.ack.wanted == 8);
    const Heard second = talk.acknowledge(2, 9'500);
    CHECK(second.ack.packets == 2);
    CHECK_FALSE(second.ack.marked);
    CHECK(second.ack.sent == 3'000);
    CHECK(second.ack.wanted == 7);
    Heard nothing;
    CHECK_FALSE(talk.pair.left.rc.take_heard(nothing));

    // The timer ends, and what is in flight is sent again: which of both is answered nobody knows.
    talk.pair.left.rc.advance(talk.pair.left.rc.next_deadline());
    Heard timeout;
    REQUIRE(talk.pair.left.rc.take_heard(timeout));
    CHECK(timeout.timed_out);
    CHECK(timeout.ack.packets == 0);
    CHECK(timeout.ack.in_flight == 2);
    send(talk.pair.left, 3, 5'000'000);
    const Heard again = talk.acknowledge(3, 6'000'000);
    CHECK(again.ack.packets == 1);
    CHECK(again.ack.sent == kNever);
    // One of two was sent once.
    const Heard mixed = talk.acknowledge(5, 6'500'000);
    CHECK(mixed.ack.packets == 2);
    CHECK(mixed.ack.sent == kNever);
    send(talk.pair.left, 2, 7'000'000);
    CHECK(talk.acknowledge(7, 7'900'000).ack.sent == 7'001'000);
  }
}

// A NAK for the packet `missing`, which says that those of `early` are here.
Heard nak(Talk& talk, uint32_t missing, std::vector<uint32_t> early, Time at, bool echo = false) {
  std::vector<uint8_t> bitmap(kMaxSelectiveWindow / 8);
  for (const uint32_t packet : early) {
    const uint32_t bit = packet - missing;
    bitmap[bit / 8] = static_cast<uint8_t>(bitmap[bit / 8] | 1u << (bit % 8));
  }
  DataHeader header;
  header.opcode = kOpcodeRcAcknowledge;
  header.psn = psn_add(talk.pair.left_attributes.send_psn, missing);
  header.aeth = {kNakSequence, 0};
  header.becn = echo;
  talk.pair.now = at;
  talk.pair.deliver(talk.pair.left, talk.pair.to(talk.pair.left, header, bitmap));
  Heard heard;
  talk.pair.left.rc.take_heard(heard);
  return heard;
}

TEST_CASE("transport: with selective repeat each packet that came early is told of once, when its NAK comes") {
  Talk talk(LossRecovery::selective_repeat);
  send(talk.pair.left, 5);
  const Heard first = nak(talk, 0, {2}, 9'000, true);
  CHECK(first.ack.packets == 1);
  CHECK(first.ack.marked);
  CHECK(first.ack.sent == 3'000);
  CHECK(first.ack.in_flight == 4);
  const Heard second = nak(talk, 0, {1, 2}, 9'500);
  CHECK(second.ack.packets == 1);
  CHECK_FALSE(second.ack.marked);
  CHECK(second.ack.sent == 2'000);
  CHECK(second.ack.in_flight == 3);
  CHECK(nak(talk, 0, {1, 2}, 9'600).ack.packets == 0);
  // Packets 1 and 2 are acknowledged with it, and no news.
  const Heard third = talk.acknowledge(3, 9'700);
  CHECK(third.ack.packets == 2);
  CHECK(third.ack.sent == 4'000);
  CHECK(third.ack.in_flight == 1);
}

TEST_CASE("transport: what came early leaves room in the congestion window, and what is lost does, too") {
  Talk talk(LossRecovery::selective_repeat);
  End& left = talk.pair.left;
  left.rc.limit(3, 0);
  send(left, 3);
  CHECK(left.rc.data_bytes() == 0);
  nak(talk, 0, {1}, 9'000);
  std::vector<OutgoingPacket> sent = send(left, 1, 10'000);
  CHECK(sent[0].header.psn == psn_add(talk.pair.left_attributes.send_psn, 3));
  CHECK(left.rc.data_bytes() == 0);
  // Five were sent behind the first: it is lost, and goes again in its own place.
  nak(talk, 0, {1, 2}, 11'000);
  send(left, 1, 12'000);
  nak(talk, 0, {1, 2, 3}, 13'000);
  send(left, 1, 14'000);
  CHECK(left.rc.data_bytes() == 0);
  const Heard loss = nak(talk, 0, {1, 2, 3, 4}, 15'000);
  CHECK(loss.lost);
  sent = send(left, 2, 16'000);
  CHECK(sent[0].header.psn == talk.pair.left_attributes.send_psn);
  CHECK(left.rc.data_bytes() == 0);
}

TEST_CASE(
    "transport: with selective repeat a packet is lost when one that was sent a timeout later has arrived, and REPS freezes") {
  Talk talk(LossRecovery::selective_repeat, Spraying::reps);
  End& left = talk.pair.left;
  const Time timeout = ack_timeout(talk.pair.left_attributes.timeout);
  send(left, 1);
  const uint16_t first = send(left, 1, 1'000 + timeout - 1)[0].header.entropy;
  CHECK_FALSE(nak(talk, 0, {1}, timeout + 9'000).lost);
  const uint16_t second = send(left, 1, timeout + 9'500)[0].header.entropy;
  CHECK(second == first);
  CHECK(nak(talk, 0, {1, 2}, timeout + 20'000).lost);
  CHECK(left.counters.local_ack_timeout_err == 0);
  const std::vector<OutgoingPacket> sent = send(left, 4, timeout + 21'000);
  CHECK(sent[0].header.psn == talk.pair.left_attributes.send_psn);
  // None is drawn.
  for (const OutgoingPacket& packet : sent) CHECK(packet.header.entropy == first);
}

TEST_CASE("transport: with selective repeat the timer is of the oldest packet, and else of the latest") {
  for (const LossRecovery recovery : {LossRecovery::selective_repeat, LossRecovery::go_back_n}) {
    Talk talk(recovery);
    ReliableConnection& left = talk.pair.left.rc;
    const Time timeout = ack_timeout(talk.pair.left_attributes.timeout);
    send(talk.pair.left, 7);
    send(talk.pair.left, 1, 50'000);
    const bool selective = recovery == LossRecovery::selective_repeat;
    CHECK(left.next_deadline() == (selective ? 1'000 : 50'000) + timeout);
    if (!selective) continue;
    // The oldest is lost, and goes again.
    nak(talk, 0, {1, 2, 3, 4, 5}, 60'000);
    left.advance(1'000 + timeout);
    CHECK(left.next_deadline() == 1'000 + 2 * timeout);
    send(talk.pair.left, 1, 2'000 + timeout);
    left.advance(1'000 + 2 * timeout);
    CHECK(left.next_deadline() == 2'000 + 2 * timeout);
    CHECK(talk.pair.left.counters.local_ack_timeout_err == 0);
    left.advance(2'000 + 2 * timeout);
    CHECK(talk.pair.left.counters.local_ack_timeout_err == 1);
  }
}

TEST_CASE("transport: a sender that sprays knows the entropy value of what is acknowledged, and uses it again") {
  Talk talk(LossRecovery::selective_repeat, Spraying::reps);
  std::vector<OutgoingPacket> sent = send(talk.pair.left, 4);
  std::set<uint16_t> drawn;
  for (const OutgoingPacket& packet : sent) drawn.insert(packet.header.entropy);
  REQUIRE(drawn.size() == 4);
  nak(talk, 0, {2}, 9'000);
  nak(talk, 0, {2, 3}, 9'100, true);
  talk.acknowledge(0, 9'200);
  const std::vector<OutgoingPacket> next = send(talk.pair.left, 3, 10'000);
  CHECK(next[0].header.entropy == sent[2].header.entropy);
  CHECK(next[1].header.entropy == sent[0].header.entropy);
  CHECK_FALSE(drawn.contains(next[2].header.entropy));
}

TEST_CASE("transport: acknowledgements of sprayed packets have all entropy values in turn, and others that of the path") {
  for (const Spraying spraying : {Spraying::none, Spraying::oblivious, Spraying::reps}) {
    Talk talk(LossRecovery::selective_repeat, spraying);
    std::set<uint16_t> values;
    for (uint32_t i = 0; i < 100; ++i) {
      DataHeader header;
      header.opcode = kOpcodeRcWriteOnly;
      header.psn = psn_add(talk.pair.right_attributes.receive_psn, i);
      header.reth = {talk.target.address, talk.target.key, 8};
      header.ack_request = true;
      talk.pair.deliver(talk.pair.right, talk.pair.to(talk.pair.right, header, std::vector<uint8_t>(8)));
      REQUIRE(talk.pair.right.rc.control_waits());
      OutgoingPacket out;
      talk.pair.right.rc.take_control(out);
      values.insert(out.header.entropy);
    }
    CHECK(values.size() == (spraying == Spraying::none ? 1 : 100));
    CHECK(values.contains(0) == (spraying == Spraying::none));
  }
}

TEST_CASE("transport: without spraying all packets have the entropy value 0, which is the path's") {
  Talk talk(LossRecovery::selective_repeat);
  for (const OutgoingPacket& packet : send(talk.pair.left, 4)) CHECK(packet.header.entropy == 0);
  talk.acknowledge(3, 9'000);
  for (const OutgoingPacket& packet : send(talk.pair.left, 4, 10'000)) CHECK(packet.header.entropy == 0);
}

TEST_CASE("transport: spraying is of selective repeat, over 1 to 16384 values") {
  QueueAttributes a;
  a.spraying = Spraying::reps;
  CHECK(refusal([&] { require_attributes(a); }) == "INVALID_ATTRIBUTE");
  a.recovery = LossRecovery::selective_repeat;
  CHECK(refusal([&] { require_attributes(a); }).empty());
  for (const uint16_t values : {uint16_t{0}, uint16_t{16'385}}) {
    a.entropies = values;
    CHECK(refusal([&] { require_attributes(a); }) == "INVALID_ATTRIBUTE");
  }
}

}  // namespace weir::test
