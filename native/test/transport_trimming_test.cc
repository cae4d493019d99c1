// Packets that a switch has trimmed: asked for at once, sent again once, and never believed further than that.
#include <algorithm>
#include <vector>

#include "test/trimming_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;
using test::Trimming;

constexpr uint32_t kMtu = Trimming::kMtu;

// The left end WRITEs messages of some packets to the right one.
struct Writes : Trimming {
  explicit Writes(bool trim_naks = true, bool informs = false) : Trimming(WorkOpcode::write, trim_naks, informs) {}

  Frame packet(uint32_t at) {
    DataHeader header;
    header.opcode = kOpcodeRcWriteOnly;
    header.ack_request = true;
    header.psn = psn_add(pair.right_attributes.receive_psn, at);
    header.reth = {target.address, target.key, 8};
    return pair.to(pair.right, header, std::vector<uint8_t>(8, 0x55));
  }
  // Takes all that the receiver wants to say.
  std::vector<Frame> said() {
    std::vector<Frame> all;
    pair.on_frame = [&](End& from, Frame& frame) {
      if (&from == &pair.right) all.push_back(frame);
      return false;
    };
    pair.run(1 * kMicrosecond);
    return all;
  }
  // A NAK that names packets `first` + i for each bit i of `bits`.
  Frame nak(uint32_t first, uint8_t bits, uint8_t code = kNakTrimmed, uint32_t length = kMaxSelectiveWindow / 8) {
    DataHeader header;
    header.opcode = kOpcodeRcAcknowledge;
    header.psn = psn_add(pair.left_attributes.send_psn, first);
    header.aeth = {code, 0};
    std::vector<uint8_t> bitmap(length);
    if (length > 0) bitmap[0] = bits;
    return pair.to(pair.left, header, bitmap);
  }
};

uint32_t bits_of(const Frame& nak) {
  REQUIRE(nak.payload() == kMaxSelectiveWindow / 8);
  const uint8_t* bitmap = nak.packet() + kBthHeader + kAethHeader;
  for (uint32_t i = 1; i < kMaxSelectiveWindow / 8; ++i) CHECK(bitmap[i] == 0);
  return bitmap[0];
}

TEST_CASE("trimmed: the last packet of a message, behind which nothing comes, is sent again without a timer") {
  for (uint32_t times : {1u, 3u}) {
    CAPTURE(times);
    Writes writes;
    writes.trim({5}, times);
    writes.post(6);
    REQUIRE(writes.pair.run());
    for (uint32_t i = 0; i < 6; ++i) CHECK(writes.sent[i] == (i == 5 ? 1 + times : 1));
    CHECK(writes.arrived(6));
    const TransportCounters& left = writes.pair.left.counters;
    CHECK(left.local_ack_timeout_err == 0);
    CHECK(left.rx_trim_naks == times);
    CHECK(left.trimmed_requests == times);
    CHECK(left.retransmitted == times);
    CHECK(writes.pair.right.counters.tx_trim_naks == times);
    CHECK(writes.pair.right.counters.drop_trimmed == 0);
    // 6 packets and the answer take 5 us each way; each time more a NAK, a packet and its answer.
    CHECK(writes.pair.now < (2 + 2 * times) * 6 * kMicrosecond);
  }
}

TEST_CASE("trimmed: one in the middle is sent again once, although many that were sent later arrive") {
  Writes writes;
  writes.trim({2}, 1);
  writes.post(40);
  REQUIRE(writes.pair.run());
  for (uint32_t i = 0; i < 40; ++i) CHECK(writes.sent[i] == (i == 2 ? 2 : 1));
  CHECK(writes.pair.right.counters.duplicate_request == 0);
}

TEST_CASE("trimmed: without trim_naks it is as lost as any other") {
  Writes writes(false);
  writes.trim({5}, 1);
  writes.post(6);
  REQUIRE(writes.pair.run());
  CHECK(writes.sent[5] == 2);
  CHECK(writes.pair.left.counters.local_ack_timeout_err == 1);
  CHECK(writes.pair.right.counters.tx_trim_naks == 0);
  CHECK(writes.pair.right.counters.drop_trimmed == 0);
}

