// The library of programs with the daemon's engine at the other end. The daemon is who a program trusts: it has the interface.
// The other way round nothing is believed, which is in transport_program_link_test.cc and, with neighbours at work, here.
#include <atomic>
#include <random>

#include "test/programs_bed.h"
#include "test/test_program.h"

namespace weir::test {
namespace {

TEST_CASE("programs: writes, reads, sends and atomics bring the bytes, also while the peer's program sleeps") {
  ProgramsBed bed;
  Connected c(bed);
  std::vector<uint8_t> here = drawn(200'000, 1);
  std::vector<uint8_t> there(here.size());
  std::vector<uint8_t> back(here.size());
  const uint32_t key = c.left.register_memory(here);
  const uint32_t back_key = c.left.register_memory(back);
  const uint32_t remote_key = c.right.register_memory(there);
  const auto remote = reinterpret_cast<uintptr_t>(there.data());
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, TestProgram::piece(here, key), remote, remote_key) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  c.right.settle();
  CHECK(there == here);
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_READ, TestProgram::piece(back, back_key), remote, remote_key) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  CHECK(back == here);
  std::vector<uint8_t> taken(here.size());
  REQUIRE(c.right.post_receive(c.qp[1], TestProgram::piece(taken, c.right.register_memory(taken)), 7) == 0);
  REQUIRE(c.left.post(c.qp[0], IBV_WR_SEND, TestProgram::piece(here, key)) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  const ibv_wc wc = c.right.wait();
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == 7);
  CHECK(wc.byte_len == here.size());
  CHECK(taken == here);
  std::vector<uint8_t> original(8);
  ibv_sge piece = TestProgram::piece(original, c.left.register_memory(original));
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = remote_key};
  ibv_send_wr* bad = nullptr;
  uint64_t before;
  std::memcpy(&before, there.data(), sizeof before);
  c.right.settle();
  REQUIRE(c.left.operations.post_send(c.qp[0], &wr, &bad) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  c.right.settle();
  uint64_t after;
  std::memcpy(&after, there.data(), sizeof after);
  CHECK(after == before + 1);
  CHECK(std::memcmp(original.data(), &before, sizeof before) == 0);
}

TEST_CASE("programs: many small messages, posted and polled without a pause, arrive in their order") {
  ProgramsBed bed;
  Connected c(bed);
  send_many(c);
}

TEST_CASE("programs: datagrams arrive behind the room for a GRH, and tell who sent them") {
  ProgramsBed bed;
  TestProgram left(bed, 0);
  TestProgram right(bed, 1);
  ibv_qp* from = left.create(IBV_QPT_UD);
  ibv_qp* to = right.create(IBV_QPT_UD);
  left.connect(from);
  right.connect(to);
  std::vector<uint8_t> message = drawn(500, 2);
  std::vector<uint8_t> inbox(40 + message.size());
  REQUIRE(right.post_receive(to, TestProgram::piece(inbox, right.register_memory(inbox))) == 0);
  ProviderAddress ah{};
  ah.handle = left.address_handle(right.address);
  const ibv_sge piece = TestProgram::piece(message, left.register_memory(message));
  REQUIRE(left.post(from, IBV_WR_SEND, piece, 0, 0, &ah.base, to->qp_num) == 0);
  REQUIRE(left.wait().status == IBV_WC_SUCCESS);
  const ibv_wc wc = right.wait();
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.src_qp == from->qp_num);
  CHECK(wc.byte_len == inbox.size());
  CHECK((wc.wc_flags & IBV_WC_GRH) != 0);
  CHECK(wc.sl == 2);  // as mlx5 says that it was IPv4
  CHECK(std::equal(message.begin(), message.end(), inbox.begin() + 40));
}

