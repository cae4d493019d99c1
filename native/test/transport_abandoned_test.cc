// A connection whose program has ended on a path of its own: nobody knows which of its peer's requests had an answer.
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
  explicit Left(std::optional<uint32_t> unanswered) : connection(kOwn, {memory, nobody, counters}, attributes(), unanswered) {}
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

TEST_CASE("abandoned: where only the program knew the PSN, the peer is told when it goes back, to that one") {
  Left left(std::nullopt);
  CHECK(left.answer() == std::nullopt);
  for (uint32_t psn = 100; psn < 140; ++psn) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == std::nullopt);
  }
  CHECK(left.counters.tx_naks == 0);
  CHECK(left.hear(93));
  CHECK(left.answer() == 93u);
  // Later ones do not change it.
  for (const uint32_t psn : {94u, 141u, 93u, 92u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == 93u);
  }
  CHECK(left.counters.tx_naks == 5);
}

TEST_CASE("abandoned: a peer that has gone back already is told when it does so again") {
  Left left(std::nullopt);
  for (const uint32_t psn : {5u, 6u, 7u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == std::nullopt);
  }
  CHECK(left.hear(5));
  CHECK(left.answer() == 5u);
}

TEST_CASE("abandoned: packets that overtake each other ahead of the first are not taken for a peer that goes back") {
  Left left(std::nullopt);
  for (const uint32_t psn : {100u, 103u, 101u, 102u, 105u, 104u}) {
    CHECK(left.hear(psn));
    CHECK(left.answer() == std::nullopt);
  }
  CHECK(left.hear(100));
  CHECK(left.answer() == 100u);
}

TEST_CASE("abandoned: PSNs wrap, ahead and back") {
  Left ahead(std::nullopt);
  for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u}) {
    CHECK(ahead.hear(psn));
    CHECK(ahead.answer() == std::nullopt);
  }
  CHECK(ahead.hear(0xfffffe));
  CHECK(ahead.answer() == 0xfffffeu);

  Left back(std::nullopt);
  for (const uint32_t psn : {1u, 2u}) {
    CHECK(back.hear(psn));
    CHECK(back.answer() == std::nullopt);
  }
  CHECK(back.hear(0xfffffd));
  CHECK(back.answer() == 0xfffffdu);
}

TEST_CASE("abandoned: what does not ask says nothing of where the peer is") {
  Left left(std::nullopt);
  // Answers of the peer, to READs and to what the program had sent.
  CHECK_FALSE(left.hear(roce(kOpcodeRcAcknowledge).to(Left::kOwn).psn(3).aeth({.syndrome = 0x1f})));
  CHECK(left.counters.drop_unexpected_response == 1);
  CHECK(left.answer() == std::nullopt);
  CHECK(left.hear(50));
  CHECK(left.answer() == std::nullopt);
  CHECK_FALSE(left.hear(roce(kOpcodeRcReadResponseOnly).to(Left::kOwn).psn(3).aeth({.syndrome = 0x1f}).payload(8)));
  CHECK_FALSE(left.hear(roce(kOpcodeRcWriteMiddle).to(Left::kOwn).psn(3).partition_key(0x8123).payload(8)));
  CHECK(left.counters.drop_partition_key == 1);
  CHECK(left.answer() == std::nullopt);
  CHECK(left.hear(49));
  CHECK(left.answer() == 49u);
}

}  // namespace
}  // namespace weir::test
