// Every operation of the reliable connection at every path MTU; order, windows, credits, fences, limits on READs and atomics.
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;

SendWork work_on(WorkOpcode opcode, const Region& local, const Region& remote, uint32_t length, uint64_t id = 5) {
  SendWork work;
  work.id = id;
  work.opcode = opcode;
  work.flags = kSignaled;
  work.length = length;
  work.local_address = local.address;
  work.local_key = local.key;
  work.remote_address = remote.address;
  work.remote_key = remote.key;
  return work;
}

Completion only(End& end) {
  const std::vector<Completion> all = end.take();
  REQUIRE(all.size() == 1);
  return all[0];
}

// One message of `length` bytes, then a look at both memories and completions.
void carry(Pair& pair, WorkOpcode opcode, uint32_t length) {
  CAPTURE(static_cast<int>(opcode));
  CAPTURE(length);
  Region local = pair.left.make_region(length + 64, 1);
  Region remote = pair.right.make_region(length + 64, 2);
  const bool read = opcode == WorkOpcode::read;
  std::vector<uint64_t> expected = read ? local.words : remote.words;
  std::memcpy(expected.data(), read ? remote.data() : local.data(), length);
  if (needs_receive(opcode)) pair.right.receive(remote, 9);
  const Region victim = pair.right.make_region(8);
  SendWork work = work_on(opcode, local, remote, length);
  work.immediate = 0x12345678;
  if (opcode == WorkOpcode::send_invalidate) work.remote_key = victim.key;
  pair.left.rc.post_send(work);
  REQUIRE(pair.run());
  const Completion sent = only(pair.left);
  CHECK(sent.status == WorkStatus::success);
  CHECK(sent.id == 5);
  CHECK(sent.opcode == opcode);
  CHECK(sent.bytes == length);
  CHECK(sent.retired == 1);
  CHECK(sent.qpn == 17);
  CHECK(!sent.receive);
  CHECK((read ? local.words : remote.words) == expected);
  CHECK((pair.right.memory.find(victim.key, 7, victim.address, 8, 0) == nullptr) == (opcode == WorkOpcode::send_invalidate));
  if (!needs_receive(opcode)) {
    CHECK(pair.right.completions.empty());
    return;
  }
  const Completion received = only(pair.right);
  CHECK(received.receive);
  CHECK(received.status == WorkStatus::success);
  CHECK(received.id == 9);
  CHECK(received.bytes == length);
  CHECK(received.qpn == 18);
  CHECK(received.opcode == (opcode == WorkOpcode::write_immediate ? WorkOpcode::write_immediate : WorkOpcode::send));
  switch (opcode) {
    case WorkOpcode::send:
      CHECK(received.flags == 0);
      break;
    case WorkOpcode::send_invalidate:
      CHECK(received.flags == kWithInvalidate);
      CHECK(received.immediate == victim.key);
      break;
    default:
      CHECK(received.flags == kWithImmediate);
      CHECK(received.immediate == 0x12345678);
  }
}

TEST_CASE("every operation carries every size at every path MTU, across the wrap of the PSN") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (uint32_t mtu : {256u, 512u, 1024u, 2048u, 4096u}) {
      CAPTURE(mtu);
      Pair pair;
      pair.both([&](QueueAttributes& a) { a.path_mtu = mtu, a.recovery = recovery; });
      pair.connect();
      for (uint8_t opcode = 0; opcode <= static_cast<uint8_t>(WorkOpcode::read); ++opcode) {
        for (uint32_t length : {0u, 1u, 3u, mtu - 1, mtu, mtu + 1, 3 * mtu + 5, 300 * mtu + 7}) {
          carry(pair, static_cast<WorkOpcode>(opcode), length);
        }
      }
      CHECK(pair.left.counters.retransmitted == 0);
      CHECK(pair.left.counters.local_ack_timeout_err == 0);
      CHECK(pair.right.counters.out_of_sequence == 0);
      CHECK(pair.right.counters.duplicate_request == 0);
    }
  }
}

TEST_CASE("atomics: what was there comes back, and a comparison that fails changes nothing") {
  Pair pair;
  pair.connect();
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(24);
  remote.words = {1, 100, 3};
  SendWork work = work_on(WorkOpcode::fetch_add, local, remote, 8);
  work.remote_address += 8;
  work.swap_add = UINT64_MAX;  // one less
  const auto run = [&] {
    pair.left.rc.post_send(work);
    REQUIRE(pair.run());
    CHECK(only(pair.left).status == WorkStatus::success);
    CHECK(remote.words[0] == 1);
    CHECK(remote.words[2] == 3);
  };
  run();
  CHECK(local.words[0] == 100);
  CHECK(remote.words[1] == 99);
  work.opcode = WorkOpcode::compare_swap;
  work.compare = 100;
  work.swap_add = 0x0123456789abcdef;
  run();
  CHECK(local.words[0] == 99);
  CHECK(remote.words[1] == 99);
  work.compare = 99;
  run();
  CHECK(local.words[0] == 99);
  CHECK(remote.words[1] == 0x0123456789abcdef);
  CHECK(pair.right.completions.empty());
}

