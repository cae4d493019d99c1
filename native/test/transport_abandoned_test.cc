// A connection whose program has ended on a path of its own: only what it had said tells which of its peer's requests had an
// answer.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "test/rig/frames.h"
#include "transport/abandoned_connection.h"
#include "transport/opcode.h"
#include "wire/classify.h"

namespace weir::test {
namespace {

struct Nobody : CompletionSink {
  void complete(const Completion&) override {}
};

struct Left {
  explicit Left(uint32_t unanswered, bool certain = true)
      : connection(kOwn, {memory, nobody, counters}, attributes(), unanswered, certain) {}
  static QueueAttributes attributes() {
    QueueAttributes out;
    out.remote_qpn = kPeer;
    return out;
  }
  bool hear(const RoceFrame& frame) {
    const std::vector<uint8_t> bytes = frame.bytes();
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    return connection.receive(0, bytes.data(), meta);
  }
  bool hear(uint32_t psn) { return hear(roce(kOpcodeRcWriteMiddle).to(kOwn).psn(psn).payload(100)); }
  // PSN of the answer that waits; nothing if none does.
  std::optional<uint32_t> answer() {
    if (!connection.control_waits()) return std::nullopt;
    OutgoingPacket out;
    connection.take_control(out);
    CHECK(out.header.opcode == kOpcodeRcAcknowledge);
    CHECK(out.header.aeth.syndrome == kNakRemoteOperation);
    CHECK(out.header.destination_qp == kPeer);
    CHECK_FALSE(connection.control_waits());
    return out.header.psn;
  }

  static constexpr uint32_t kOwn = 40;
  static constexpr uint32_t kPeer = 41;
  MemoryTable memory{4};
  Nobody nobody;
  TransportCounters counters;
  AbandonedConnection connection;
};

TEST_CASE("abandoned: a peer whose PSN is known is told at once, and again whenever it asks") {
  Left left(7);
  CHECK(left.answer() == 7u);
  CHECK(left.answer() == std::nullopt);
  for (const uint32_t psn : {9u, 10u, 7u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == 7u);
  }
  CHECK(left.counters.tx_naks == 4);
}

// The program had come to 90, as far as it had said.
constexpr uint32_t kTold = 90;

TEST_CASE("abandoned: where only the program knew the PSN, the peer is told what it had said, and when it goes back, that one") {
  Left left(kTold, false);
  CHECK(left.answer() == kTold);
  for (uint32_t psn = 100; psn < 140; ++psn) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == kTold);
  }
  CHECK(left.counters.tx_naks == 41);
  CHECK(left.hear(93));
  CHECK(left.answer() == 93u);
  // Later ones do not change it.
  for (const uint32_t psn : {94u, 141u, 93u, 92u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == 93u);
  }
}

TEST_CASE("abandoned: a peer that has gone back already is told when it does so again") {
  Left left(kTold, false);
  for (const uint32_t psn : {105u, 106u, 107u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == kTold);
  }
  CHECK(left.hear(105));
  CHECK(left.answer() == 105u);
}

TEST_CASE("abandoned: packets that overtake each other ahead of the first are not taken for a peer that goes back") {
  Left left(kTold, false);
  for (const uint32_t psn : {100u, 103u, 101u, 102u, 105u, 104u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == kTold);
  }
  CHECK(left.hear(100));
  CHECK(left.answer() == 100u);
}

TEST_CASE("abandoned: PSNs wrap, ahead and back") {
  Left ahead(0xfffff0, false);
  for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u}) {
    CHECK(ahead.hear(psn));
    CHECK(ahead.answer() == 0xfffff0u);
  }
  CHECK(ahead.hear(0xfffffe));
  CHECK(ahead.answer() == 0xfffffeu);

  Left back(0xfffff0, false);
  for (const uint32_t psn : {1u, 2u}) {
    CHECK(back.hear(psn));
    CHECK(back.answer() == 0xfffff0u);
  }
  CHECK(back.hear(0xfffffd));
  CHECK(back.answer() == 0xfffffdu);
}

TEST_CASE("abandoned: what does not ask says nothing of where the peer is") {
  Left left(kTold, false);
  CHECK(left.answer() == kTold);
  // Answers of the peer, to READs and to what the program had sent.
  CHECK_FALSE(left.hear(roce(kOpcodeRcAcknowledge).to(Left::kOwn).psn(3).aeth({.syndrome = 0x1f})));
  CHECK(left.counters.drop_unexpected_response == 1);
  CHECK(left.answer() == std::nullopt);
  CHECK(left.hear(150));
  CHECK(left.answer() == kTold);
  CHECK_FALSE(left.hear(roce(kOpcodeRcReadResponseOnly).to(Left::kOwn).psn(3).aeth({.syndrome = 0x1f}).payload(8)));
  CHECK_FALSE(left.hear(roce(kOpcodeRcWriteMiddle).to(Left::kOwn).psn(3).partition_key(0x8123).payload(8)));
  CHECK(left.counters.drop_partition_key == 1);
  CHECK(left.answer() == std::nullopt);
  CHECK(left.hear(149));
  CHECK(left.answer() == 149u);
}

}  // namespace
}  // namespace weir::test
