// Programs with paths of their own to the wire, with the daemon's engine beside them. Live, see live_wire.h.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "endpoint/program_session.h"
#include "io/af_packet.h"
#include "test/lent_paths_bed.h"

namespace weir::test {
namespace {

// An asynchronous event, as libibverbs reads it.
struct Event {
  uint64_t element = 0;
  uint32_t type = UINT32_MAX;
  uint32_t reserved = 0;
};
Event next_event(const TestProgram& program) {
  Event event;
  pollfd told{program.events[0], POLLIN, 0};
  REQUIRE(::poll(&told, 1, 20'000) == 1);
  REQUIRE(::read(program.events[0], &event, sizeof event) == sizeof event);
  return event;
}

int modify(TestProgram& program, ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return program.operations.modify_qp(qp, &attributes, IBV_QP_STATE);
}

// Memory of both programs of a pair, with which one writes to the other.
struct Written {
  Written(TestProgram& from_, TestProgram& to_, size_t bytes, uint32_t seed = 1)
      : from(from_), to(to_), here(drawn(bytes, seed)), there(bytes) {
    key = from.register_memory(here);
    remote_key = to.register_memory(there);
  }
  // What was read or written of the peer's memory before is behind it.
  int post(ibv_qp* qp) {
    to.settle();
    return from.post(qp, IBV_WR_RDMA_WRITE, TestProgram::piece(here, key), reinterpret_cast<uintptr_t>(there.data()), remote_key);
  }
  // Writes once.
  void go(ibv_qp* qp) {
    std::fill(there.begin(), there.end(), uint8_t{0});
    REQUIRE(post(qp) == 0);
    REQUIRE(from.wait().status == IBV_WC_SUCCESS);
    to.settle();
    CHECK(there == here);
  }
  TestProgram& from;
  TestProgram& to;
  std::vector<uint8_t> here;
  std::vector<uint8_t> there;
  uint32_t key;
  uint32_t remote_key;
};

TEST_CASE("lent paths: writes, reads and sends bring the bytes, and the daemons' NICs see none of the frames") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    Connected c(bed);
    REQUIRE(is_direct(c.qp[0]));
    REQUIRE(is_direct(c.qp[1]));
    // The other program sleeps.
    Written written(c.left, c.right, 200'000);
    written.go(c.qp[0]);
    std::vector<uint8_t> back(written.here.size());
    const uint32_t back_key = c.left.register_memory(back);
    REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_READ, TestProgram::piece(back, back_key),
                        reinterpret_cast<uintptr_t>(written.there.data()), written.remote_key) == 0);
    const ibv_wc read = c.left.wait();
    REQUIRE(read.status == IBV_WC_SUCCESS);
    CHECK(read.opcode == IBV_WC_RDMA_READ);
    CHECK(back == written.here);
    std::vector<uint8_t> taken(written.here.size());
    REQUIRE(c.right.post_receive(c.qp[1], TestProgram::piece(taken, c.right.register_memory(taken)), 7) == 0);
    REQUIRE(c.left.post(c.qp[0], IBV_WR_SEND, TestProgram::piece(written.here, written.key)) == 0);
    REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
    const ibv_wc wc = c.right.wait();
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 7);
    CHECK(wc.byte_len == written.here.size());
    CHECK(wc.qp_num == c.qp[1]->qp_num);
    CHECK(taken == written.here);
    for (const size_t nic : {0, 1}) CHECK(bed.came_by_daemon(nic) == 0);
  });
}

TEST_CASE("lent paths: many small messages, posted and polled without a pause, arrive in their order") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    Connected c(bed);
    send_many(c);
  });
}

