// Refusals of a responder: nothing touches memory, the NAK is the standard's, and both ends learn of it.
#include <string>

#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::kAllRights;
using test::Pair;
using test::Region;

constexpr uint32_t kMtu = 256;

// The right end under attack by frames made by hand. Everything there is in its memory is watched.
struct Attack {
  Attack() {
    pair.both([](QueueAttributes& a) { a.path_mtu = kMtu, a.max_dest_rd_atomic = 2; });
    pair.on_frame = [this](End& from, Frame& frame) {
      if (&from == &pair.right) answers.push_back(frame);
      return false;
    };
  }
  // Sends one packet with the PSN that is due `ahead` packets later.
  void send(DataHeader header, uint32_t payload = 0, int32_t ahead = 0) {
    header.psn = psn_add(next, static_cast<uint32_t>(ahead) & kPsnMask);
    if (ahead == 0) next = psn_add(next, 1);
    pair.deliver(pair.right, pair.to(pair.right, header, std::vector<uint8_t>(payload, 0xee)));
    pair.run(1 * kMillisecond);
  }
  bool untouched() const { return open.words == open_before.words && inbox.words == inbox_before.words; }

  Pair pair;
  Region open = pair.right.make_region(8 * kMtu, 3), open_before = open;
  Region inbox = pair.right.make_region(2 * kMtu, 4), inbox_before = inbox;
  std::vector<Frame> answers;
  uint32_t next = pair.right_attributes.receive_psn;
};

DataHeader header_of(uint8_t opcode, const Reth& reth = {}) {
  DataHeader header;
  header.opcode = opcode;
  header.ack_request = true;
  header.reth = reth;
  header.atomic = {reth.virtual_address, reth.rkey, 1, 0};
  return header;
}

struct Refused {
  std::string what;
  std::function<void(Attack&)> attack;
  uint8_t syndrome;
};

void check_refused(const Refused& refused) {
  CAPTURE(refused.what);
  Attack a;
  a.pair.connect();
  a.pair.right.receive(a.inbox);
  refused.attack(a);
  CHECK(a.untouched());
  CHECK(a.pair.right.rc.state() == QueuePairState::error);
  const std::vector<Completion> all = a.pair.right.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WorkStatus::flushed);
  REQUIRE(!a.answers.empty());
  CHECK(a.answers.back().opcode() == kOpcodeRcAcknowledge);
  CHECK(a.answers.back().syndrome() == refused.syndrome);
  CHECK(a.answers.back().psn() == psn_add(a.next, kPsnMask));
  CHECK(a.pair.right.counters.tx_naks == 1);
}

