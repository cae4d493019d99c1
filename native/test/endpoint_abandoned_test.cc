// A peer of a program that ends without a word, in virtual time.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "test/verbs_harness.h"
#include "transport/program_link.h"

namespace weir::test {
namespace {

constexpr uint32_t kFirstPsn = 0xfffffe;  // so that numbers wrap

// Left has a transport of its own; right's is in a program, which is here what the test writes to its memory.
struct WithProgram {
  WithProgram() : link(*memory) {
    const uint32_t left = two.left().nic.applications().create({});
    right = two.right().nic.applications().create({.program = 1, .link = &link});
    QueueAttributes a;
    a.domain = 1;
    a.timeout = 22;  // 17 s: nothing is repeated in the time of a test
    a.send_psn = a.receive_psn = kFirstPsn;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      a.remote_qpn = right;
      two.left().nic.applications().modify(left, to, a, path_to(kPeerMac, kNicMac), 3, 0);
      a.remote_qpn = left;
      two.right().nic.applications().modify(right, to, a, path_to(kNicMac, kPeerMac), 3, 0);
    }
    own = left;
    key = two.left().register_memory(bytes);
  }

  void post(uint64_t id) {
    SendWork w = work(WorkOpcode::write, bytes, key, bytes, 77);
    w.id = id;
    two.left().nic.applications().post_send(own, w);
  }
  void acknowledge(uint32_t psn) {
    memory->packets[0].packet = {.qpn = right, .psn = psn, .opcode = kOpcodeRcAcknowledge};
    memory->packets[0].packet.aeth = {.syndrome = 0x1f, .msn = 1};
    memory->submitted[0] = 0;
    memory->submitted_written = 1;
    link.take(two.right().nic.transport_counters(), [&](uint32_t qpn) { two.right().nic.applications().attend_to(qpn); });
  }
  std::vector<WorkStatus> statuses() {
    std::vector<WorkStatus> out;
    for (const Completion& c : two.left().completions.all) {
      if (c.retired > 0) out.push_back(c.status);  // else it tells of the queue pair alone
    }
    return out;
  }

  std::unique_ptr<ProgramMemory> memory = std::make_unique<ProgramMemory>();
  ProgramLink link;
  Two two;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(100);
  uint32_t own = 0;
  uint32_t right = 0;
  uint32_t key = 0;
};

TEST_CASE("abandoned: what was acknowledged succeeds, what was not fails at once, and nothing in between is taken for done") {
  for (uint32_t acknowledged : {0u, 1u, 2u}) {
    CAPTURE(acknowledged);
    WithProgram w;
    for (uint64_t id : {1, 2, 3}) w.post(id);
    w.two.run(100 * kMicrosecond);
    CHECK(w.memory->frames_written == 3);
    if (acknowledged > 0) w.acknowledge((kFirstPsn + acknowledged - 1) & 0xffffff);
    w.two.run(200 * kMicrosecond);
    CHECK(w.two.left().completions.all.size() == acknowledged);
    REQUIRE(w.two.right().nic.applications().abandon(w.right));
    w.two.run(kMillisecond);
    std::vector<WorkStatus> expected(acknowledged, WorkStatus::success);
    expected.push_back(WorkStatus::remote_operation_error);
    expected.resize(3, WorkStatus::flushed);
    CHECK(w.statuses() == expected);
    CHECK(w.two.right().nic.transport_counters().tx_naks == 1);
  }
}

TEST_CASE("abandoned: a peer that has asked nothing hears it when it does") {
  WithProgram w;
  REQUIRE(w.two.right().nic.applications().abandon(w.right));
  w.two.run(kMillisecond);
  CHECK(w.statuses().empty());
  w.post(1);
  w.two.run(2 * kMillisecond);
  CHECK(w.statuses() == std::vector<WorkStatus>{WorkStatus::remote_operation_error});
  CHECK(w.two.right().nic.transport_counters().tx_naks == 2);
  // Nobody is left who could hear of it.
  CHECK(w.memory->frames_written == 0);
  CHECK(w.two.right().nic.applications().destroy(w.right));
  CHECK(w.two.right().pool.available() == w.two.right().pool.size());
}

TEST_CASE("abandoned: only what has a peer") {
  WithProgram w;
  CHECK_FALSE(w.two.right().nic.applications().abandon(w.right + 1));
  const uint32_t fresh = w.two.right().nic.applications().create({.program = 1, .link = &w.link});
  CHECK_FALSE(w.two.right().nic.applications().abandon(fresh));
  const uint32_t datagrams = w.two.right().nic.applications().create({.datagram = true, .program = 1, .link = &w.link});
  CHECK_FALSE(w.two.right().nic.applications().abandon(datagrams));
  // One that nobody acknowledges is over without a word.
  const uint32_t unreliable = w.two.right().nic.applications().create({.unreliable = true, .program = 1, .link = &w.link});
  QueueAttributes a;
  a.remote_qpn = w.own;
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr}) {
    w.two.right().nic.applications().modify(unreliable, to, a, path_to(kNicMac, kPeerMac), 3, 0);
  }
  CHECK_FALSE(w.two.right().nic.applications().abandon(unreliable));
  // A queue pair that is abandoned already stays so.
  REQUIRE(w.two.right().nic.applications().abandon(w.right));
  CHECK_FALSE(w.two.right().nic.applications().abandon(w.right));
}

TEST_CASE("verbs NIC: a queue pair that is destroyed while it waits for its turn is passed over") {
  Two two;
  two.connect();
  std::array<uint16_t, kPriorities> quanta{};
  quanta[3] = 0xffff;
  two.left().nic.receive_pfc(0, 1 << 3, quanta);
  const Transfer transfer(two, 5'000, WorkOpcode::write);
  CHECK(two.left().nic.applications().destroy(two.qpn(0)));
  quanta[3] = 0;
  two.left().nic.receive_pfc(kMicrosecond, 1 << 3, quanta);
  two.run();
  CHECK(two.left().nic.counters().tx_packets == 0);
  CHECK(two.left().pool.available() == two.left().pool.size());
}

}  // namespace
}  // namespace weir::test
