#include "base/native_error.h"
#include "test/transport_harness.h"
#include "transport/datagram.h"

namespace weir {
namespace {

using test::Frame;
using test::kAllRights;

struct Inbox : CompletionSink {
  void complete(const Completion& completion) override { all.push_back(completion); }
  std::vector<Completion> all;
};

// One end that sends and one that receives; what is sent is carried over by hand.
struct Datagrams {
  explicit Datagrams(uint8_t ip_version = 4) : headers(test::path_between(1, 2, ip_version)) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
    key = memory.add({bytes.data(), kAddress, bytes.size(), 7, kAllRights, nullptr});
    attributes.domain = 7;
    attributes.queue_key = 0x80001234;
    attributes.send_psn = 0xffffff;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      sender.modify(to, attributes);
      receiver.modify(to, attributes);
    }
  }
  SendWork work(uint32_t length, WorkOpcode opcode = WorkOpcode::send) const {
    SendWork w{5, opcode, kSignaled, length, kAddress, key};
    w.immediate = 0xcafe0001;
    w.address_handle = handle;
    w.remote_qpn = 21;
    w.queue_key = attributes.queue_key;
    return w;
  }
  Frame send(const SendWork& w) {
    sender.post_send(w);
    const uint32_t due = sender.data_bytes();
    REQUIRE(due > 0);
    OutgoingPacket out;
    REQUIRE(sender.take_data(0, out));
    CHECK(out.headers == addresses.find(handle));
    CHECK(sender.data_bytes() == 0);  // not before this one has been made
    const Frame frame = test::build_frame(headers, out.header, out.payload, out.payload_bytes);
    CHECK(frame.bytes.size() == headers.bth_offset() + due);
    CHECK(sender.next_deadline() == 0);
    sender.advance(0);
    CHECK(sender.next_deadline() == kNever);
    return frame;
  }
  void deliver(const Frame& frame) { receiver.receive(0, frame.bytes.data(), frame.meta); }
  Completion sole() {
    REQUIRE(inbox.all.size() == 1);
    return std::exchange(inbox.all, {})[0];
  }