TEST_CASE("access: wrong key, bounds, rights, domain") {
  for (uint8_t opcode : {kOpcodeRcWriteOnly, kOpcodeRcWriteOnlyImmediate, kOpcodeRcWriteFirst, kOpcodeRcReadRequest,
                         kOpcodeRcCompareSwap, kOpcodeRcFetchAdd}) {
    CAPTURE(static_cast<int>(opcode));
    const bool write = opcode_shape(opcode).kind == RequestKind::write;
    const uint32_t payload = !write ? 0 : opcode == kOpcodeRcWriteFirst ? kMtu : 16;
    const uint32_t length = opcode == kOpcodeRcWriteFirst ? kMtu + 16 : 16;
    const auto at = [&](Attack& a, uint64_t address, uint32_t key) {
      a.send(header_of(opcode, {address, key, length}), payload);
    };
    const uint8_t right = write ? kRemoteWrite : opcode == kOpcodeRcReadRequest ? kRemoteRead : kRemoteAtomic;
    const Refused cases[] = {
        {"unknown key", [&](Attack& a) { at(a, a.open.address, a.open.key ^ 0x100); }, kNakRemoteAccess},
        {"key of an earlier region", [&](Attack& a) { at(a, a.open.address, a.open.key - 1); }, kNakRemoteAccess},
        {"key 0", [&](Attack& a) { at(a, a.open.address, 0); }, kNakRemoteAccess},
        {"before", [&](Attack& a) { at(a, a.open.address - 8, a.open.key); }, kNakRemoteAccess},
        {"behind", [&](Attack& a) { at(a, a.open.address + a.open.length, a.open.key); }, kNakRemoteAccess},
        {"wraps", [&](Attack& a) { at(a, UINT64_MAX - 7, a.open.key); }, kNakRemoteAccess},
        {"rights",
         [&](Attack& a) {
           Region closed = a.pair.right.make_region(8 * kMtu, 5, static_cast<uint8_t>(kAllRights & ~right));
           const Region before = closed;
           at(a, closed.address, closed.key);
           CHECK(closed.words == before.words);
         },
         kNakRemoteAccess},
        {"domain",
         [&](Attack& a) {
           Region other = a.pair.right.make_region(8 * kMtu, 5, kAllRights, 8);
           const Region before = other;
           at(a, other.address, other.key);
           CHECK(other.words == before.words);
         },
         kNakRemoteAccess},
        {"deregistered",
         [&](Attack& a) {
           a.pair.right.memory.remove(a.open.key);
           at(a, a.open.address, a.open.key);
         },
         kNakRemoteAccess},
        {"not allowed to the queue pair",
         [&](Attack& a) {
           QueueAttributes closed = a.pair.right_attributes;
           closed.access = static_cast<uint8_t>(kAllRights & ~right);
           a.pair.right.rc.modify(QueuePairState::rts, closed);
           at(a, a.open.address, a.open.key);
         },
         kNakInvalidRequest},
    };
    for (const Refused& refused : cases) check_refused(refused);
  }
  check_refused({"an end behind the region",
                 [](Attack& a) {
                   a.send(header_of(kOpcodeRcWriteOnly, {a.open.address + a.open.length - 15, a.open.key, 16}), 16);
                 },
                 kNakRemoteAccess});
  check_refused({"a WRITE that would leave the region in a later packet",
                 [](Attack& a) {
                   a.send(header_of(kOpcodeRcWriteFirst, {a.open.address + a.open.length - kMtu, a.open.key, kMtu + 1}), kMtu);
                 },
                 kNakRemoteAccess});
  check_refused({"READ behind the region",
                 [](Attack& a) {
                   a.send(header_of(kOpcodeRcReadRequest, {a.open.address, a.open.key, a.open.length + 1}));
                 },
                 kNakRemoteAccess});
}

TEST_CASE("requests that are not valid: order, length, opcode, resources") {
  const auto opcode = [](uint8_t code, uint32_t payload, uint32_t dma = 16) {
    return [=](Attack& a) { a.send(header_of(code, {a.open.address, a.open.key, dma}), payload); };
  };
  const Refused cases[] = {
      {"SEND MIDDLE first", opcode(kOpcodeRcSendMiddle, kMtu), kNakInvalidRequest},
      {"SEND LAST first", opcode(kOpcodeRcSendLast, 4), kNakInvalidRequest},
      {"SEND LAST with immediate first", opcode(kOpcodeRcSendLastImmediate, 4), kNakInvalidRequest},
      {"SEND LAST with invalidate first", opcode(kOpcodeRcSendLastInvalidate, 4), kNakInvalidRequest},
      {"WRITE MIDDLE first", opcode(kOpcodeRcWriteMiddle, kMtu), kNakInvalidRequest},
      {"WRITE LAST first", opcode(kOpcodeRcWriteLast, 4), kNakInvalidRequest},
      {"SEND FIRST that is short", opcode(kOpcodeRcSendFirst, kMtu - 1), kNakInvalidRequest},
      {"WRITE FIRST that is short", opcode(kOpcodeRcWriteFirst, kMtu - 4, 2 * kMtu), kNakInvalidRequest},
      {"WRITE FIRST that is all", opcode(kOpcodeRcWriteFirst, kMtu, kMtu), kNakInvalidRequest},
      {"SEND ONLY that is long", opcode(kOpcodeRcSendOnly, kMtu + 1), kNakInvalidRequest},
      {"WRITE ONLY longer than it says", opcode(kOpcodeRcWriteOnly, 17), kNakInvalidRequest},
      {"WRITE ONLY shorter than it says", opcode(kOpcodeRcWriteOnly, 15), kNakInvalidRequest},
      {"WRITE of more than 2^31", opcode(kOpcodeRcWriteFirst, kMtu, 0x80000001), kNakInvalidRequest},
      {"READ of more than 2^31", opcode(kOpcodeRcReadRequest, 0, 0x80000001), kNakInvalidRequest},
      {"READ with payload", opcode(kOpcodeRcReadRequest, 4), kNakInvalidRequest},
      {"atomic with payload", opcode(kOpcodeRcFetchAdd, 4), kNakInvalidRequest},
      {"atomic at an odd address",
       [](Attack& a) {
         a.send(header_of(kOpcodeRcFetchAdd, {a.open.address + 4, a.open.key, 8}));
       },
       kNakInvalidRequest},
      {"reserved opcode", opcode(0x15, 4), kNakInvalidRequest},
      {"reserved opcode", opcode(0x1f, 0), kNakInvalidRequest},
      {"READs beyond max_dest_rd_atomic",
       [](Attack& a) {
         const DataHeader read = header_of(kOpcodeRcReadRequest, {a.open.address, a.open.key, 8});
         for (uint32_t i = 0; i < 3; ++i) {  // while none is answered yet
           DataHeader header = read;
           header.psn = psn_add(a.next, i);
           a.pair.deliver(a.pair.right, a.pair.to(a.pair.right, header));
         }
         a.next = psn_add(a.next, 3);
         a.pair.run(1 * kMillisecond);
       },
       kNakInvalidRequest},
  };
  for (const Refused& refused : cases) check_refused(refused);
}

