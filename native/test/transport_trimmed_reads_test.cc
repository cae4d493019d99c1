// READ responses that a switch has trimmed: asked for again at once, and never believed further than that.
#include <algorithm>
#include <utility>
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

// The left end READs messages of some packets from the right one.
struct Reads : Trimming {
  explicit Reads(bool trim_naks = true, uint64_t seed = 1) : Trimming(WorkOpcode::read, trim_naks, true, seed) {}

  // Works as in Trimming; keeps what the requests ask for, too.
  void trim(std::vector<uint32_t> at, uint32_t times) {
    Trimming::trim(std::move(at), times);
    pair.on_frame = [=, this, trims = pair.on_frame](End& from, Frame& frame) {
      if (frame.opcode() == kOpcodeRcReadRequest) asked.push_back({offset(frame), frame.reth().dma_length / kMtu});
      return trims(from, frame);
    };
  }

  std::vector<std::pair<uint32_t, uint32_t>> asked;  // first packet of each, and their number
};

TEST_CASE("trimmed: the last response of a READ, behind which nothing comes, is asked for again without a timer") {
  for (uint32_t times : {1u, 3u}) {
    CAPTURE(times);
    Reads reads;
    reads.trim({5}, times);
    reads.post(6);
    REQUIRE(reads.pair.run());
    CHECK(reads.arrived(6));
    for (uint32_t i = 0; i < 6; ++i) CHECK(reads.sent[i] == (i == 5 ? 1 + times : 1));
    const TransportCounters& left = reads.pair.left.counters;
    CHECK(left.local_ack_timeout_err == 0);
    CHECK(left.trimmed_responses == times);
    CHECK(left.retransmitted == times);
    CHECK(left.drop_trimmed == 0);
    CHECK(reads.pair.right.counters.tx_trim_naks == 0);
    CHECK(reads.pair.now < (2 + 2 * times) * 6 * kMicrosecond);
  }
}

TEST_CASE("trimmed: of a READ's responses those that come trimmed are asked for alone, neighbours together") {
  Reads reads;
  // Both are lost when the link is next free for a request.
  reads.pair.on_frame = nullptr;
  reads.trim({10, 20, 21}, 1);
  reads.post(40);
  REQUIRE(reads.pair.run());
  CHECK(reads.arrived(40));
  for (uint32_t i = 0; i < 40; ++i) CHECK(reads.sent[i] == (i == 10 || i == 20 || i == 21 ? 2 : 1));
  REQUIRE_FALSE(reads.asked.empty());
  CHECK(reads.asked[0] == std::pair{0u, 40u});
  uint32_t again = 0;
  for (size_t i = 1; i < reads.asked.size(); ++i) again += reads.asked[i].second;
  CHECK(again == 3);
  CHECK(reads.pair.left.counters.trimmed_responses == 3);
  CHECK(reads.pair.left.counters.local_ack_timeout_err == 0);
}

TEST_CASE("trimmed: without trim_naks a READ response is as lost as any other") {
  Reads reads(false);
  reads.trim({5}, 1);
  reads.post(6);
  REQUIRE(reads.pair.run());
  CHECK(reads.arrived(6));
  CHECK(reads.pair.left.counters.local_ack_timeout_err == 1);
  CHECK(reads.pair.left.counters.trimmed_responses == 0);
  CHECK(reads.pair.left.counters.drop_trimmed == 0);
}

TEST_CASE("trimmed: congestion control hears of trimmed READ responses, which are not in flight") {
  Reads reads;
  Pair& pair = reads.pair;
  std::vector<Frame> responses;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (!reads.is_data(from, frame)) return true;
    responses.push_back(frame);
    return false;
  };
  reads.post(4);
  pair.run(100 * kMicrosecond);
  REQUIRE(responses.size() == 4);
  pair.trim(pair.left, responses[1]);
  Heard heard;
  REQUIRE(pair.left.rc.take_heard(heard));
  CHECK(heard.trimmed.packets == 1);
  CHECK(heard.trimmed.in_flight == 3);
  CHECK(heard.trimmed.sent == 0);  // when they were asked for
  CHECK(heard.ack.packets == 0);
  CHECK_FALSE(heard.lost);
  CHECK(pair.left.rc.data_bytes() > 0);
}

TEST_CASE("trimmed: headers that are not of a READ response that is awaited change nothing") {
  Reads reads;
  Pair& pair = reads.pair;
  std::vector<Frame> responses;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (reads.is_data(from, frame)) responses.push_back(frame);
    return !reads.is_data(from, frame) || reads.offset(frame) == 0;
  };
  const Region there = pair.right.make_region(kMtu, 3);
  const Region here = pair.left.make_region(kMtu, 4);
  reads.post(3);
  pair.left.rc.post_send({1, WorkOpcode::write, kSignaled, kMtu, here.address, here.key, there.key, there.address});
  pair.run(100 * kMicrosecond);
  REQUIRE(responses.size() == 3);
  const TransportCounters& counters = pair.left.counters;
  uint64_t refused = 0;
  const auto header_of = [&](uint32_t at) {
    DataHeader header;
    header.opcode = kOpcodeRcReadResponseMiddle;
    header.psn = psn_add(pair.left_attributes.send_psn, at);
    return pair.to(pair.left, header, std::vector<uint8_t>(kMtu));
  };
  // Here already, a WRITE's, behind all that is asked for, far off.
  for (const uint32_t at : {0u, 3u, 4u, 0x7fffffu, 0x800000u}) {
    CAPTURE(at);
    pair.trim(pair.left, header_of(at));
    CHECK(counters.drop_trimmed == ++refused);
    CHECK(pair.left.rc.data_bytes() == 0);
  }
  CHECK(counters.trimmed_responses == 0);
  // Once for each time that it is sent.
  pair.trim(pair.left, header_of(2));
  CHECK(counters.trimmed_responses == 1);
  pair.trim(pair.left, header_of(2));
  CHECK(counters.trimmed_responses == 1);
  CHECK(counters.drop_trimmed == ++refused);
  DataHeader foreign;
  foreign.opcode = kOpcodeRcReadResponseMiddle;
  foreign.psn = psn_add(pair.left_attributes.send_psn, 1);
  foreign.partition_key = 0x1234;
  pair.trim(pair.left, pair.to(pair.left, foreign, std::vector<uint8_t>(kMtu)));
  CHECK(counters.drop_partition_key == 1);
  CHECK(counters.trimmed_responses == 1);
  pair.left.rc.modify(QueuePairState::error, {});
  pair.trim(pair.left, header_of(1));
  CHECK(counters.drop_wrong_state == 1);
}

TEST_CASE("trimmed: READs arrive whole, whatever of their responses, and of other packets, is trimmed, lost and reordered") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Reads reads(true, seed);
    Pair& pair = reads.pair;
    Random random(seed, 5);
    pair.on_frame = [&](End& from, Frame& frame) {
      if (!reads.is_data(from, frame) || random.uniform() >= 0.2) return true;
      pair.trim(pair.left, frame);
      // Some are forged: the packet comes all the same.
      return random.uniform() < 0.2;
    };
    pair.faults = {.loss = 0.02, .duplicate = 0.02, .reorder = 0.05};
    reads.post(100);
    reads.post(60);
    REQUIRE(pair.run());
    CHECK(pair.left.take().size() == 2);
    CHECK(reads.arrived(100));
    CHECK(pair.left.counters.trimmed_responses > 0);
  }
}

}  // namespace
}  // namespace weir