TEST_CASE("AckReq ends each message; the solicited bit is on the last packet of those that take up a receive") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.path_mtu = 256; });
  std::vector<Bth> packets;
  pair.on_frame = [&](End& from, Frame& frame) {
    if (&from == &pair.left) packets.push_back(frame.bth());
    return true;
  };
  pair.connect();
  Region local = pair.left.make_region(600);
  Region remote = pair.right.make_region(600);
  for (int i = 0; i < 8; ++i) pair.right.receive(remote);
  for (WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::write_immediate, WorkOpcode::write}) {
    packets.clear();
    SendWork work = work_on(opcode, local, remote, 600);
    work.flags |= kSolicited;
    pair.left.rc.post_send(work);
    REQUIRE(pair.run());
    REQUIRE(packets.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(packets[i].ack_request == (i == 2));
      CHECK(packets[i].solicited == (i == 2 && opcode != WorkOpcode::write));
      CHECK(packets[i].destination_qp == 18);
    }
  }
}

TEST_CASE("unsignaled work is counted by the next completion") {
  Pair pair;
  pair.connect();
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(8);
  for (uint64_t id = 0; id < 10; ++id) {
    SendWork work = work_on(WorkOpcode::write, local, remote, 8, id);
    if (id != 3 && id != 9) work.flags = 0;
    pair.left.rc.post_send(work);
  }
  REQUIRE(pair.run());
  const std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == 3);
  CHECK(all[0].retired == 4);
  CHECK(all[1].id == 9);
  CHECK(all[1].retired == 6);
}

TEST_CASE("never more packets in flight than the window, and one of the last quarter asks for an answer") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (uint32_t window : {4u, 5u, 64u, 256u}) {
      for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
        CAPTURE(window);
        Pair pair;
        pair.both([&](QueueAttributes& a) { a.window = window, a.path_mtu = 256, a.recovery = recovery; });
        pair.connect();
        Region local = pair.left.make_region(1'000 * 256);
        Region remote = pair.right.make_region(1'000 * 256);
        // The peer is silent at first: what is sent before the timer expires is the window.
        uint32_t furthest = 0;
        uint32_t asked = 0;
        pair.on_frame = [&](End&, Frame& frame) {
          const uint32_t offset = static_cast<uint32_t>(psn_distance(frame.psn(), pair.left_attributes.send_psn));
          const uint32_t packets = opcode == WorkOpcode::read ? frame.reth().dma_length / 256 : 1;
          furthest = std::max(furthest, offset + packets);
          if (frame.bth().ack_request) asked = offset + packets;
          return false;
        };
        pair.left.rc.post_send(work_on(opcode, local, remote, local.length));
        CHECK(!pair.run(900 * kMicrosecond));
        CHECK(furthest <= window);
        CHECK(furthest > window * 3 / 4);
        if (opcode == WorkOpcode::write) CHECK(furthest - asked < std::max(1u, window / 4));
        pair.on_frame = nullptr;
        CHECK(pair.run());
        CHECK(only(pair.left).status == WorkStatus::success);
        CHECK(std::memcmp(local.data(), remote.data(), local.length) == 0);
      }
    }
  }
}

TEST_CASE("READs and atomics under way never exceed max_rd_atomic, and all of them are answered") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.max_rd_atomic = a.max_dest_rd_atomic = 3; });
  int under_way = 0;
  int most = 0;
  pair.on_frame = [&](End&, Frame& frame) {
    const uint8_t opcode = frame.opcode();
    if (opcode == kOpcodeRcReadRequest || opcode == kOpcodeRcFetchAdd) most = std::max(most, ++under_way);
    if (opcode == kOpcodeRcReadResponseOnly || opcode == kOpcodeRcAtomicAcknowledge) --under_way;
    return true;
  };
  pair.connect();
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(8);
  for (int i = 0; i < 40; ++i) {
    pair.left.rc.post_send(work_on(i % 2 == 0 ? WorkOpcode::read : WorkOpcode::fetch_add, local, remote, 8));
  }
  REQUIRE(pair.run());
  CHECK(pair.left.take().size() == 40);
  CHECK(most == 3);
}