  static constexpr uint64_t kAddress = 0x5000;
  static constexpr uint64_t kPlace = kAddress + 4'096;
  RoceTemplate headers;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(16'384);
  MemoryTable memory{4};
  TransportCounters counters;
  Inbox outbox, inbox;
  AddressTable addresses;
  uint32_t handle = addresses.add(test::path_between(1, 2));
  Datagram sender{20, {.memory = memory, .completions = outbox, .counters = counters, .addresses = &addresses}, 4, 4};
  Datagram receiver{21, {memory, inbox, counters}, 4, 4};
  QueueAttributes attributes;
  uint32_t key = 0;
};

TEST_CASE("a datagram arrives behind its network header, over IPv4 and IPv6") {
  for (uint8_t ip_version : {4, 6}) {
    for (uint32_t length : {0u, 1u, 3u, 1'023u, 1'024u}) {
      for (WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::send_immediate}) {
        CAPTURE(length);
        Datagrams d(ip_version);
        std::fill(d.bytes.begin() + 4'096, d.bytes.end(), 0xee);
        d.receiver.post_receive({9, Datagrams::kPlace, kGrhBytes + length, d.key});
        const Frame frame = d.send(d.work(length, opcode));
        CHECK(frame.psn() == 0xffffff);
        CHECK(frame.bth().destination_qp == 21);
        d.deliver(frame);
        const Completion received = d.sole();
        CHECK(received.id == 9);
        CHECK(received.status == WorkStatus::success);
        CHECK(received.receive);
        CHECK(received.bytes == kGrhBytes + length);
        CHECK(received.source_qpn == 20);
        const bool immediate = opcode == WorkOpcode::send_immediate;
        CHECK((received.flags & kWithGrh) != 0);
        CHECK(((received.flags & kWithImmediate) != 0) == immediate);
        CHECK(((received.flags & kWithIpv6) != 0) == (ip_version == 6));
        CHECK(received.immediate == (immediate ? 0xcafe0001 : 0));
        const uint8_t* to = d.bytes.data() + 4'096;
        CHECK(std::memcmp(to + kGrhBytes, d.bytes.data(), length) == 0);
        CHECK(to[kGrhBytes + length] == 0xee);
        const uint32_t header = ip_version == 4 ? 20 : 40;
        CHECK(std::memcmp(to + kGrhBytes - header, frame.bytes.data() + frame.meta.l3_offset, header) == 0);
        for (uint32_t i = 0; i < kGrhBytes - header; ++i) CHECK(to[i] == 0);
        REQUIRE(d.outbox.all.size() == 1);
        CHECK(d.outbox.all[0].id == 5);
        CHECK(d.outbox.all[0].status == WorkStatus::success);
        CHECK(d.outbox.all[0].opcode == opcode);
      }
    }
  }
}

TEST_CASE("what is not for the receiver is dropped, and takes up no receive") {
  Datagrams d;
  const std::vector<uint8_t> before = d.bytes;
  const Frame frame = d.send(d.work(100));
  d.deliver(frame);  // no receive
  CHECK(d.counters.drop_datagram == 1);
  d.receiver.post_receive({1, Datagrams::kPlace, kGrhBytes + 99, d.key});
  d.deliver(frame);  // too short
  CHECK(d.counters.drop_datagram == 2);
  SendWork wrong = d.work(10);
  wrong.queue_key ^= 1;
  d.deliver(d.send(wrong));
  CHECK(d.counters.drop_queue_key == 1);
  QueueAttributes other = d.attributes;
  other.partition_key = 0x8001;
  d.sender.modify(QueuePairState::rts, other);
  d.deliver(d.send(d.work(10)));
  CHECK(d.counters.drop_partition_key == 1);
  CHECK(d.inbox.all.empty());
  CHECK(d.bytes == before);
  d.sender.modify(QueuePairState::rts, d.attributes);
  d.deliver(d.send(d.work(99)));
  CHECK(d.sole().status == WorkStatus::success);
  for (QueuePairState state : {QueuePairState::error, QueuePairState::reset, QueuePairState::init}) {
    d.receiver.modify(state, d.attributes);
    d.deliver(frame);
  }
  CHECK(d.counters.drop_wrong_state == 3);
}

TEST_CASE("a receive that is not valid ends the queue pair") {
  Datagrams d;
  d.receiver.post_receive({1, Datagrams::kPlace, 4'096, d.key + 1});
  d.receiver.post_receive({2, Datagrams::kPlace, 4'096, d.key});
  d.deliver(d.send(d.work(100)));
  REQUIRE(d.inbox.all.size() == 3);
  CHECK(d.inbox.all[0].status == WorkStatus::local_protection_error);
  CHECK(d.inbox.all[1].status == WorkStatus::flushed);
  CHECK(d.inbox.all[2].retired == 0);  // the event
  CHECK(d.receiver.state() == QueuePairState::error);
}

TEST_CASE("a datagram longer than the path MTU, or without its memory, is never sent") {
  for (bool longer : {false, true}) {
    Datagrams d;
    SendWork w = d.work(longer ? 1'025 : 10);
    if (!longer) w.local_key += 1;
    d.sender.post_send(w);
    d.sender.post_send(d.work(10));
    OutgoingPacket out;
    CHECK(!d.sender.take_data(0, out));
    CHECK(d.sender.data_bytes() == 0);
    REQUIRE(d.outbox.all.size() == 3);
    CHECK(d.outbox.all[0].status == (longer ? WorkStatus::local_length_error : WorkStatus::local_protection_error));
    CHECK(d.outbox.all[1].status == WorkStatus::flushed);
    CHECK(d.sender.state() == QueuePairState::error);
  }
}

TEST_CASE("where frames are made elsewhere, datagrams are complete one by one as they leave, or flushed") {
  Datagrams d;
  Datagram away{
      20,
      {.memory = d.memory, .completions = d.outbox, .counters = d.counters, .tells_left = true, .addresses = &d.addresses},
      4,
      4};
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) away.modify(to, d.attributes);
  for (int i = 0; i < 4; ++i) away.post_send(d.work(8));
  OutgoingPacket out;
  for (int i = 0; i < 3; ++i) REQUIRE(away.take_data(0, out));
  CHECK(away.next_deadline() == kNever);
  CHECK(d.outbox.all.empty());
  away.left();
  REQUIRE(d.outbox.all.size() == 1);
  CHECK(d.outbox.all[0].status == WorkStatus::success);
  // There is room for one.
  away.post_send(d.work(8));
  CHECK(d.outbox.all.size() == 1);
  // One that is not valid ends it: those that were taken are complete, those behind it are flushed.
  d.memory.remove(d.key);
  CHECK(!away.take_data(0, out));
  REQUIRE(d.outbox.all.size() >= 5);
  CHECK(d.outbox.all[2].status == WorkStatus::success);
  CHECK(d.outbox.all[3].status == WorkStatus::local_protection_error);
  CHECK(d.outbox.all[4].status == WorkStatus::flushed);
  // Both that it had taken leave now.
  const size_t told = d.outbox.all.size();
  away.left();
  away.left();
  CHECK(d.outbox.all.size() == told);
}

TEST_CASE("only SENDs, only so many, and unsignaled ones are counted by the next") {
  Datagrams d;
  d.sender.post_send(d.work(8, WorkOpcode::write));
  REQUIRE(d.outbox.all.size() == 1);
  CHECK(d.outbox.all[0].status == WorkStatus::local_operation_error);
  d.outbox.all.clear();
  for (int i = 0; i < 3; ++i) {
    SendWork quiet = d.work(8);
    quiet.flags = 0;
    d.send(quiet);
  }
  CHECK(d.outbox.all.empty());
  d.send(d.work(8));
  REQUIRE(d.outbox.all.size() == 1);
  CHECK(d.outbox.all[0].retired == 4);
  d.outbox.all.clear();
  for (int i = 0; i < 5; ++i) d.sender.post_send(d.work(8));
  REQUIRE(d.outbox.all.size() == 1);
  CHECK(d.outbox.all[0].status == WorkStatus::local_operation_error);
  d.sender.modify(QueuePairState::error, {});
  CHECK(d.outbox.all.size() == 5);
  d.sender.post_send(d.work(8));
  CHECK(d.outbox.all.back().status == WorkStatus::flushed);
}

}  // namespace
}  // namespace weir
