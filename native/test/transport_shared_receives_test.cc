// Receives that several queue pairs share.
#include "test/transport_harness.h"
#include "transport/datagram.h"

namespace weir {
namespace {

using test::build_frame;
using test::End;
using test::Frame;
using test::kAllRights;
using test::path_between;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kRoom = 1'024;

struct Told : CompletionSink {
  void complete(const Completion& completion) override {
    if (completion.retired > 0) all.push_back(completion);
  }
  std::vector<Completion> all;
};

// Two connections that share their receives, and whose peers are played by hand.
struct Sharing {
  Sharing() {
    key = memory.add({bytes.data(), kAddress, bytes.size(), 7, kAllRights, nullptr});
    QueueAttributes attributes;
    attributes.domain = 7;
    attributes.path_mtu = kMtu;
    for (ReliableConnection* rc : {&one, &other}) {
      for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) rc->modify(to, attributes);
    }
  }
  // Receives with the numbers of their places.
  void post(uint32_t count) {
    for (; count > 0; --count, ++posted) shared.push({posted, kAddress + posted * kRoom, kRoom, key});
  }
  void send(ReliableConnection& rc, uint8_t opcode, uint8_t fill, uint32_t psn) {
    const std::vector<uint8_t> payload(kMtu, fill);
    DataHeader header;
    header.opcode = opcode;
    header.psn = psn;
    header.ack_request = true;
    const Frame frame = build_frame(RoceTemplate(path_between(1, 2)), header, payload.data(), kMtu);
    rc.receive(0, frame.bytes.data(), frame.meta);
  }
  uint8_t answer(ReliableConnection& rc) {
    REQUIRE(rc.control_waits());
    OutgoingPacket out;
    rc.take_control(out);
    return out.header.aeth.syndrome;
  }

  static constexpr uint64_t kAddress = 0x5000;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(8 * kRoom);
  MemoryTable memory{4};
  TransportCounters counters;
  Told told;
  SharedReceives shared{8};
  ReliableConnection one{21, {memory, told, counters}, 4, 0, &shared};
  ReliableConnection other{22, {memory, told, counters}, 4, 0, &shared};
  uint32_t key = 0;
  uint32_t posted = 0;
};

TEST_CASE("messages of two connections that arrive by turns each go to a receive of their own") {
  Sharing s;
  s.post(3);
  s.send(s.one, kOpcodeRcSendFirst, 1, 0);
  s.send(s.other, kOpcodeRcSendFirst, 2, 0);
  s.send(s.one, kOpcodeRcSendMiddle, 3, 1);
  s.send(s.other, kOpcodeRcSendLast, 4, 1);
  s.send(s.one, kOpcodeRcSendLast, 5, 2);
  REQUIRE(s.told.all.size() == 2);
  CHECK(s.told.all[0].id == 1);
  CHECK(s.told.all[0].qpn == 22);
  CHECK(s.told.all[0].bytes == 2 * kMtu);
  CHECK(s.told.all[1].id == 0);
  CHECK(s.told.all[1].qpn == 21);
  CHECK(s.told.all[1].bytes == 3 * kMtu);
  CHECK(s.bytes[0] == 1);
  CHECK(s.bytes[kMtu] == 3);
  CHECK(s.bytes[2 * kMtu] == 5);
  CHECK(s.bytes[kRoom] == 2);
  CHECK(s.bytes[kRoom + kMtu] == 4);
  CHECK(s.shared.size() == 1);
}

TEST_CASE("receives that are shared are not promised as credits, and a message that finds none waits") {
  Sharing s;
  s.post(1);
  s.send(s.one, kOpcodeRcSendOnly, 1, 0);
  CHECK(s.answer(s.one) == (kSyndromeAck | kNoCredits));
  s.send(s.other, kOpcodeRcSendFirst, 1, 0);
  CHECK((s.answer(s.other) & kSyndromeKind) == kSyndromeRnrNak);
  s.post(1);
  s.send(s.other, kOpcodeRcSendOnly, 2, 0);
  CHECK(s.answer(s.other) == (kSyndromeAck | kNoCredits));
  CHECK(s.told.all.size() == 2);
}

TEST_CASE("a connection that ends gives back the receive of its message, and leaves the others where they are") {
  for (QueuePairState end : {QueuePairState::error, QueuePairState::reset}) {
    Sharing s;
    s.post(3);
    s.send(s.one, kOpcodeRcSendFirst, 1, 0);
    s.one.modify(end, {});
    REQUIRE(s.told.all.size() == 1);
    CHECK(s.told.all[0].id == 0);
    CHECK(s.told.all[0].qpn == 21);
    CHECK(s.told.all[0].status == WorkStatus::flushed);
    CHECK(s.shared.size() == 2);
    s.send(s.other, kOpcodeRcSendOnly, 2, 0);
    REQUIRE(s.told.all.size() == 2);
    CHECK(s.told.all[1].id == 1);
  }
}

TEST_CASE("a receive cannot be posted to a queue pair that shares its receives") {
  Sharing s;
  s.one.post_receive({9, Sharing::kAddress, kRoom, s.key});
  REQUIRE(s.told.all.size() == 1);
  CHECK(s.told.all[0].status == WorkStatus::local_operation_error);
  CHECK(s.shared.empty());
}

TEST_CASE("a datagram that is too long for the oldest shared receive leaves it to others") {
  Sharing s;
  Datagram datagram{23, {s.memory, s.told, s.counters}, 4, 0, &s.shared};
  QueueAttributes attributes;
  attributes.domain = 7;
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr}) datagram.modify(to, attributes);
  const auto deliver = [&](uint32_t length) {
    const std::vector<uint8_t> payload(length, 6);
    DataHeader header;
    header.opcode = kOpcodeUdSendOnly;
    const Frame frame = build_frame(RoceTemplate(path_between(1, 2)), header, payload.data(), length);
    datagram.receive(0, frame.bytes.data(), frame.meta);
  };
  s.shared.push({0, Sharing::kAddress, kGrhBytes + kMtu, s.key});
  s.shared.push({1, Sharing::kAddress + kRoom, kRoom, s.key});
  deliver(kMtu + 1);
  CHECK(s.told.all.empty());
  CHECK(s.shared.size() == 2);
  deliver(kMtu);
  s.send(s.one, kOpcodeRcSendOnly, 1, 0);
  REQUIRE(s.told.all.size() == 2);
  CHECK(s.told.all[0].qpn == 23);
  CHECK(s.told.all[1].qpn == 21);
  CHECK(s.told.all[1].id == 1);
}

}  // namespace
}  // namespace weir