TEST_CASE("a fence holds back what follows until READs and atomics are complete; without it they overlap") {
  for (bool fence : {false, true}) {
    Pair pair;
    std::vector<uint8_t> opcodes;
    pair.on_frame = [&](End&, Frame& frame) {
      opcodes.push_back(frame.opcode());
      return true;
    };
    pair.connect();
    Region local = pair.left.make_region(8);
    Region remote = pair.right.make_region(8);
    pair.left.rc.post_send(work_on(WorkOpcode::read, local, remote, 8));
    SendWork write = work_on(WorkOpcode::write, local, remote, 8);
    if (fence) write.flags |= kFence;
    pair.left.rc.post_send(write);
    REQUIRE(pair.run());
    REQUIRE(opcodes.size() == 4);
    CHECK(opcodes[fence ? 1 : 2] == kOpcodeRcReadResponseOnly);
    CHECK(opcodes[fence ? 2 : 1] == kOpcodeRcWriteOnly);
  }
}

TEST_CASE("a READ that may not be written to, and a SEND that may not be read, never leave") {
  Pair pair;
  pair.connect();
  Region readable = pair.left.make_region(8, 0, kRemoteRead);
  Region remote = pair.right.make_region(8);
  pair.on_frame = [](End&, Frame&) {
    FAIL("a packet was sent");
    return false;
  };
  pair.left.rc.post_send(work_on(WorkOpcode::read, readable, remote, 8));
  CHECK(pair.run());
  CHECK(only(pair.left).status == WorkStatus::local_protection_error);
  CHECK(pair.left.rc.state() == QueuePairState::error);
}

TEST_CASE("work that cannot be taken is completed at once") {
  Pair pair(1, 2);
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(8);
  pair.left.rc.post_send(work_on(WorkOpcode::write, local, remote, 8));  // not connected
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  pair.left.receive(local);
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  pair.connect();
  pair.left.rc.post_send(work_on(WorkOpcode::fetch_add, local, remote, 4));
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  pair.left.rc.post_send(work_on(WorkOpcode::write, local, remote, kMaxMessage + 1));
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  for (int i = 0; i < 3; ++i) pair.left.rc.post_send(work_on(WorkOpcode::write, local, remote, 8));  // one too many
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  for (int i = 0; i < 3; ++i) pair.left.receive(local);
  CHECK(only(pair.left).status == WorkStatus::local_operation_error);
  CHECK(pair.run());
  CHECK(pair.left.take().size() == 2);
}

TEST_CASE("requests that are posted as one are as many as if each had been posted by itself") {
  Pair pair(1, 5);
  pair.connect();
  Region local = pair.left.make_region(3'000, 7);
  Region remote = pair.right.make_region(3'000);
  pair.left.rc.post_send(work_on(WorkOpcode::write, local, remote, 8, 1));
  pair.left.rc.post_send(work_on(WorkOpcode::write, local, remote, 3'000, 2), 6);  // two too many
  std::vector<Completion> done = pair.left.take();
  REQUIRE(done.size() == 2);
  for (const Completion& c : done) CHECK((c.id == 2 && c.status == WorkStatus::local_operation_error));
  CHECK(pair.run());
  done = pair.left.take();
  REQUIRE(done.size() == 5);
  for (size_t i = 0; i < done.size(); ++i) {
    CHECK(done[i].id == (i == 0 ? 1 : 2));
    CHECK(done[i].status == WorkStatus::success);
    CHECK(done[i].retired == 1);
  }
  CHECK(pair.right.rc.received().messages == 5);
  CHECK(std::memcmp(local.data(), remote.data(), 3'000) == 0);
  // The next completion tells of those without one of their own.
  SendWork quiet = work_on(WorkOpcode::send, local, remote, 8, 3);
  quiet.flags = 0;
  pair.right.rc.post_receive({9, remote.address, remote.length, remote.key}, 3);
  pair.left.rc.post_send(quiet, 2);
  pair.left.rc.post_send(work_on(WorkOpcode::send, local, remote, 8, 4));
  CHECK(pair.run());
  CHECK(only(pair.left).retired == 3);
  done = pair.right.take();
  REQUIRE(done.size() == 3);
  for (const Completion& c : done) CHECK((c.id == 9 && c.receive));
  pair.right.rc.post_receive({10, remote.address, remote.length, remote.key}, 7);  // two too many
  CHECK(pair.right.take().size() == 2);
}

TEST_CASE("work whose PSNs add up to more than there are") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.path_mtu = 256; });
  pair.connect();
  // The WRITEs, 32 times 2^22 packets, wait for the READ; then the first of them fails, for it has no memory.
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(8);
  pair.left.rc.post_send(work_on(WorkOpcode::read, local, remote, 8, 1));
  for (uint64_t id = 2; id < 34; ++id) {
    SendWork write = work_on(WorkOpcode::write, local, remote, kMaxMessage, id);
    write.flags |= kFence;
    pair.left.rc.post_send(write);
  }
  CHECK(pair.run());
  const std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 33);
  CHECK(all[0].status == WorkStatus::success);
  CHECK(all[1].status == WorkStatus::local_protection_error);
  CHECK(all[32].status == WorkStatus::flushed);
  CHECK(std::memcmp(local.data(), remote.data(), 8) == 0);
}

}  // namespace
}  // namespace weir