TEST_CASE("programs: a datagram is complete once the daemon has sent it, and its address handle is kept until then") {
  ProgramsBed bed;
  TestProgram left(bed, 0);
  TestProgram right(bed, 1);
  ibv_qp* from = left.create(IBV_QPT_UD);
  ibv_qp* to = right.create(IBV_QPT_UD);
  left.connect(from);
  right.connect(to);
  std::vector<uint8_t> message = drawn(500, 2);
  std::vector<uint8_t> inbox(40 + message.size());
  REQUIRE(right.post_receive(to, TestProgram::piece(inbox, right.register_memory(inbox))) == 0);
  ProviderAddress ah{};
  ah.handle = left.address_handle(right.address);
  const ibv_sge piece = TestProgram::piece(message, left.register_memory(message));
  // The NIC stands still until `goes_on`.
  std::atomic<bool> stands{false};
  std::atomic<bool> goes_on{false};
  std::thread holder([&] {
    bed.turns.between([&](auto&) {
      stands = true;
      while (!goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  });
  REQUIRE(eventually([&] { return stands.load(); }));
  REQUIRE(left.post(from, IBV_WR_SEND, piece, 0, 0, &ah.base, to->qp_num) == 0);
  ibv_wc early{};
  CHECK(left.operations.poll_cq(left.completions, 1, &early) == 0);
  const Time began = monotonic_now();
  Time returned = 0;
  std::thread waiter([&] {
    left.nic->let_leave_by(ah.handle);
    returned = monotonic_now();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Time went_on = monotonic_now();
  goes_on = true;
  holder.join();
  waiter.join();
  // It may have lost its patience on a busy host.
  const bool waited = returned >= went_on || returned - began >= 100 * kMillisecond;
  CHECK(waited);
  CHECK(left.wait().status == IBV_WC_SUCCESS);
  CHECK(right.wait().status == IBV_WC_SUCCESS);
}

TEST_CASE("programs: what is lost on the way is sent again") {
  ProgramsBed bed(0.01);
  Connected c(bed);
  std::vector<uint8_t> here = drawn(400'000, 3);
  std::vector<uint8_t> there(here.size());
  const ibv_sge piece = TestProgram::piece(here, c.left.register_memory(here));
  const uint32_t remote_key = c.right.register_memory(there);
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, piece, reinterpret_cast<uintptr_t>(there.data()), remote_key) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  c.right.settle();
  CHECK(there == here);
  // 400 packets, some of which were lost: more than these had to leave.
  bed.turns.between([&](auto& nics) {
    CHECK(nics[0]->soft_nic().counters().tx_packets > 391);
    // The libraries' counts are the NICs'.
    for (const auto& nic : nics) nic->settle_counters();
    CHECK(nics[0]->soft_nic().transport_counters().retransmitted > 0);
    CHECK(nics[1]->soft_nic().transport_counters().rx_write_requests > 0);
  });
}

// One packet in flight, whatever round-trip times are.
SwiftParameters one_in_flight() {
  SwiftParameters swift;
  swift.base_target = kSecond;
  swift.min_cwnd = swift.max_cwnd = 1;
  return swift;
}

TEST_CASE(
    "programs: with a window of one packet READs and WRITEs both ways, of several connections, do not wait for each other") {
  ProgramsBed bed(0, one_in_flight());
  TestProgram left(bed, 0);
  TestProgram right(bed, 1);
  // More of them than a program has slots, if each had as many as it may.
  constexpr uint32_t kPairs = 10;
  constexpr uint32_t kEach = 8;
  std::vector<uint8_t> sources[2] = {drawn(50'000, 7), drawn(50'000, 8)};
  std::vector<uint8_t> written[2] = {std::vector<uint8_t>(50'000), std::vector<uint8_t>(50'000)};
  std::vector<uint8_t> read[2] = {std::vector<uint8_t>(50'000), std::vector<uint8_t>(50'000)};
  TestProgram* const programs[2] = {&left, &right};
  ibv_qp* qps[2][kPairs];
  uint32_t source_keys[2];
  uint32_t written_keys[2];
  uint32_t read_keys[2];
  for (const int i : {0, 1}) {
    source_keys[i] = programs[i]->register_memory(sources[i]);
    written_keys[i] = programs[i]->register_memory(written[i]);
    read_keys[i] = programs[i]->register_memory(read[i]);
    for (ibv_qp*& qp : qps[i]) qp = programs[i]->create();
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    left.connect(qps[0][pair], right.address, qps[1][pair]->qp_num);
    right.connect(qps[1][pair], left.address, qps[0][pair]->qp_num);
  }
  const auto work = [&](int i) {
    TestProgram& own = *programs[i];
    for (uint32_t pair = 0; pair < kPairs; ++pair) {
      for (uint32_t n = 0; n < kEach; ++n) {
        REQUIRE(own.post(qps[i][pair], IBV_WR_RDMA_WRITE, TestProgram::piece(sources[i], source_keys[i]),
                         reinterpret_cast<uintptr_t>(written[1 - i].data()), written_keys[1 - i]) == 0);
        REQUIRE(own.post(qps[i][pair], IBV_WR_RDMA_READ, TestProgram::piece(read[i], read_keys[i]),
                         reinterpret_cast<uintptr_t>(sources[1 - i].data()), source_keys[1 - i]) == 0);
      }
    }
    for (uint32_t n = 0; n < 2 * kPairs * kEach; ++n) REQUIRE(own.wait().status == IBV_WC_SUCCESS);
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  bed.turns.between([&](auto& nics) {
    for (const int i : {0, 1}) {
      SoftNic& nic = nics[i]->soft_nic();
      for (uint32_t pair = 0; pair < kPairs; ++pair) {
        CHECK(nic.observation().flow_at(pair, nic.now()).controller.template as<SwiftSender>()->window() == 1);
      }
    }
  });
  for (const int i : {0, 1}) {
    programs[i]->settle();
    CHECK(written[i] == sources[1 - i]);
    CHECK(read[i] == sources[1 - i]);
  }
}

TEST_CASE("programs: what is lost under a window is sent again, and congestion control hears of it") {
  ProgramsBed bed(0.05, DctcpParameters{});
  Connected c(bed);
  std::vector<uint8_t> here = drawn(400'000, 9);
  std::vector<uint8_t> there(here.size());
  std::vector<uint8_t> back(here.size());
  const uint32_t remote_key = c.right.register_memory(there);
  const auto remote = reinterpret_cast<uintptr_t>(there.data());
  const ibv_sge piece = TestProgram::piece(here, c.left.register_memory(here));
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, piece, remote, remote_key) == 0);
  const ibv_sge into = TestProgram::piece(back, c.left.register_memory(back));
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_READ, into, remote, remote_key) == 0);
  for (int i : {0, 1}) {
    CAPTURE(i);
    CHECK(c.left.wait().status == IBV_WC_SUCCESS);
  }
  c.left.settle();
  c.right.settle();
  CHECK(there == here);
  CHECK(back == here);
  // It would have grown by each of the packets without a loss.
  bed.turns.between([&](auto& nics) {
    SoftNic& nic = nics[0]->soft_nic();
    CHECK(nic.observation().flow_at(0, nic.now()).controller.template as<DctcpSender>()->window() < 400);
  });
}

TEST_CASE("programs: a connection that fails under a window gives back what the NIC has held of it") {
  ProgramsBed bed(0, one_in_flight());
  Connected c(bed);
  std::vector<uint8_t> here = drawn(100'000, 9);
  const ibv_sge piece = TestProgram::piece(here, c.left.register_memory(here));
  bed.brokers[1]->hang_up();
  REQUIRE(eventually([&] {
    uint32_t owner = 0;
    bed.turns.between([&](auto& nics) { owner = nics[1]->applications()->owner(c.qp[1]->qp_num); });
    return owner == 0;
  }));
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, piece, 1, 1) == 0);
  CHECK(c.left.wait().status == IBV_WC_REM_OP_ERR);
  const auto returned = [&] {
    const std::lock_guard lock(c.left.nic->mutex());
    const ProgramMemory& shared = c.left.nic->shared_memory();
    return shared.returned_written == shared.submitted_written;
  };
  CHECK(eventually(returned));
}

TEST_CASE("programs: two on one NIC reach each other, whose frames no link brings back") {
  ProgramsBed bed;
  Connected c(bed, 0, 0);
  std::vector<uint8_t> here = drawn(100'000, 4);
  std::vector<uint8_t> there(here.size());
  const ibv_sge piece = TestProgram::piece(here, c.left.register_memory(here));
  const uint32_t remote_key = c.right.register_memory(there);
  REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, piece, reinterpret_cast<uintptr_t>(there.data()), remote_key) == 0);
  REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  c.right.settle();
  CHECK(there == here);
  bed.turns.between([&](auto& nics) { CHECK(nics[1]->soft_nic().counters().rx_packets == 0); });
}

TEST_CASE("programs: one that ends gives its queue pairs back, and its peer is told") {
  ProgramsBed bed;
  auto right = std::make_unique<TestProgram>(bed, 1);
  TestProgram left(bed, 0);
  ibv_qp* near = left.create();
  ibv_qp* far = right->create();
  left.connect(near, right->address, far->qp_num);
  right->connect(far, left.address, near->qp_num);
  std::vector<uint8_t> bytes(64);
  std::vector<uint8_t> there(64);
  const uint32_t key = left.register_memory(bytes);
  const uint32_t remote_key = right->register_memory(there);
  const auto remote = reinterpret_cast<uintptr_t>(there.data());
  REQUIRE(left.post(near, IBV_WR_RDMA_WRITE, TestProgram::piece(bytes, key), remote, remote_key) == 0);
  REQUIRE(left.wait().status == IBV_WC_SUCCESS);
  const auto owned = [&] {
    uint32_t owner = 0;
    bed.turns.between([&](auto& nics) { owner = nics[1]->applications()->owner(far->qp_num); });
    return owner != 0;
  };
  CHECK(owned());
  bed.brokers[1]->hang_up();
  REQUIRE(eventually([&] { return !owned(); }));
  REQUIRE(left.post(near, IBV_WR_RDMA_WRITE, TestProgram::piece(bytes, key), remote, remote_key) == 0);
  CHECK(left.wait().status == IBV_WC_REM_OP_ERR);
  // The one without a NIC is told by its library.
  REQUIRE(eventually([&] { return right->nic->failed(); }));
  pollfd told{right->events[0], POLLIN, 0};
  REQUIRE(::poll(&told, 1, 5'000) == 1);
  struct {
    uint64_t element;
    uint32_t type;
    uint32_t reserved;
  } event;
  REQUIRE(::read(right->events[0], &event, sizeof event) == sizeof event);
  CHECK(event.type == IBV_EVENT_DEVICE_FATAL);
  ibv_wc wc;
  CHECK(right->operations.poll_cq(right->completions, 1, &wc) == 0);
  right->settle();
}

TEST_CASE("programs: who polls an empty queue does not ring for its own thread") {
  ProgramsBed bed;
  Connected c(bed);
  const ProgramMemory& shared = c.left.nic->shared_memory();
  ibv_wc wc;
  for (int i = 0; i < 100; ++i) c.left.operations.poll_cq(c.left.completions, 1, &wc);
  const uint32_t before = shared.bell;
  for (int i = 0; i < 1'000; ++i) c.left.operations.poll_cq(c.left.completions, 1, &wc);
  CHECK(shared.bell - before < 100);
}

TEST_CASE("programs: who has found something leaves word that its thread is to be woken, and who polls on takes it back") {
  ProgramsBed bed;
  Connected c(bed);
  const ProgramMemory& shared = c.left.nic->shared_memory();
  // The thread leaves all to who polls, and naps; before it does there is nothing to say.
  CHECK(eventually([&] {
    for (int i = 0; i < 1'000; ++i) c.left.nic->help();
    const bool silent = shared.program_sleeps == 0;
    c.left.nic->may_leave();
    return silent && shared.program_sleeps == 1;
  }));
  CHECK(eventually([&] {
    c.left.nic->help();
    return shared.program_sleeps == 0;
  }));
}

// Writes to what it shares with the NIC whatever it likes, while the NIC reads it.
void spoil(Session& session, uint32_t qpn, const std::atomic<bool>& stop) {
  ProgramMemory& shared = session.memory();
  std::mt19937 draw(5);
  while (!stop.load(std::memory_order_relaxed)) {
    for (int i = 0; i < 64; ++i) {
      const uint32_t slot = draw() % kProgramPackets;
      volatile ProgramPacket& packet = shared.packets[slot].packet;
      packet.qpn = draw() % 4 == 0 ? draw() : qpn;
      packet.payload_bytes = draw() % 4 == 0 ? draw() : draw() % 1'100;
      packet.opcode = static_cast<uint8_t>(draw());
      packet.psn = draw();
      packet.flags = static_cast<uint8_t>(draw());
      shared.submitted[draw() % kProgramPackets] = draw() % (kProgramPackets + 8);
    }
    shared.submitted_written.fetch_add(draw() % 600);
    if (draw() % 16 == 0) shared.submitted_written = draw();
    if (draw() % 16 == 0) shared.returned_read = draw();
    if (draw() % 16 == 0) shared.returned_wanted = draw();
    if (draw() % 16 == 0) shared.frames_read = draw();
    if (draw() % 16 == 0) shared.program_sleeps = draw();
    if (draw() % 16 == 0) shared.frames_written = draw();
    if (draw() % 16 == 0) shared.submitted_read = draw();
    if (draw() % 16 == 0) shared.nic_sleeps = draw();
    session.wake_nic();
  }
}

TEST_CASE("programs: what one writes into the memory that it shares with the NIC does not disturb another") {
  ProgramsBed bed;
  Connected c(bed);
  Session session(bed.brokers[0]->path());
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateQueuePair;
  const uint32_t qpn = session.ask(request).object;
  REQUIRE(qpn != 0);
  request.kind = ProgramRequest::kModifyQueuePair;
  request.object = qpn;
  request.remote_qpn = 0x1234;  // nobody's: frames of a connection do not say whose they are
  request.gid[15] = c.right.address;
  for (const QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    request.state = static_cast<uint32_t>(to);
    REQUIRE(session.ask(request).error == 0);
  }
  std::atomic<bool> stop{false};
  std::thread hostile([&] { spoil(session, qpn, stop); });
  std::vector<uint8_t> here = drawn(20'000, 6);
  std::vector<uint8_t> back(here.size());
  std::vector<uint8_t> there = here;
  const uint32_t key = c.left.register_memory(back);
  const uint32_t remote_key = c.right.register_memory(there);
  const auto read_once = [&] {
    std::fill(back.begin(), back.end(), 0);
    const auto remote = reinterpret_cast<uintptr_t>(there.data());
    CHECK(c.left.post(c.qp[0], IBV_WR_RDMA_READ, TestProgram::piece(back, key), remote, remote_key) == 0);
    CHECK(c.left.wait().status == IBV_WC_SUCCESS);
    CHECK(back == here);
  };
  for (int i = 0; i < 50; ++i) read_once();
  // A busy machine may have run the thread that disturbs after all of these.
  CHECK(eventually([&] {
    read_once();
    return bed.refused(0) > 0;
  }));
  stop = true;
  hostile.join();
  CHECK_FALSE(bed.worker.failed());
  c.right.settle();
}

}  // namespace
}  // namespace weir::test
