// States of a queue pair: legal transitions, what each takes and drops, what is flushed; regions that go away under way.
#include "base/native_error.h"
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;

constexpr QueuePairState kStates[] = {QueuePairState::reset, QueuePairState::init, QueuePairState::rtr, QueuePairState::rts,
                                      QueuePairState::error};

// Brings the right end from reset to `state`.
void bring(Pair& pair, QueuePairState state) {
  if (state == QueuePairState::error) {
    pair.right.rc.modify(QueuePairState::init, pair.right_attributes);
    pair.right.rc.modify(state, pair.right_attributes);
  }
  for (QueuePairState next : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    if (state != QueuePairState::error && next <= state) pair.right.rc.modify(next, pair.right_attributes);
  }
  REQUIRE(pair.right.rc.state() == state);
}

SendWork work_of(WorkOpcode opcode, const Region& local, const Region& remote, uint32_t length, uint64_t id = 1) {
  return {id, opcode, kSignaled, length, local.address, local.key, remote.key, remote.address};
}

TEST_CASE("transitions: one by one to RTS, to RESET from anywhere, to ERROR from all but RESET") {
  for (QueuePairState from : kStates) {
    for (QueuePairState to : kStates) {
      CAPTURE(static_cast<int>(from));
      CAPTURE(static_cast<int>(to));
      Pair pair;
      bring(pair, from);
      using S = QueuePairState;
      const bool forward =
          (from == S::reset && to == S::init) || (from == S::init && to == S::rtr) || (from == S::rtr && to == S::rts);
      const bool same = from == to && (from == S::init || from == S::rts);
      const bool legal = to == S::reset || (to == S::error && from != S::reset) || forward || same;
      try {
        pair.right.rc.modify(to, pair.right_attributes);
        CHECK(legal);
        CHECK(pair.right.rc.state() == to);
      } catch (const NativeError& error) {
        CHECK(!legal);
        CHECK(error.code == "INVALID_STATE");
        CHECK(pair.right.rc.state() == from);
      }
    }
  }
}