TEST_CASE("lent paths: what is posted in a row leaves together, also where who polls has always found something") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    Connected c(bed);
    std::vector<uint8_t> there(4);
    const uint32_t key = c.right.register_memory(there);
    for (uint32_t round = 0; round < 20; ++round) {
      constexpr uint32_t kInARow = 200;
      for (uint32_t i = 1; i <= kInARow; ++i) {
        const ibv_sge inlined{.addr = reinterpret_cast<uintptr_t>(&i), .length = 4, .lkey = 0};
        const unsigned flags = IBV_SEND_INLINE | (i == kInARow ? IBV_SEND_SIGNALED : 0);
        REQUIRE(c.left.post(c.qp[0], IBV_WR_RDMA_WRITE, inlined, reinterpret_cast<uintptr_t>(there.data()), key, nullptr, 0,
                            flags) == 0);
      }
      REQUIRE(eventually([&] { return !queue_of(c.left.completions).empty(); }));
      REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
    }
    CHECK(eventually([&] {
      uint64_t together = 0;
      bed.at(0, [&](NicDevice& device) {
        device.settle_counters();
        together = device.ports().front().counters().tx_super_frames;
      });
      return together > 0;
    }));
  });
}

TEST_CASE("lent paths: the daemon's NIC counts what a program's own has, also once the program has ended") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    auto left = std::make_unique<TestProgram>(bed, 0);
    TestProgram right(bed, 1);
    ibv_qp* const near = left->create();
    ibv_qp* const far = right.create();
    left->connect(near, right.address, far->qp_num);
    right.connect(far, left->address, near->qp_num);
    Written(*left, right, 102'400).go(near);
    const auto counts = [&](size_t nic, uint32_t qpn, uint64_t sent, uint64_t received) {
      return eventually([&] {
        bool all = false;
        bed.at(nic, [&](NicDevice& device) {
          device.settle_counters();
          const QpCounters* counters = device.soft_nic().applications().counters(qpn);
          all = counters != nullptr && counters->tx_bytes == sent && counters->rx_bytes == received;
        });
        return all;
      });
    };
    CHECK(counts(0, near->qp_num, 102'400, 0));
    CHECK(counts(1, far->qp_num, 0, 102'400));
    bed.at(1, [&](NicDevice& device) { CHECK(device.soft_nic().transport_counters().rx_write_requests == 1); });
    bed.at(0, [&](NicDevice& device) {
      CHECK(device.soft_nic().counters().tx_packets >= 100);
      CHECK(device.soft_nic().counters(3).tx_prio_bytes > 102'400);
      const LentPairNews* const news = device.applications()->news(near->qp_num);
      REQUIRE(news != nullptr);
      CHECK(news->target_rate == static_cast<uint64_t>(device.soft_nic().line_rate()));
      CHECK(device.applications()->news(near->qp_num + 1) == nullptr);
    });
    Written(*left, right, 51'200).go(near);
    left.reset();
    bool over = false;
    CHECK(eventually([&] {
      bed.at(0, [&](NicDevice& device) { over = device.programs()->empty(); });
      return over;
    }));
    bed.at(0, [&](NicDevice& device) {
      device.settle_counters();
      CHECK(device.soft_nic().counters().tx_packets >= 150);
    });
  });
}

TEST_CASE("lent paths: a queue pair that is reset, or failed before, is connected to another peer") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    Connected c(bed);
    Written first(c.left, c.right, 10'000, 1);
    first.go(c.qp[0]);
    REQUIRE(modify(c.left, c.qp[0], IBV_QPS_RESET) == 0);
    CHECK_FALSE(is_direct(c.qp[0]));
    ibv_qp* const second = c.right.create();
    c.left.connect(c.qp[0], c.right.address, second->qp_num);
    c.right.connect(second, c.left.address, c.qp[0]->qp_num);
    CHECK(is_direct(c.qp[0]));
    Written(c.left, c.right, 10'000, 2).go(c.qp[0]);
    Written(c.right, c.left, 10'000, 3).go(second);

    std::vector<uint8_t> inbox(100);
    REQUIRE(c.left.post_receive(c.qp[0], TestProgram::piece(inbox, c.left.register_memory(inbox)), 5) == 0);
    REQUIRE(modify(c.left, c.qp[0], IBV_QPS_ERR) == 0);
    const ibv_wc flushed = c.left.wait();
    CHECK(flushed.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(flushed.wr_id == 5);
    REQUIRE(first.post(c.qp[0]) == 0);
    CHECK(c.left.wait().status == IBV_WC_WR_FLUSH_ERR);
    REQUIRE(modify(c.left, c.qp[0], IBV_QPS_RESET) == 0);
    ibv_qp* const third = c.right.create();
    c.left.connect(c.qp[0], c.right.address, third->qp_num);
    c.right.connect(third, c.left.address, c.qp[0]->qp_num);
    CHECK(is_direct(c.qp[0]));
    Written(c.left, c.right, 10'000, 4).go(c.qp[0]);
    for (const size_t nic : {0, 1}) CHECK(bed.came_by_daemon(nic) == 0);
  });
}

TEST_CASE("lent paths: a queue pair that is destroyed leaves its place to another") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    TestProgram left(bed, 0);
    TestProgram right(bed, 1);
    uint32_t last = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      ibv_qp* const near = left.create();
      ibv_qp* const far = right.create();
      CHECK(near->qp_num != last);
      last = near->qp_num;
      left.connect(near, right.address, far->qp_num);
      right.connect(far, left.address, near->qp_num);
      REQUIRE(is_direct(near));
      Written written(left, right, 5'000, i);
      written.go(near);
      // More of it is under way.
      REQUIRE(written.post(near) == 0);
      for (TestProgram* program : {&left, &right}) {
        REQUIRE(program->operations.destroy_qp(program->pairs.back()) == 0);
        program->pairs.pop_back();
      }
      ibv_wc wc;
      while (left.operations.poll_cq(left.completions, 1, &wc) > 0) continue;
      left.settle();
      right.settle();
    }
  });
}

TEST_CASE("lent paths: more queue pairs than a block has are the daemon's, as are datagrams, and those to the NIC itself") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    TestProgram left(bed, 0);
    TestProgram right(bed, 1);
    ibv_qp* near = nullptr;
    for (uint32_t i = 0; i <= 1u << kLentBlockShift; ++i) near = left.create();
    ibv_qp* const far = right.create();
    left.connect(near, right.address, far->qp_num);
    right.connect(far, left.address, near->qp_num);
    CHECK_FALSE(is_direct(near));
    CHECK(is_direct(far));
    Written(left, right, 50'000, 1).go(near);
    Written(right, left, 50'000, 2).go(far);

    ibv_qp* const from = left.create(IBV_QPT_UD);
    ibv_qp* const to = right.create(IBV_QPT_UD);
    left.connect(from);
    right.connect(to);
    std::vector<uint8_t> message = drawn(500, 3);
    std::vector<uint8_t> inbox(40 + message.size());
    REQUIRE(right.post_receive(to, TestProgram::piece(inbox, right.register_memory(inbox))) == 0);
    ProviderAddress ah{};
    ah.handle = left.address_handle(right.address);
    REQUIRE(left.post(from, IBV_WR_SEND, TestProgram::piece(message, left.register_memory(message)), 0, 0, &ah.base,
                      to->qp_num) == 0);
    REQUIRE(left.wait().status == IBV_WC_SUCCESS);
    const ibv_wc wc = right.wait();
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.src_qp == from->qp_num);
    CHECK(std::equal(message.begin(), message.end(), inbox.begin() + 40));

    Connected own(bed, 1, 1);
    CHECK_FALSE(is_direct(own.qp[0]));
    CHECK_FALSE(is_direct(own.qp[1]));
    Written(own.left, own.right, 50'000, 4).go(own.qp[0]);
  });
}

TEST_CASE("lent paths: there are eight, whoever comes later goes by the daemon, and one that ends gives its own back") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    std::vector<std::unique_ptr<Session>> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(std::make_unique<Session>(bed.brokers[0]->path(), true));
      const auto [config, socket] = others.back()->take_path();
      REQUIRE(config >= 0);
      REQUIRE(socket >= 0);
      ::close(config);
      ::close(socket);
    }
    {
      Connected c(bed);
      CHECK_FALSE(is_direct(c.qp[0]));
      CHECK(is_direct(c.qp[1]));
      Written(c.left, c.right, 50'000, 1).go(c.qp[0]);
      Written(c.right, c.left, 50'000, 2).go(c.qp[1]);
    }
    // Who does not ask has none.
    CHECK(Session(bed.brokers[1]->path()).take_path().socket == -1);
    bed.at(0, [&](NicDevice& device) {
      const uint32_t oldest = device.programs()->numbers().front();
      CHECK(device.lend_path(oldest).block == -1);
      CHECK(device.lend_path(UINT32_MAX).block == -1);
    });
    others.front().reset();
    CHECK(eventually([&] { return Session(bed.brokers[0]->path(), true).take_path().socket >= 0; }));
  });
}