TEST_CASE("a message that another one interrupts, or that goes on wrongly, is refused") {
  const auto then = [](uint8_t first, uint8_t second, uint32_t payload, uint32_t dma = 3 * kMtu) {
    Attack a;
    a.pair.connect();
    a.pair.right.receive(a.inbox);
    a.send(header_of(first, {a.open.address, a.open.key, dma}), kMtu);
    const Region open = a.open;
    a.send(header_of(second, {a.open.address, a.open.key, 16}), payload);
    CHECK(a.pair.right.rc.state() == QueuePairState::error);
    CHECK(a.answers.back().syndrome() == kNakInvalidRequest);
    CHECK(a.open.words == open.words);
    CHECK(a.pair.right.take().size() == 1);
  };
  for (uint8_t second : {kOpcodeRcSendOnly, kOpcodeRcSendFirst, kOpcodeRcWriteOnly, kOpcodeRcReadRequest, kOpcodeRcFetchAdd,
                         kOpcodeRcSendMiddle}) {
    const bool full = second == kOpcodeRcSendFirst || second == kOpcodeRcSendMiddle;
    const bool none = second == kOpcodeRcReadRequest || second == kOpcodeRcFetchAdd;
    then(kOpcodeRcWriteFirst, second, full ? kMtu : none ? 0 : 16);
  }
  then(kOpcodeRcSendFirst, kOpcodeRcWriteMiddle, kMtu);
  then(kOpcodeRcSendFirst, kOpcodeRcSendOnly, 16);
  then(kOpcodeRcSendFirst, kOpcodeRcSendLast, 0);
  then(kOpcodeRcWriteFirst, kOpcodeRcWriteLast, 0);
  then(kOpcodeRcWriteFirst, kOpcodeRcWriteLast, 5, kMtu + 4);
  then(kOpcodeRcWriteFirst, kOpcodeRcWriteMiddle, kMtu, 2 * kMtu);
  then(kOpcodeRcWriteFirst, kOpcodeRcWriteMiddle, kMtu - 1);
}

TEST_CASE("a receive that is not valid: the peer hears of an operational error, the application of its mistake") {
  const auto with = [](const ReceiveWork& receive, WorkStatus status, uint8_t syndrome) {
    Attack a;
    a.pair.connect();
    ReceiveWork work = receive;
    if (work.local_key == 0) work.local_key = a.inbox.key;
    if (work.local_address == 0) work.local_address = a.inbox.address;
    a.pair.right.rc.post_receive(work);
    a.pair.right.receive(a.inbox, 2);
    a.send(header_of(kOpcodeRcSendOnly), 100);
    CHECK(a.untouched());
    const std::vector<Completion> all = a.pair.right.take();
    REQUIRE(all.size() == 2);
    CHECK(all[0].id == 1);
    CHECK(all[0].status == status);
    CHECK(all[1].status == WorkStatus::flushed);
    REQUIRE(a.answers.size() == 1);
    CHECK(a.answers[0].syndrome() == syndrome);
  };
  with({1, 0, 99, 0}, WorkStatus::local_length_error, kNakInvalidRequest);
  with({1, 0, 100, 0x12345}, WorkStatus::local_protection_error, kNakRemoteOperation);
  with({1, 0x1000, 100, 0}, WorkStatus::local_protection_error, kNakRemoteOperation);
}

