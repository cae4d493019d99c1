// Unreliable connections: whole messages arrive, and of one that loses a packet nothing is told.
#include "base/native_error.h"
#include "test/transport_harness.h"
#include "transport/unreliable_connection.h"

namespace weir {
namespace {

using test::build_frame;
using test::Frame;
using test::kAllRights;
using test::path_between;

constexpr uint32_t kMtu = 256;

struct Told : CompletionSink {
  void complete(const Completion& completion) override {
    if (completion.retired > 0) all.push_back(completion);
  }
  std::vector<Completion> all;
};

// One end that sends and one that receives; what is sent is carried over by hand.
struct Unreliable {
  explicit Unreliable(uint8_t access = kAllRights) {
    for (size_t i = 0; i < kHalf; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / kMtu);
    key = memory.add({bytes.data(), kAddress, bytes.size(), 7, kAllRights, nullptr});
    QueueAttributes attributes;
    attributes.domain = 7;
    attributes.path_mtu = kMtu;
    attributes.access = access;
    attributes.remote_qpn = 21;
    attributes.send_psn = attributes.receive_psn = 0xfffffe;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      sender.modify(to, attributes);
      receiver.modify(to, attributes);
    }
  }
  void post(WorkOpcode opcode, uint32_t length, uint8_t flags = kSignaled) {
    SendWork work{5, opcode, flags, length, kAddress, key};
    work.remote_address = kTarget;
    work.remote_key = key;
    work.immediate = 0xcafe0001;
    sender.post_send(work);
  }
  void receive(uint64_t id, uint32_t length) { receiver.post_receive({id, kTarget, length, key}); }
  // All packets of what was posted.
  std::vector<Frame> frames() {
    std::vector<Frame> all;
    while (const uint32_t due = sender.data_bytes()) {
      OutgoingPacket out;
      REQUIRE(sender.take_data(0, out));
      all.push_back(build_frame(headers, out.header, out.payload, out.payload_bytes));
      CHECK(all.back().bytes.size() == headers.bth_offset() + due);
      sender.advance(0);
    }
    return all;
  }
  void deliver(const Frame& frame) {
    CHECK(receiver.understands(frame.opcode()));
    receiver.receive(0, frame.bytes.data(), frame.meta);
  }
  bool arrived(uint32_t length) const { return std::memcmp(bytes.data(), bytes.data() + kHalf, length) == 0; }

  static constexpr uint32_t kHalf = 4'096;
  static constexpr uint64_t kAddress = 0x5000;
  static constexpr uint64_t kTarget = kAddress + kHalf;
  RoceTemplate headers{path_between(1, 2)};
  std::vector<uint8_t> bytes = std::vector<uint8_t>(2 * kHalf);
  MemoryTable memory{4};
  TransportCounters counters;
  Told sent, told;
  UnreliableConnection sender{20, {memory, sent, counters}, 4, 4};
  UnreliableConnection receiver{21, {memory, told, counters}, 4, 4};
  uint32_t key = 0;
};

TEST_CASE("a SEND of an unreliable connection arrives whole, over the end of the PSNs") {
  for (uint32_t length : {0u, 1u, kMtu, kMtu + 1, 5 * kMtu}) {
    for (WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::send_immediate}) {
      CAPTURE(length);
      Unreliable u;
      u.receive(9, length);
      u.post(opcode, length, kSignaled | kSolicited);
      for (const Frame& frame : u.frames()) u.deliver(frame);
      REQUIRE(u.sent.all.size() == 1);
      CHECK(u.sent.all[0].status == WorkStatus::success);
      REQUIRE(u.told.all.size() == 1);
      CHECK(u.told.all[0].id == 9);
      CHECK(u.told.all[0].bytes == length);
      CHECK(u.told.all[0].solicited);
      CHECK(u.told.all[0].flags == (opcode == WorkOpcode::send ? 0 : kWithImmediate));
      CHECK(u.told.all[0].immediate == (opcode == WorkOpcode::send ? 0 : 0xcafe0001));
      CHECK(u.arrived(length));
    }
  }
}

TEST_CASE("a WRITE of an unreliable connection arrives, and takes a receive only with immediate data") {
  Unreliable u;
  u.receive(9, 0);
  u.post(WorkOpcode::write, 3 * kMtu + 1);
  for (const Frame& frame : u.frames()) u.deliver(frame);
  CHECK(u.arrived(3 * kMtu + 1));
  CHECK(u.told.all.empty());
  u.post(WorkOpcode::write_immediate, kMtu);
  for (const Frame& frame : u.frames()) u.deliver(frame);
  REQUIRE(u.told.all.size() == 1);
  CHECK(u.told.all[0].opcode == WorkOpcode::write_immediate);
  CHECK(u.told.all[0].immediate == 0xcafe0001);
}

TEST_CASE("a message that loses any packet is not told of, and its receive is the next one's") {
  for (size_t lost : {0, 1, 2, 3}) {
    CAPTURE(lost);
    Unreliable u;
    u.receive(9, 4 * kMtu);
    u.post(WorkOpcode::send, 4 * kMtu);
    const std::vector<Frame> frames = u.frames();
    REQUIRE(frames.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      if (i != lost) u.deliver(frames[i]);
    }
    CHECK(u.told.all.empty());
    u.post(WorkOpcode::send, 2 * kMtu);
    for (const Frame& frame : u.frames()) u.deliver(frame);
    REQUIRE(u.told.all.size() == 1);
    CHECK(u.told.all[0].id == 9);
    CHECK(u.told.all[0].bytes == 2 * kMtu);
    CHECK(u.arrived(2 * kMtu));
  }
}

TEST_CASE("packets of an unreliable connection that nobody may send change nothing") {
  Unreliable u(kLocalWrite | kRemoteRead);
  u.post(WorkOpcode::write, kMtu);
  for (const Frame& frame : u.frames()) u.deliver(frame);
  CHECK(u.bytes[Unreliable::kHalf + 1] == 0);
  CHECK(u.counters.drop_message == 1);
  u.post(WorkOpcode::send, kMtu);  // no receive
  u.post(WorkOpcode::send, 2 * kMtu);
  std::vector<Frame> frames = u.frames();
  u.deliver(frames[0]);
  u.receive(9, kMtu);  // too short
  u.deliver(frames[1]);
  u.deliver(frames[2]);
  CHECK(u.told.all.empty());
  CHECK(u.receiver.state() == QueuePairState::rts);
}

TEST_CASE("an unreliable connection has no READs, no atomics and no SEND with invalidate") {
  Unreliable u;
  for (WorkOpcode opcode : {WorkOpcode::read, WorkOpcode::compare_swap, WorkOpcode::fetch_add, WorkOpcode::send_invalidate}) {
    u.post(opcode, 8);
    REQUIRE(u.sent.all.size() == 1);
    CHECK(std::exchange(u.sent.all, {})[0].status == WorkStatus::local_operation_error);
  }
}

}  // namespace
}  // namespace weir
