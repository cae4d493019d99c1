// Credits and missing receives: what a requester may send to a peer with few receives or none.
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;

struct Sends {
  explicit Sends(Pair& pair_) : pair(pair_), local(pair.left.make_region(1'000, 1)), remote(pair.right.make_region(1'000, 2)) {}
  void post(WorkOpcode opcode = WorkOpcode::send, uint32_t length = 1'000) {
    SendWork work;
    work.id = next++;
    work.opcode = opcode;
    work.flags = kSignaled;
    work.length = length;
    work.local_address = local.address;
    work.local_key = local.key;
    work.remote_address = remote.address;
    work.remote_key = remote.key;
    pair.left.rc.post_send(work);
  }
  size_t succeeded() {
    size_t count = 0;
    for (const Completion& c : pair.left.take()) count += c.status == WorkStatus::success;
    return count;
  }

  Pair& pair;
  Region local, remote;
  uint64_t next = 0;
};

TEST_CASE("codes of credits and of delays are those of the standard's tables") {
  CHECK(credit_code(0) == 0);
  CHECK(credit_code(4) == 4);
  CHECK(credit_code(5) == 4);
  CHECK(credit_code(6) == 5);
  CHECK(credit_code(100) == 13);
  CHECK(credit_code(40'000) == 30);
  for (uint8_t code = 0; code < 31; ++code) CHECK(credit_code(stepped(code)) == code);
  CHECK(rnr_delay(0) == 655'360 * kMicrosecond);
  CHECK(rnr_delay(1) == 10 * kMicrosecond);
  CHECK(rnr_delay(12) == 640 * kMicrosecond);
  CHECK(rnr_delay(31) == 491'520 * kMicrosecond);
  CHECK(ack_timeout(0) == kNever);
  CHECK(ack_timeout(14) == 67'108'864);
}

TEST_CASE("a SEND without a receive waits as long as it was told, and is taken once there is one") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.recovery = recovery, a.min_rnr_timer = 14, a.path_mtu = 256; });  // 1.28 ms
    pair.connect();
    Sends sends(pair);
    std::vector<Time> firsts;
    pair.on_frame = [&](End& from, Frame& frame) {
      if (&from == &pair.left && frame.psn() == pair.left_attributes.send_psn) firsts.push_back(pair.now);
      if (&from == &pair.right && firsts.size() <= 3) CHECK(frame.syndrome() == (kSyndromeRnrNak | 14));
      return true;
    };
    sends.post();
    CHECK(!pair.run(3 * kMillisecond));
    REQUIRE(firsts.size() == 3);
    CHECK(firsts[1] - firsts[0] >= 1'280 * kMicrosecond);
    CHECK(firsts[1] - firsts[0] < 1'310 * kMicrosecond);
    CHECK(pair.left.take().empty());
    CHECK(pair.right.counters.out_of_buffer == 3);
    CHECK(pair.left.counters.rnr_nak_retry_err == 3);
    pair.right.receive(sends.remote);
    CHECK(pair.run());
    CHECK(sends.succeeded() == 1);
    CHECK(std::memcmp(sends.local.data(), sends.remote.data(), 1'000) == 0);
    CHECK(pair.left.counters.local_ack_timeout_err == 0);
  }
}

TEST_CASE("RNR retries: as many as agreed on, or without end") {
  for (uint8_t retries : {0, 1, 6, 7}) {
    CAPTURE(retries);
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.rnr_retry = retries; });
    pair.connect();
    Sends sends(pair);
    sends.post(WorkOpcode::write_immediate, 10);
    sends.post();
    CHECK(pair.run(20 * kMillisecond) == (retries != 7));
    const std::vector<Completion> all = pair.left.take();
    if (retries == 7) {
      CHECK(all.empty());
      CHECK(pair.right.counters.out_of_buffer > 100);
      continue;
    }
    CHECK(pair.right.counters.out_of_buffer == retries + 1u);
    REQUIRE(all.size() == 2);
    CHECK(all[0].status == WorkStatus::rnr_retry_exceeded_error);
    CHECK(all[0].id == 0);
    CHECK(all[1].status == WorkStatus::flushed);
    CHECK(pair.left.rc.state() == QueuePairState::error);
    CHECK(pair.left.counters.req_rnr_retries_exceeded == 1);
    CHECK(pair.right.rc.state() == QueuePairState::rts);
  }
}

TEST_CASE("an RNR NAK that comes twice is one") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.rnr_retry = 1, a.min_rnr_timer = 12; });
  pair.connect();
  Sends sends(pair);
  pair.faults.duplicate = 1;
  sends.post();
  pair.run(300 * kMicrosecond);
  CHECK(pair.left.counters.rnr_nak_retry_err == 1);
  pair.right.receive(sends.remote);
  CHECK(pair.run());
  CHECK(sends.succeeded() == 1);
}

