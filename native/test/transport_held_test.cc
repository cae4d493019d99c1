// Packets that selective repeat sends again when the peer holds some already.
#include <map>

#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;

constexpr uint32_t kBytes = 6 * 256;

// Messages of six packets. The first transmissions of packet 0 are lost, as many as `lost`; all others are counted and arrive.
struct Messages {
  explicit Messages(int lost) {
    pair.both([](QueueAttributes& a) {
      a.path_mtu = 256;
      a.recovery = LossRecovery::selective_repeat;
    });
    pair.connect();
    pair.on_frame = [this, lost](End& from, Frame& frame) {
      if (&from != &pair.left) return heard(frame), true;
      const auto offset = static_cast<uint32_t>(psn_distance(frame.psn(), pair.left_attributes.send_psn));
      return ++sent[offset] > (offset == 0 ? lost : 0);
    };
  }
  void post(WorkOpcode opcode) {
    pair.left.rc.post_send({0, opcode, kSignaled, kBytes, source.address, source.key, target.key, target.address});
  }
  // A receive is there as soon as one was missing.
  void heard(const Frame& frame) {
    if ((frame.syndrome() & kSyndromeKind) == kSyndromeRnrNak) pair.right.receive(inbox, 1);
  }

  Pair pair;
  Region source = pair.left.make_region(kBytes, 1), target = pair.right.make_region(kBytes),
         inbox = pair.right.make_region(kBytes);
  std::map<uint32_t, int> sent;
};

TEST_CASE("selective repeat leaves with the peer what it holds after a timeout, but not after another without progress") {
  for (const int lost : {2, 3}) {
    CAPTURE(lost);
    Messages messages(lost);
    for (int i = 0; i < 4; ++i) messages.post(WorkOpcode::write);
    REQUIRE(messages.pair.run());
    REQUIRE(messages.sent.size() == 24);
    for (const auto& [offset, times] : messages.sent) CHECK(times == (offset == 0 ? lost + 1 : lost - 1));
    const TransportCounters& left = messages.pair.left.counters;
    CHECK(left.local_ack_timeout_err == static_cast<uint64_t>(lost - 1));
    CHECK(left.retransmitted == (lost == 2 ? 2 : 3 + 23));
    CHECK(messages.pair.right.counters.duplicate_request == (lost == 2 ? 0 : 23));
    CHECK(messages.pair.left.take().size() == 4);
    CHECK(std::memcmp(messages.target.data(), messages.source.data(), kBytes) == 0);
  }
}

TEST_CASE("selective repeat sends again what found no receive, and not what the peer holds behind it") {
  Messages messages(1);
  messages.post(WorkOpcode::send);
  messages.post(WorkOpcode::write);
  REQUIRE(messages.pair.run());
  REQUIRE(messages.sent.size() == 12);
  for (const auto& [offset, times] : messages.sent) CHECK(times == (offset == 0 ? 3 : 1));
  const TransportCounters& left = messages.pair.left.counters;
  CHECK(left.rnr_nak_retry_err == 1);
  CHECK(left.retransmitted == 2);
  CHECK(left.local_ack_timeout_err == 0);
  CHECK(messages.pair.right.counters.duplicate_request == 0);
  CHECK(messages.pair.left.take().size() == 2);
  CHECK(std::memcmp(messages.inbox.data(), messages.source.data(), kBytes) == 0);
}

}  // namespace
}  // namespace weir
