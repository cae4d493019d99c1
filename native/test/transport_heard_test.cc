// What acknowledgements tell congestion control: how much, of which mark, and when it was sent.
#include <doctest/doctest.h>

#include <vector>

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
  explicit Talk(LossRecovery recovery) {
    pair.both([&](QueueAttributes& a) {
      a.path_mtu = kMtu;
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

}  // namespace weir::test