TEST_CASE("a limited requester sends no more than one packet too much, and does not get stuck behind READs") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.recovery = recovery, a.path_mtu = 256; });
    pair.connect();
    Sends sends(pair);
    for (int i = 0; i < 3; ++i) pair.right.receive(sends.remote);
    sends.post();  // from its ACK on the credits are known
    REQUIRE(pair.run());
    const uint32_t first = psn_add(pair.left_attributes.send_psn, 4);
    uint32_t furthest = 0;
    pair.on_frame = [&](End& from, Frame& frame) {
      if (&from == &pair.left) furthest = std::max(furthest, static_cast<uint32_t>(psn_distance(frame.psn(), first)));
      return true;
    };
    for (int i = 0; i < 5; ++i) sends.post();
    pair.run(5 * kMicrosecond + 15 * kMicrosecond);
    CHECK(furthest == 8);  // two messages of four packets, and the first packet of the third
    CHECK(!pair.run(2 * kMillisecond));
    CHECK(furthest == 8);
    CHECK(sends.succeeded() == 3);
    sends.post(WorkOpcode::read);
    sends.post(WorkOpcode::fetch_add, 8);
    sends.post(WorkOpcode::read);
    sends.post();
    sends.post(WorkOpcode::write);
    sends.post();
    for (int i = 0; i < 5; ++i) {
      pair.right.receive(sends.remote);
      pair.run(5 * kMillisecond);
    }
    CHECK(pair.run());
    CHECK(sends.succeeded() == 9);
    CHECK(pair.left.rc.state() == QueuePairState::rts);
    CHECK(pair.left.counters.local_ack_timeout_err == 0);
  }
}

TEST_CASE("credits that only a READ response or an atomic's answer shows let a SEND go") {
  for (WorkOpcode between : {WorkOpcode::read, WorkOpcode::fetch_add}) {
    Pair pair;
    pair.both([](QueueAttributes& a) { a.path_mtu = 256; });
    pair.connect();
    Sends sends(pair);
    for (int i = 0; i < 2; ++i) pair.right.receive(sends.remote);
    sends.post();
    sends.post();
    REQUIRE(pair.run());
    pair.right.receive(sends.remote);
    for (int i = 0; i < 3; ++i) sends.post(between, 8);
    REQUIRE(pair.run());
    sends.post();
    int packets = 0;
    pair.on_frame = [&](End& from, Frame&) { return packets += &from == &pair.left, true; };
    pair.run(8 * kMicrosecond);  // before there can be an ACK
    CHECK(packets == 4);
    CHECK(pair.run());
    CHECK(sends.succeeded() == 6);
    CHECK(pair.left.counters.rnr_nak_retry_err == 0);
  }
}

TEST_CASE("a peer that does not count its receives is sent to without limit") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.path_mtu = 256; });
  pair.connect();
  Sends sends(pair);
  pair.on_frame = [&](End& from, Frame& frame) {
    if (&from == &pair.left) return true;
    // This is the same ACK as rxe sends it.
    DataHeader header;
    header.opcode = frame.opcode();
    header.psn = frame.psn();
    header.destination_qp = 17;
    header.aeth = frame.aeth();
    if ((header.aeth.syndrome & kSyndromeKind) == kSyndromeAck) header.aeth.syndrome = kNoCredits;
    frame = test::build_frame(pair.right.headers, header, nullptr, 0);
    return true;
  };
  pair.right.receive(sends.remote);
  sends.post();
  REQUIRE(pair.run());
  for (int i = 0; i < 5; ++i) sends.post();
  uint32_t in_first_flight = 0;
  const auto as_rxe = pair.on_frame;
  pair.on_frame = [&](End& from, Frame& frame) {
    in_first_flight += &from == &pair.left;
    return as_rxe(from, frame);
  };
  pair.run(8 * kMicrosecond);
  CHECK(in_first_flight == 20);
  for (int i = 0; i < 5; ++i) pair.right.receive(sends.remote);
  CHECK(pair.run());
  CHECK(sends.succeeded() == 6);
}

}  // namespace
}  // namespace weir