TEST_CASE("lent paths: a shared receive queue that has become short is an event") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    TestProgram left(bed, 0);
    TestProgram right(bed, 1);
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
    ibv_srq* const srq = right.operations.create_srq(&right.domain.base, &init);
    REQUIRE(srq != nullptr);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = right.completions;
    attributes.srq = srq;
    attributes.cap = {.max_send_wr = 4, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0, .max_inline_data = 0};
    attributes.qp_type = IBV_QPT_RC;
    ibv_qp* const far = right.operations.create_qp(&right.domain.base, &attributes);
    REQUIRE(far != nullptr);
    ibv_qp* const near = left.create();
    left.connect(near, right.address, far->qp_num);
    right.connect(far, left.address, near->qp_num);
    REQUIRE(is_direct(far));
    std::vector<uint8_t> inbox(4'000);
    ibv_sge piece = TestProgram::piece(inbox, right.register_memory(inbox));
    ibv_recv_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    for (int i = 0; i < 6; ++i) REQUIRE(right.operations.post_srq_recv(srq, &wr, &bad) == 0);
    ibv_srq_attr limit{};
    limit.srq_limit = 4;
    REQUIRE(right.operations.modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
    std::vector<uint8_t> message = drawn(3'000, 1);
    const uint32_t key = left.register_memory(message);
    const auto send = [&] {
      REQUIRE(left.post(near, IBV_WR_SEND, TestProgram::piece(message, key)) == 0);
      REQUIRE(left.wait().status == IBV_WC_SUCCESS);
      REQUIRE(right.wait().status == IBV_WC_SUCCESS);
    };
    // Four are left then, which are enough.
    send();
    send();
    pollfd none{right.events[0], POLLIN, 0};
    CHECK(::poll(&none, 1, 0) == 0);
    send();
    const Event event = next_event(right);
    CHECK(event.type == IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(event.element == reinterpret_cast<uint64_t>(srq));
    // It is told once.
    send();
    CHECK(::poll(&none, 1, 0) == 0);
    right.settle();
    CHECK(std::equal(message.begin(), message.end(), inbox.begin()));
    srq->events_completed = 1;
    REQUIRE(right.operations.destroy_qp(far) == 0);
    REQUIRE(right.operations.destroy_srq(srq) == 0);
  });
}

TEST_CASE("lent paths: a send queue that is to drain says when it has, and stands still until it goes on") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    Connected c(bed);
    Written written(c.left, c.right, 2'000'000);
    REQUIRE(written.post(c.qp[0]) == 0);
    ibv_qp_attr drain{};
    drain.qp_state = IBV_QPS_SQD;
    drain.en_sqd_async_notify = 1;
    REQUIRE(c.left.operations.modify_qp(c.qp[0], &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
    // Nobody polls meanwhile.
    const Event event = next_event(c.left);
    CHECK(event.type == IBV_EVENT_SQ_DRAINED);
    CHECK(event.element == reinterpret_cast<uint64_t>(c.qp[0]));
    c.qp[0]->events_completed = 1;
    ibv_wc wc{};
    REQUIRE(c.left.operations.poll_cq(c.left.completions, 1, &wc) == 1);
    CHECK(wc.status == IBV_WC_SUCCESS);
    c.right.settle();
    CHECK(written.there == written.here);

    Written more(c.left, c.right, 5'000, 2);
    REQUIRE(more.post(c.qp[0]) == 0);
    // The peer goes on with its own.
    Written(c.right, c.left, 100'000, 3).go(c.qp[1]);
    CHECK(c.left.operations.poll_cq(c.left.completions, 1, &wc) == 0);
    c.right.settle();
    CHECK(more.there == std::vector<uint8_t>(5'000));
    c.right.settle();
    REQUIRE(modify(c.left, c.qp[0], IBV_QPS_RTS) == 0);
    REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
    c.right.settle();
    CHECK(more.there == more.here);
  });
}

TEST_CASE("lent paths: what becomes of the daemon's NIC becomes of the program's, once it is written whole") {
  live([](Wire& wire) {
    // However slow this host is.
    const auto swift = [](double packets) {
      SwiftParameters out;
      out.base_target = kSecond;
      out.min_cwnd = out.max_cwnd = packets;
      return out;
    };
    LentPathsBed bed(wire, swift(2));
    Connected c(bed);
    Written written(c.left, c.right, 100'000);
    written.go(c.qp[0]);
    const auto window = [&] {
      double out = 0;
      bed.at(0, [&](NicDevice& device) {
        const LentPairNews* const news = device.applications()->news(c.qp[0]->qp_num);
        if (news != nullptr) out = news->window;
      });
      return out;
    };
    REQUIRE(eventually([&] { return window() == 2; }));
    const auto becomes = [&](double packets) {
      bed.at(0, [&](NicDevice& device) { device.reconfigure(LentPathsBed::config(wire, swift(packets)).nics[0]); });
      return eventually([&] {
        written.go(c.qp[0]);
        return window() == packets;
      });
    };
    CHECK(becomes(1));
    // A program that looks while the daemon writes.
    bed.at(0, [&](NicDevice& device) {
      const LentPath* const path = device.programs()->path(device.programs()->numbers().front());
      --map_lent_memory(path->config())->length;
    });
    const_cast<ProgramMemory&>(c.left.nic->shared_memory()).paths.fetch_add(1);
    const Time until = monotonic_now() + 300 * kMillisecond;
    while (monotonic_now() < until) written.go(c.qp[0]);
    CHECK(window() == 1);
    CHECK(becomes(3));
  });
}

TEST_CASE("lent paths: who ends without a word is told of when its peer goes back, and fails itself") {
  live([](Wire& wire) {
    LentPathsBed bed(wire);
    TestProgram left(bed, 0);
    TestProgram right(bed, 1);
    ibv_qp* const near = left.create();
    ibv_qp* const far = right.create();
    left.connect(near, right.address, far->qp_num);
    right.connect(far, left.address, near->qp_num);
    Written written(left, right, 20'000);
    written.go(near);
    std::vector<uint8_t> inbox(100);
    REQUIRE(right.post_receive(far, TestProgram::piece(inbox, right.register_memory(inbox)), 9) == 0);
    bed.brokers[1]->hang_up();
    REQUIRE(eventually([&] { return right.nic->failed(); }));
    CHECK(next_event(right).type == IBV_EVENT_DEVICE_FATAL);
    const ibv_wc flushed = right.wait();
    CHECK(flushed.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(flushed.wr_id == 9);
    REQUIRE(eventually([&] {
      bool empty = false;
      bed.at(1, [&](NicDevice& device) { empty = device.programs()->empty(); });
      return empty;
    }));
    REQUIRE(written.post(near) == 0);
    CHECK(left.wait().status == IBV_WC_REM_OP_ERR);
    CHECK(bed.came_by_daemon(1) > 0);
  });
}

}  // namespace
}  // namespace weir::test