TEST_CASE("attributes out of their range are refused before anything changes") {
  const std::function<void(QueueAttributes&)> wrong[] = {
      [](QueueAttributes& a) { a.path_mtu = 0; },
      [](QueueAttributes& a) { a.path_mtu = 1'000; },
      [](QueueAttributes& a) { a.path_mtu = 8'192; },
      [](QueueAttributes& a) { a.window = 3; },
      [](QueueAttributes& a) { a.window = 65'537; },
      [](QueueAttributes& a) { a.max_rd_atomic = 0; },
      [](QueueAttributes& a) { a.max_rd_atomic = 129; },
      [](QueueAttributes& a) { a.max_dest_rd_atomic = 129; },
      [](QueueAttributes& a) { a.timeout = 32; },
      [](QueueAttributes& a) { a.retry_count = 8; },
      [](QueueAttributes& a) { a.rnr_retry = 8; },
      [](QueueAttributes& a) { a.min_rnr_timer = 32; },
      [](QueueAttributes& a) { a.window = 257, a.recovery = LossRecovery::selective_repeat; },
  };
  for (const auto& change : wrong) {
    Pair pair;
    QueueAttributes attributes = pair.left_attributes;
    change(attributes);
    CHECK_THROWS_AS(pair.left.rc.modify(QueuePairState::init, attributes), NativeError);
    CHECK(pair.left.rc.state() == QueuePairState::reset);
  }
}

TEST_CASE("requests are executed from RTR on, and dropped before and after") {
  for (QueuePairState state : kStates) {
    CAPTURE(static_cast<int>(state));
    Pair pair;
    bring(pair, state);
    Region target = pair.right.make_region(8, 1);
    const uint64_t before = target.words[0];
    DataHeader header;
    header.opcode = kOpcodeRcWriteOnly;
    header.psn = pair.right_attributes.receive_psn;
    header.reth = {target.address, target.key, 4};
    header.ack_request = true;
    pair.deliver(pair.right, pair.to(pair.right, header, {1, 2, 3, 4}));
    const bool executes = state == QueuePairState::rtr || state == QueuePairState::rts;
    CHECK((target.words[0] != before) == executes);
    CHECK(pair.right.rc.control_waits() == executes);
    CHECK(pair.right.counters.drop_wrong_state == (executes ? 0u : 1u));
    header.opcode = kOpcodeRcAcknowledge;
    pair.deliver(pair.right, pair.to(pair.right, header));
    CHECK((pair.right.counters.drop_wrong_state == 0) == (state == QueuePairState::rts));
    CHECK(pair.right.rc.state() == state);
  }
}

TEST_CASE("packets of another partition are dropped; a full and a limited member may talk") {
  const auto passes = [](uint16_t ours, uint16_t theirs) {
    Pair pair;
    pair.right_attributes.partition_key = ours;
    bring(pair, QueuePairState::rts);
    DataHeader header;
    header.opcode = kOpcodeRcWriteOnly;
    header.psn = pair.right_attributes.receive_psn;
    header.partition_key = theirs;
    header.ack_request = true;
    pair.deliver(pair.right, pair.to(pair.right, header));
    CHECK(pair.right.counters.drop_partition_key == (pair.right.rc.control_waits() ? 0u : 1u));
    return pair.right.rc.control_waits();
  };
  CHECK(passes(0xffff, 0xffff));
  CHECK(passes(0xffff, 0x7fff));
  CHECK(passes(0x7fff, 0xffff));
  CHECK(!passes(0x7fff, 0x7fff));
  CHECK(!passes(0xffff, 0xfffe));
}

TEST_CASE("to ERROR: all work is flushed in order, each completion with what it retires; what is posted later too") {
  Pair pair;
  pair.connect();
  Region local = pair.left.make_region(8);
  pair.on_frame = [](End&, Frame&) { return false; };
  for (uint64_t id = 1; id <= 5; ++id) {
    SendWork work = work_of(WorkOpcode::write, local, local, 8, id);
    work.flags = 0;
    pair.left.rc.post_send(work);
  }
  pair.left.receive(local, 8);
  pair.left.receive(local, 9);
  pair.run(20 * kMicrosecond);
  pair.left.rc.modify(QueuePairState::error, {});
  std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 7);
  for (size_t i = 0; i < 7; ++i) {
    CHECK(all[i].id == std::vector<uint64_t>{1, 2, 3, 4, 5, 8, 9}[i]);
    CHECK(all[i].receive == (i >= 5));
    CHECK(all[i].status == WorkStatus::flushed);
    CHECK(all[i].retired == 1);
  }
  pair.left.rc.post_send(work_of(WorkOpcode::write, local, local, 8, 6));
  pair.left.receive(local, 10);
  all = pair.left.take();
  REQUIRE(all.size() == 2);
  CHECK(all[0].status == WorkStatus::flushed);
  CHECK(all[1].status == WorkStatus::flushed);
  CHECK(pair.left.rc.data_bytes() == 0);
  CHECK(pair.left.rc.next_deadline() == kNever);
}

TEST_CASE("unsignaled work that succeeded is retired by the first that is flushed") {
  Pair pair;
  pair.connect();
  Region local = pair.left.make_region(8);
  Region remote = pair.right.make_region(8);
  for (uint64_t id = 1; id <= 3; ++id) {
    SendWork work = work_of(WorkOpcode::write, local, remote, 8, id);
    work.flags = 0;
    pair.left.rc.post_send(work);
  }
  REQUIRE(pair.run());
  CHECK(pair.left.completions.empty());
  pair.left.rc.post_send(work_of(WorkOpcode::write, local, remote, 8, 4));
  pair.left.rc.modify(QueuePairState::error, {});
  const std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == 4);
  CHECK(all[0].retired == 4);
}

TEST_CASE("a queue pair works again after ERROR, RESET and another connection") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.recovery = recovery; });
    Region local = pair.left.make_region(40'000, 1);
    Region remote = pair.right.make_region(40'000, 2);
    for (int round = 0; round < 3; ++round) {
      pair.both([&](QueueAttributes& a) { a.send_psn += 77, a.receive_psn += 77; });
      pair.connect();
      pair.left.rc.post_send(work_of(WorkOpcode::write, local, remote, 40'000));
      pair.left.rc.post_send(work_of(WorkOpcode::read, local, remote, 40'000));
      pair.run(20 * kMicrosecond);  // in the middle of it
      for (End* end : {&pair.left, &pair.right}) {
        end->rc.modify(QueuePairState::error, {});
        end->rc.modify(QueuePairState::reset, {});
      }
      CHECK(pair.left.take().size() == 2);
      CHECK(pair.run());  // packets on their way are gone
      pair.connect();
      pair.left.rc.post_send(work_of(WorkOpcode::write, local, remote, 40'000));
      CHECK(pair.run());
      const std::vector<Completion> all = pair.left.take();
      REQUIRE(all.size() == 1);
      CHECK(all[0].status == WorkStatus::success);
      CHECK(std::memcmp(local.data(), remote.data(), 40'000) == 0);
      pair.left.rc.modify(QueuePairState::reset, {});
      pair.right.rc.modify(QueuePairState::reset, {});
    }
  }
}

TEST_CASE("a region of the peer that goes away in the middle of a WRITE, a READ or a SEND") {
  for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read, WorkOpcode::send}) {
    CAPTURE(static_cast<int>(opcode));
    Pair pair;
    pair.connect();
    Region local = pair.left.make_region(100'000, 1);
    Region remote = pair.right.make_region(100'000, 2);
    pair.right.receive(remote);
    pair.left.rc.post_send(work_of(opcode, local, remote, 100'000));
    pair.run(40 * kMicrosecond);
    CHECK(pair.right.memory.remove(remote.key));
    const std::vector<uint64_t> remote_then = remote.words;
    CHECK(pair.run());
    CHECK(remote.words == remote_then);
    CHECK(pair.right.rc.state() == QueuePairState::error);
    CHECK(pair.left.rc.state() == QueuePairState::error);
    const std::vector<Completion> sent = pair.left.take();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == (opcode == WorkOpcode::send ? WorkStatus::remote_operation_error : WorkStatus::remote_access_error));
    const std::vector<Completion> received = pair.right.take();
    REQUIRE(received.size() == 1);
    CHECK(received[0].status == (opcode == WorkOpcode::send ? WorkStatus::local_protection_error : WorkStatus::flushed));
    CHECK(pair.right.counters.tx_naks == 1);
  }
}

TEST_CASE("a region of one's own that goes away in the middle") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read, WorkOpcode::send}) {
      CAPTURE(static_cast<int>(opcode));
      Pair pair;
      pair.both([&](QueueAttributes& a) { a.recovery = recovery, a.max_rd_atomic = 1; });
      pair.connect();
      Region lasting = pair.left.make_region(100'000);
      Region local = pair.left.make_region(100'000, 1);
      Region remote = pair.right.make_region(100'000, 2);
      pair.right.receive(remote);
      pair.left.rc.post_send(work_of(WorkOpcode::write, lasting, remote, 8, 1));
      pair.left.rc.post_send(work_of(opcode, local, remote, 100'000, 2));
      pair.left.rc.post_send(work_of(WorkOpcode::write, lasting, remote, 8, 3));
      pair.run(40 * kMicrosecond);
      CHECK(pair.left.memory.remove(local.key));
      const std::vector<uint64_t> local_then = local.words;
      CHECK(pair.run());
      CHECK(local.words == local_then);
      const std::vector<Completion> all = pair.left.take();
      REQUIRE(all.size() == 3);
      CHECK(all[0].status == WorkStatus::success);
      CHECK(all[1].status == WorkStatus::local_protection_error);
      CHECK(all[2].status == WorkStatus::flushed);
      CHECK(pair.left.rc.state() == QueuePairState::error);
    }
  }
}

TEST_CASE("selective repeat: what was kept early and is refused later was never completed") {
  Pair pair;
  pair.both([](QueueAttributes& a) { a.recovery = LossRecovery::selective_repeat; });
  pair.connect();
  Region local = pair.left.make_region(64, 1);
  Region remote = pair.right.make_region(64, 2);
  Region inbox = pair.right.make_region(64, 3);
  bool lost = false;
  pair.on_frame = [&](End& from, Frame&) { return &from != &pair.left || std::exchange(lost, true); };
  pair.left.rc.post_send(work_of(WorkOpcode::write, local, remote, 64, 1));  // lost at first
  pair.left.rc.post_send(work_of(WorkOpcode::send, local, inbox, 64, 2));    // finds no receive when its turn comes
  for (uint64_t id = 3; id < 60; ++id) pair.left.rc.post_send(work_of(WorkOpcode::write, local, remote, 64, id));
  CHECK(!pair.run(5 * kMillisecond));
  std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == 1);
  pair.right.receive(inbox);
  CHECK(pair.run());
  CHECK(pair.left.take().size() == 58);
  CHECK(std::memcmp(inbox.data(), local.data(), 64) == 0);
  // Nothing of what was kept comes up again one window later.
  Region fresh = pair.right.make_region(64, 4);
  for (uint64_t id = 0; id < 600; ++id) {
    pair.left.rc.post_send(work_of(WorkOpcode::write, local, fresh, 64, id));
    if (id % 32 == 0) CHECK(pair.run());
  }
  CHECK(pair.run());
  CHECK(pair.left.take().size() == 600);
  CHECK(pair.right.take().size() == 1);
  CHECK(pair.left.rc.state() == QueuePairState::rts);
}

}  // namespace
}  // namespace weir
