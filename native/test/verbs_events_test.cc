// Events of a program that reads them seldom: none is lost, and the NIC waits for nobody.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include "test/programs_bed.h"
#include "test/test_program.h"

namespace weir::test {
namespace {

constexpr uint32_t kMany = 20'000;  // more than a pipe has room for

// A completion channel as ibv_create_comp_channel() makes it, and what libibverbs does with it.
struct Channel {
  explicit Channel(TestProgram& program) : program(program) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
    channel.fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    ::close(ends[0]);
    ::close(ends[1]);
    REQUIRE(channel.fd >= 0);
    channel.context = program.context;
  }
  ~Channel() { ::close(channel.fd); }

  ibv_cq* create() {
    ibv_cq* cq = program.operations.create_cq(program.context, 16, nullptr, 0);
    REQUIRE(cq != nullptr);
    cq->context = program.context;
    cq->channel = &channel;
    pthread_mutex_init(&cq->mutex, nullptr);
    pthread_cond_init(&cq->cond, nullptr);
    return cq;
  }
  // Completes so many sends of `qp`, for each of which the program wants an event.
  void complete(ibv_qp* qp, uint32_t times) const {
    for (uint32_t i = 0; i < times; ++i) {
      REQUIRE(program.operations.req_notify_cq(qp->send_cq, 0) == 0);
      {
        const std::lock_guard lock(program.nic->mutex());
        program.nic->complete({.qpn = qp->qp_num, .retired = 1});
      }
      ibv_wc wc;
      REQUIRE(program.operations.poll_cq(qp->send_cq, 1, &wc) == 1);
    }
  }
  // The queue that has an event; null: there is none.
  ibv_cq* get(bool by_library = true) const {
    uint64_t event = 0;
    if (::read(channel.fd, &event, sizeof event) != sizeof event) return nullptr;
    auto* cq = reinterpret_cast<ibv_cq*>(event);
    if (by_library) program.operations.cq_event(cq);
    return cq;
  }

  TestProgram& program;
  ibv_comp_channel channel{};
};

struct Waiting {
  Waiting() : program(bed, 0), channel(program) {
    for (ibv_cq*& queue : queues) queue = channel.create();
    std::swap(program.completions, queues[0]);
    first = program.create();
    std::swap(program.completions, queues[0]);
    std::swap(program.completions, queues[1]);
    second = program.create();
    std::swap(program.completions, queues[1]);
  }
  // The queue pairs go before what they complete into.
  void end() {
    for (ibv_qp* qp : program.pairs) REQUIRE(program.operations.destroy_qp(qp) == 0);
    program.pairs.clear();
  }