TEST_CASE("trimmed: one NAK names all, another says what came early, and each says it once") {
  Writes writes;
  Pair& pair = writes.pair;
  for (uint32_t at : {0u, 3u, 0u}) pair.trim(pair.right, writes.packet(at));
  pair.deliver(pair.right, writes.packet(1));
  std::vector<Frame> said = writes.said();
  REQUIRE(said.size() == 2);
  CHECK(said[0].syndrome() == kNakTrimmed);
  CHECK(bits_of(said[0]) == 0b1001);
  CHECK(said[1].syndrome() == kNakSequence);
  CHECK(bits_of(said[1]) == 0b10);
  for (const Frame& nak : said) CHECK(nak.psn() == pair.right_attributes.receive_psn);
  CHECK(pair.right.counters.tx_naks == 2);
  CHECK(pair.right.counters.tx_trim_naks == 1);

  // The packet that fills the gap makes the next ones be asked for from there on. Packet 3 comes before it could be asked for.
  for (uint32_t at : {3u, 4u}) pair.trim(pair.right, writes.packet(at));
  for (uint32_t at : {3u, 0u}) pair.deliver(pair.right, writes.packet(at));
  said = writes.said();
  REQUIRE(said.size() == 2);
  CHECK(said[0].syndrome() == kNakTrimmed);
  CHECK(bits_of(said[0]) == 0b100);
  CHECK(said[1].syndrome() == kNakSequence);
  CHECK(bits_of(said[1]) == 0b10);
  for (const Frame& nak : said) CHECK(nak.psn() == psn_add(pair.right_attributes.receive_psn, 2));

  // A gap that is filled before the NAK has left needs none.
  pair.trim(pair.right, writes.packet(2));
  pair.deliver(pair.right, writes.packet(2));
  said = writes.said();
  REQUIRE(said.size() == 1);
  CHECK(said[0].syndrome() < kSyndromeRnrNak);
  CHECK(said[0].psn() == psn_add(pair.right_attributes.receive_psn, 3));
}

TEST_CASE("trimmed: a packet that found no receive, and is trimmed when it comes again, is asked for") {
  Writes writes;
  Pair& pair = writes.pair;
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  header.psn = pair.right_attributes.receive_psn;
  const Frame send = pair.to(pair.right, header, std::vector<uint8_t>(8));
  pair.deliver(pair.right, send);
  // It comes beside the RNR NAK, which is not given up for it, and after it.
  pair.trim(pair.right, writes.packet(3));
  std::vector<Frame> said = writes.said();
  REQUIRE(said.size() == 2);
  CHECK((said[0].syndrome() & kSyndromeKind) == kSyndromeRnrNak);
  CHECK(said[1].syndrome() == kNakTrimmed);
  CHECK(bits_of(said[1]) == 0b1000);
  pair.deliver(pair.right, send);
  CHECK(writes.said().size() == 1);
  pair.trim(pair.right, send);
  said = writes.said();
  REQUIRE(said.size() == 1);
  CHECK(said[0].syndrome() == kNakTrimmed);
  CHECK(bits_of(said[0]) == 0b1);
}