TEST_CASE("a SEND whose second packet is more than its receive has room for") {
  Attack a;
  a.pair.connect();
  a.pair.right.rc.post_receive({1, a.inbox.address, kMtu + 99, a.inbox.key});
  a.send(header_of(kOpcodeRcSendFirst), kMtu);
  const Region half = a.inbox;
  a.send(header_of(kOpcodeRcSendLast), 100);
  CHECK(a.inbox.words == half.words);
  const std::vector<Completion> all = a.pair.right.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WorkStatus::local_length_error);
  CHECK(a.answers.back().syndrome() == kNakInvalidRequest);
}

TEST_CASE("a queue pair fails once, whatever else goes wrong with what still waits to be sent") {
  Attack a;
  a.pair.connect();
  DataHeader read = header_of(kOpcodeRcReadRequest, {a.open.address, a.open.key, a.open.length});
  read.psn = a.next;
  a.pair.deliver(a.pair.right, a.pair.to(a.pair.right, read));
  read.psn = psn_add(a.next, 8);
  read.reth.rkey = 0;
  a.pair.deliver(a.pair.right, a.pair.to(a.pair.right, read));
  CHECK(a.pair.right.rc.state() == QueuePairState::error);
  a.pair.right.memory.remove(a.open.key);
  CHECK(a.pair.run());
  REQUIRE(a.pair.right.completions.size() == 1);
  CHECK(a.pair.right.completions[0].retired == 0);
  REQUIRE(a.answers.size() == 1);
  CHECK(a.answers[0].syndrome() == kNakRemoteAccess);
  CHECK(a.answers[0].psn() == a.next);
}

TEST_CASE("a NAK is for its own work request: a READ before it that was never answered is flushed") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.recovery = recovery; });
    pair.connect();
    Region local = pair.left.make_region(8);
    Region remote = pair.right.make_region(8);
    pair.left.rc.post_send({1, WorkOpcode::read, kSignaled, 8, local.address, local.key, remote.key, remote.address});
    pair.left.rc.post_send({2, WorkOpcode::write, kSignaled, 8, local.address, local.key, 0, 0});
    pair.on_frame = [](End&, Frame& frame) { return frame.opcode() != kOpcodeRcReadResponseOnly; };
    CHECK(pair.run());
    const std::vector<Completion> all = pair.left.take();
    REQUIRE(all.size() == 2);
    CHECK(all[0].status == WorkStatus::flushed);
    CHECK(all[1].status == WorkStatus::remote_access_error);
  }
}

TEST_CASE("a key that a peer may not invalidate ends the queue pair") {
  Attack a;
  a.pair.connect();
  Region lasting = a.pair.right.make_region(8, 0, kLocalWrite | kRemoteWrite);
  a.pair.right.receive(a.inbox);
  DataHeader header = header_of(kOpcodeRcSendOnlyInvalidate);
  header.immediate = lasting.key;
  a.send(header);
  CHECK(a.answers.empty());
  CHECK(a.pair.right.rc.state() == QueuePairState::error);
  CHECK(a.pair.right.memory.find(lasting.key, 7, lasting.address, 8, kRemoteWrite) != nullptr);
}

TEST_CASE("each NAK reaches the requester's completion, and what follows is flushed") {
  const auto run = [](uint8_t syndrome, WorkStatus status) {
    Pair pair;
    pair.connect();
    Region local = pair.left.make_region(8);
    for (uint64_t id = 1; id <= 3; ++id) {
      pair.left.rc.post_send({id, WorkOpcode::write, kSignaled, 8, local.address, local.key, 1, 0});
    }
    pair.on_frame = [](End&, Frame&) { return false; };
    pair.run(100 * kMicrosecond);
    DataHeader nak;
    nak.opcode = kOpcodeRcAcknowledge;
    nak.psn = psn_add(pair.left_attributes.send_psn, 1);
    nak.aeth = {syndrome, 1};
    pair.deliver(pair.left, pair.to(pair.left, nak));
    const std::vector<Completion> all = pair.left.take();
    REQUIRE(all.size() == 3);
    CHECK(all[0].status == WorkStatus::success);
    CHECK(all[1].status == status);
    CHECK(all[2].status == WorkStatus::flushed);
    CHECK(pair.left.rc.state() == QueuePairState::error);
  };
  run(kNakInvalidRequest, WorkStatus::remote_invalid_request_error);
  run(kNakRemoteAccess, WorkStatus::remote_access_error);
  run(kNakRemoteOperation, WorkStatus::remote_operation_error);
}

}  // namespace
}  // namespace weir