  ProgramsBed bed;
  TestProgram program;
  Channel channel;
  ibv_cq* queues[2] = {};
  ibv_qp* first = nullptr;
  ibv_qp* second = nullptr;
};

TEST_CASE("programs: all completion events come, however many nobody has read, and the NIC does not wait for the reader") {
  Waiting w;
  w.channel.complete(w.first, kMany);
  uint32_t count = 0;
  while (w.channel.get() == w.queues[0]) ++count;
  CHECK(count == kMany);
  // A reader of the descriptor tells nobody, in a child process for one.
  w.channel.complete(w.first, kMany);
  count = 0;
  CHECK(eventually([&] {
    while (w.channel.get(false) == w.queues[0]) ++count;
    return count == kMany;
  }));
  w.queues[0]->comp_events_completed = 2 * kMany;
  w.end();
  for (ibv_cq* queue : w.queues) CHECK(w.program.operations.destroy_cq(queue) == 0);
}

TEST_CASE("programs: who waits for changes of a channel alone hears of each event that it has room for again") {
  Waiting w;
  w.channel.complete(w.first, kMany);
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  REQUIRE(::epoll_ctl(set, EPOLL_CTL_ADD, w.channel.channel.fd, &event) == 0);
  uint32_t count = 0;
  while (count < kMany && ::epoll_wait(set, &event, 1, 10'000) == 1) {
    while (w.channel.get() != nullptr) ++count;
  }
  CHECK(count == kMany);
  ::close(set);
  w.queues[0]->comp_events_completed = kMany;
  w.end();
  for (ibv_cq* queue : w.queues) CHECK(w.program.operations.destroy_cq(queue) == 0);
}

TEST_CASE("programs: a queue that is destroyed takes its events along, wherever they wait, and leaves those of others") {
  Waiting w;
  w.channel.complete(w.second, 100);
  w.channel.complete(w.first, kMany);
  w.channel.complete(w.second, 100);
  w.end();
  CHECK(w.program.operations.destroy_cq(w.queues[0]) == 0);
  uint32_t count = 0;
  while (w.channel.get() == w.queues[1]) ++count;
  CHECK(count == 200);
  w.queues[1]->comp_events_completed = 200;
  CHECK(w.program.operations.destroy_cq(w.queues[1]) == 0);
}

TEST_CASE("programs: all asynchronous events come, however many nobody has read, and the NIC does not wait for the reader") {
  ProgramsBed bed;
  TestProgram program(bed, 0);
  int elements[2];
  {
    const std::lock_guard lock(program.nic->mutex());
    for (uint32_t i = 0; i < kMany; ++i) {
      program.nic->report(i % 3 == 0 ? IBV_EVENT_SQ_DRAINED : IBV_EVENT_QP_ACCESS_ERR, &elements[i % 2]);
    }
  }
  struct {
    uint64_t element;
    uint32_t type;
    uint32_t reserved;
  } event{};
  REQUIRE(::fcntl(program.events[0], F_SETFL, O_NONBLOCK) == 0);
  for (uint32_t i = 0; i < kMany / 2; ++i) {
    REQUIRE(::read(program.events[0], &event, sizeof event) == sizeof event);
    program.operations.async_event(program.context, nullptr);
    REQUIRE(event.element == reinterpret_cast<uint64_t>(&elements[i % 2]));
    REQUIRE(event.type == (i % 3 == 0 ? IBV_EVENT_SQ_DRAINED : IBV_EVENT_QP_ACCESS_ERR));
  }
  const std::lock_guard lock(program.nic->mutex());
  CHECK(program.nic->withdraw(&elements[0]) == kMany / 4);
  CHECK(program.nic->withdraw(&elements[1]) == kMany / 4);
}

TEST_CASE("programs: another table of GIDs is an event, and another path MTU is taken by the next connection") {
  ProgramsBed bed;
  TestProgram program(bed, 0);
  const auto tell = [&](bool gids, uint32_t path_mtu) {
    bed.turns.between([&](auto& nics) { CHECK(nics[0]->applications()->tell_programs(gids, path_mtu)); });
  };
  CHECK(program.nic->path_mtu() == 1024);
  ibv_qp* const before = program.create();
  program.connect(before, static_cast<uint8_t>(kPeerMac), 1);
  tell(false, 512);
  CHECK(program.nic->path_mtu() == 512);
  // A connection that has a larger one goes on, and ends as it likes.
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  CHECK(program.operations.modify_qp(before, &error, IBV_QP_STATE) == 0);
  ibv_qp* const after = program.create();
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  REQUIRE(program.operations.modify_qp(after, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  a.qp_state = IBV_QPS_RTR;
  a.min_rnr_timer = 1;
  TestProgram::gid(a.ah_attr.grh.dgid, static_cast<uint8_t>(kPeerMac));
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                  IBV_QP_MIN_RNR_TIMER;
  a.path_mtu = IBV_MTU_1024;
  CHECK(program.operations.modify_qp(after, &a, rtr) == EINVAL);
  a.path_mtu = IBV_MTU_512;
  CHECK(program.operations.modify_qp(after, &a, rtr) == 0);

  tell(true, 512);
  pollfd waits{.fd = program.events[0], .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&waits, 1, 20'000) == 1);
  struct {
    uint64_t port;
    uint32_t type;
    uint32_t reserved;
  } event{};
  REQUIRE(::read(program.events[0], &event, sizeof event) == sizeof event);
  CHECK(event.port == 1);
  CHECK(event.type == IBV_EVENT_GID_CHANGE);
  // One that begins now knows the path MTU, and hears of what changes from then on.
  TestProgram later(bed, 0);
  CHECK(later.nic->path_mtu() == 512);
  pollfd none{.fd = later.events[0], .events = POLLIN, .revents = 0};
  CHECK(::poll(&none, 1, 200) == 0);
}

}  // namespace
}  // namespace weir::test