TEST_CASE("trimmed: headers that cannot be of a packet that is awaited change nothing") {
  Writes writes;
  Pair& pair = writes.pair;
  pair.deliver(pair.right, writes.packet(0));
  pair.deliver(pair.right, writes.packet(2));
  writes.said();
  uint64_t refused = 0;
  // These are behind, too far ahead, or here already.
  for (uint32_t at : {0u, 0x800000u, 257u, 0x7fffffu, 2u}) {
    CAPTURE(at);
    pair.trim(pair.right, writes.packet(at));
    CHECK(pair.right.counters.drop_trimmed == ++refused);
    CHECK_FALSE(pair.right.rc.control_waits());
  }
  DataHeader header;
  header.psn = psn_add(pair.right_attributes.receive_psn, 1);
  for (uint8_t opcode : {kOpcodeRcReadRequest, kOpcodeRcAcknowledge, kOpcodeRcReadResponseOnly, kOpcodeRcFetchAdd}) {
    header.opcode = opcode;
    pair.trim(pair.right, pair.to(pair.right, header));
    CHECK_FALSE(pair.right.rc.control_waits());
  }
  header.opcode = kOpcodeRcWriteOnly;
  header.partition_key = 0x1234;
  pair.trim(pair.right, pair.to(pair.right, header));
  CHECK(pair.right.counters.drop_partition_key == 1);
  CHECK_FALSE(pair.right.rc.control_waits());
  // The farthest that may come is asked for.
  pair.trim(pair.right, writes.packet(256));
  CHECK(pair.right.rc.control_waits());
  pair.right.rc.modify(QueuePairState::error, {});
  pair.trim(pair.right, writes.packet(1));
  CHECK(pair.right.counters.drop_wrong_state == 1);
}

TEST_CASE("trimmed: forged headers of packets that arrive cost copies of these, one for each NAK at most") {
  Writes writes;
  Pair& pair = writes.pair;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (&from != &pair.left) return true;
    ++writes.sent[writes.offset(frame)];
    for (int i = 0; i < 10; ++i) pair.trim(pair.right, frame);
    return true;
  };
  writes.post(40);
  REQUIRE(pair.run());
  CHECK(pair.left.take().size() == 1);
  CHECK(std::memcmp(writes.target.data(), writes.source.data(), 40 * kMtu) == 0);
  CHECK(pair.left.counters.local_ack_timeout_err == 0);
  CHECK(pair.left.counters.retransmitted <= pair.left.counters.trimmed_requests);
  CHECK(pair.right.counters.duplicate_request + pair.right.counters.drop_reorder <= pair.left.counters.retransmitted);
}

TEST_CASE("trimmed: a NAK is believed of SENDs and WRITEs that are under way, and of no others") {
  Writes writes;
  Pair& pair = writes.pair;
  const Region sink = pair.left.make_region(4 * kMtu, 3);
  writes.post(2);
  pair.left.rc.post_send(
      {1, WorkOpcode::read, kSignaled, 2 * kMtu, sink.address, sink.key, writes.target.key, writes.target.address});
  writes.post(2);
  pair.on_frame = [&](End&, Frame& frame) { return ++writes.sent[writes.offset(frame)], false; };
  pair.run(100 * kMicrosecond);
  const TransportCounters& counters = pair.left.counters;
  // Packets 0 and 1, the READ's 2 and 3, 4 and 5.
  pair.deliver(pair.left, writes.nak(0, 0xff, kNakTrimmed, 0));
  pair.deliver(pair.left, writes.nak(0, 0xff, kNakTrimmed, 64));
  pair.deliver(pair.left, writes.nak(6, 0xff));
  CHECK(counters.drop_unexpected_response == 3);
  CHECK(counters.trimmed_requests == 0);
  pair.deliver(pair.left, writes.nak(0, 0xff));
  CHECK(counters.trimmed_requests == 4);
  // A packet that waits to be sent again is not lost once more.
  pair.deliver(pair.left, writes.nak(0, 0xff));
  CHECK(counters.trimmed_requests == 4);
  CHECK(counters.rx_trim_naks == 2);
  writes.sent.clear();
  pair.run(100 * kMicrosecond);
  CHECK(writes.sent == std::map<uint32_t, uint32_t>{{0, 1}, {1, 1}, {4, 1}, {5, 1}});

  Writes plain(false);
  plain.post(2);
  plain.pair.on_frame = [](End&, Frame&) { return false; };
  plain.pair.run(100 * kMicrosecond);
  plain.pair.deliver(plain.pair.left, plain.nak(0, 1));
  CHECK(plain.pair.left.counters.drop_unexpected_response == 1);
  CHECK(plain.pair.left.rc.data_bytes() == 0);
}

