// The PSNs of a READ's responses: how many a request may take up, and what else was sent with them.
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::kAllRights;
using test::Pair;

constexpr uint32_t kMtu = 256;

// The right end has a region of every address there is.
struct Reads {
  explicit Reads(LossRecovery recovery = LossRecovery::go_back_n) {
    pair.both([&](QueueAttributes& a) { a.path_mtu = kMtu, a.recovery = recovery; });
    key = pair.right.memory.add({.data = bytes.data(),
                                 .address = 0,
                                 .length = UINT64_MAX,
                                 .domain = 7,
                                 .access = kAllRights,
                                 .owner = nullptr,
                                 .scratch = true});
    pair.on_frame = [this](End& from, Frame& frame) {
      if (&from == &pair.right) answers.push_back(frame);
      return false;
    };
    pair.connect();
    first = pair.right_attributes.receive_psn;
  }
  void request(uint32_t psn, uint8_t opcode, const Reth& reth = {}, uint32_t payload = 0) {
    DataHeader header;
    header.opcode = opcode;
    header.psn = psn;
    header.ack_request = true;
    header.reth = reth;
    answers.clear();
    pair.deliver(pair.right, pair.to(pair.right, header, std::vector<uint8_t>(payload)));
    pair.run(10 * kMicrosecond);
  }

  Pair pair;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(8'192);
  uint32_t key = 0;
  uint32_t first = 0;
  std::vector<Frame> answers;
};

TEST_CASE("a READ whose responses would take up half of all PSNs is refused, one packet less is answered") {
  for (const uint64_t length : {uint64_t{1} << 31, (uint64_t{1} << 31) - 1, (uint64_t{1} << 31) - kMtu}) {
    CAPTURE(length);
    Reads r;
    r.request(r.first, kOpcodeRcReadRequest, {0x1000, r.key, static_cast<uint32_t>(length)});
    REQUIRE(!r.answers.empty());
    if (length + kMtu > uint64_t{1} << 31) {
      CHECK(r.answers[0].opcode() == kOpcodeRcAcknowledge);
      CHECK(r.answers[0].syndrome() == kNakInvalidRequest);
      CHECK(r.pair.right.counters.resp_invalid_requests == 1);
      CHECK(r.pair.right.rc.state() == QueuePairState::error);
      continue;
    }
    CHECK(r.answers[0].opcode() == kOpcodeRcReadResponseFirst);
    // The same READ from its middle on, as after a loss.
    const uint32_t skipped = (1u << 23) - 100;
    const auto left = static_cast<uint32_t>(length - uint64_t{skipped} * kMtu);
    r.request(psn_add(r.first, skipped), kOpcodeRcReadRequest, {0x1000 + uint64_t{skipped} * kMtu, r.key, left});
    REQUIRE(!r.answers.empty());
    CHECK(r.pair.right.counters.duplicate_request == 1);
  }
}

TEST_CASE("selective repeat drops what came early with PSNs that a READ turns out to take up, and asks for nothing more") {
  Reads r(LossRecovery::selective_repeat);
  const test::Region in = r.pair.right.make_region(1'024);
  r.pair.right.receive(in);
  r.request(psn_add(r.first, 2), kOpcodeRcSendOnly, {}, 16);
  REQUIRE(r.answers.size() == 1);
  CHECK(r.answers[0].syndrome() == kNakSequence);
  r.request(r.first, kOpcodeRcReadRequest, {0x1000, r.key, 5 * kMtu});
  REQUIRE(r.answers.size() == 5);
  for (const Frame& frame : r.answers) CHECK(frame.opcode() != kOpcodeRcAcknowledge);
  CHECK(r.pair.right.counters.drop_reorder == 1);
  // Later packets are acknowledged, and no NAK asks for what nobody misses.
  r.request(psn_add(r.first, 5), kOpcodeRcSendOnly, {}, 16);
  REQUIRE(r.answers.size() == 1);
  CHECK((r.answers[0].syndrome() & kSyndromeKind) == kSyndromeAck);
  CHECK(r.pair.right.counters.tx_naks == 1);
  CHECK(r.pair.right.take().size() == 1);
}

}  // namespace
}  // namespace weir