TEST_CASE("trimmed: a NAK that an acknowledgement has overtaken still names what is under way") {
  Writes writes;
  Pair& pair = writes.pair;
  writes.post(6);
  pair.on_frame = [&](End&, Frame& frame) { return ++writes.sent[writes.offset(frame)], false; };
  pair.run(100 * kMicrosecond);
  writes.sent.clear();
  const TransportCounters& counters = pair.left.counters;
  pair.deliver(pair.left, writes.nak(1, 0, 0x1f, 0));  // an acknowledgement of packets 0 and 1
  pair.deliver(pair.left, writes.nak(0, 0b11011));
  CHECK(counters.trimmed_requests == 2);
  // It came early when the NAK was made, and is with the peer now.
  pair.deliver(pair.left, writes.nak(0, 0b100000, kNakSequence));
  CHECK(counters.drop_unexpected_response == 0);
  pair.run(100 * kMicrosecond);
  CHECK(writes.sent == std::map<uint32_t, uint32_t>{{3, 1}, {4, 1}});
  // Nothing so old can be on the way.
  pair.deliver(pair.left, writes.nak(static_cast<uint32_t>(1 - static_cast<int32_t>(kMaxSelectiveWindow)), 0));
  CHECK(counters.drop_unexpected_response == 1);
}

TEST_CASE("trimmed: congestion control hears of it, and what is trimmed or has come early leaves its window") {
  Writes writes(true, true);
  Pair& pair = writes.pair;
  pair.left.rc.limit(4, 0);
  writes.post(12);
  std::vector<uint32_t> order;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (&from == &pair.left) order.push_back(writes.offset(frame));
    return false;
  };
  pair.run(100 * kMicrosecond);
  CHECK(order == std::vector<uint32_t>{0, 1, 2, 3});
  Heard heard;
  pair.deliver(pair.left, writes.nak(0, 0b1));
  REQUIRE(pair.left.rc.take_heard(heard));
  CHECK(heard.trimmed.packets == 1);
  CHECK(heard.trimmed.in_flight == 3);
  CHECK(heard.ack.packets == 0);
  CHECK_FALSE(heard.lost);
  // 1 and 2 are with the peer: 0 goes again, and there is room for two more.
  pair.deliver(pair.left, writes.nak(0, 0b110, kNakSequence));
  REQUIRE(pair.left.rc.take_heard(heard));
  CHECK(heard.trimmed.packets == 0);
  CHECK(heard.ack.packets == 2);
  CHECK_FALSE(heard.lost);
  order.clear();
  pair.run(100 * kMicrosecond);
  CHECK(order == std::vector<uint32_t>{0, 4, 5});
}

TEST_CASE("trimmed: congestion control hears when the newest of them was sent, of those that were sent but once") {
  Writes writes(true, true);
  Pair& pair = writes.pair;
  writes.post(4);
  std::map<uint32_t, Time> sent_at;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (&from == &pair.left) sent_at[writes.offset(frame)] = pair.now;
    return false;
  };
  pair.run(100 * kMicrosecond);
  const std::map<uint32_t, Time> first = sent_at;
  REQUIRE(first.size() == 4);
  const auto hears = [&](uint8_t bits) {
    pair.deliver(pair.left, writes.nak(0, bits));
    Heard heard;
    REQUIRE(pair.left.rc.take_heard(heard));
    return heard.trimmed;
  };
  CHECK(hears(0b0110).sent == first.at(2));
  pair.run(100 * kMicrosecond);
  REQUIRE(sent_at.at(2) > first.at(3));
  const Trimmed again = hears(0b0110);
  CHECK(again.packets == 2);
  CHECK(again.sent == kNever);
  pair.run(100 * kMicrosecond);
  const Trimmed mixed = hears(0b0111);
  CHECK(mixed.packets == 3);
  CHECK(mixed.sent == first.at(0));
}

}  // namespace
}  // namespace weir
