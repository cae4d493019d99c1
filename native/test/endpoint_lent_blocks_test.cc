// Blocks of queue pair numbers that a NIC lends to programs with paths of their own.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "test/nic_harness.h"
#include "test/verbs_harness.h"
#include "transport/program_link.h"
#include "transport/reliable_connection.h"

namespace weir::test {
namespace {

constexpr uint32_t kBlock = 1u << kLentBlockShift;
constexpr uint32_t kAll = kBlock * kLentBlocks;

struct Lender {
  explicit Lender(uint32_t places = kAll, const std::vector<QueuePairParameters>& streams = {})
      : nic(parameters(places), streams, pool, &completions) {}
  static NicParameters parameters(uint32_t places) {
    NicParameters p = nic_parameters();
    p.verbs_queue_pairs = places;
    p.memory_regions = 8;
    return p;
  }
  ApplicationPairs pairs() { return nic.applications(); }
  // 0: there is no place left.
  uint32_t create(int block = -1) { return pairs().create({.send_depth = 1, .receive_depth = 1, .block = block}); }
  std::unique_ptr<ReliableConnection> connection(uint32_t qpn) {
    return std::make_unique<ReliableConnection>(
        qpn, TransportContext{.memory = nic.memory(), .completions = completions, .counters = counters}, 1, 1);
  }

  PacketPool pool{64, 4'096 + 128};
  Completed completions;
  TransportCounters counters;
  WireNic nic;
};

TEST_CASE("lent blocks: the second half is lent, one by one, and what is taken back is lent again") {
  Lender lender;
  for (int block = 8; block < 16; ++block) CHECK(lender.pairs().lend_block() == block);
  CHECK(lender.pairs().lend_block() == -1);
  lender.pairs().take_block_back(11);
  lender.pairs().take_block_back(15);
  CHECK(lender.pairs().lend_block() == 11);
  CHECK(lender.pairs().lend_block() == 15);
  CHECK(lender.pairs().lend_block() == -1);
}

TEST_CASE("lent blocks: a NIC of another size lends none") {
  for (const uint32_t places : {8u, kBlock, kAll / 2, kAll - 1, 2 * kAll}) {
    CAPTURE(places);
    Lender lender(places);
    CHECK(lender.pairs().lend_block() == -1);
  }
}

TEST_CASE("lent blocks: numbers of one are in it, and those of others never are") {
  // Streams have places and numbers before all of these.
  for (const size_t streams : {0, 3}) {
    CAPTURE(streams);
    Lender lender(kAll, std::vector<QueuePairParameters>(streams, sender()));
    const int block = lender.pairs().lend_block();
    REQUIRE(block == 8);
    std::set<uint32_t> numbers;
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint32_t qpn = lender.create(block);
      REQUIRE(qpn > kGsiQpn);
      REQUIRE(lent_block_of(qpn) == 8);
      numbers.insert(qpn);
    }
    CHECK(numbers.size() == kBlock);
    CHECK(lender.create(block) == 0);
    for (uint32_t i = 0; i < kAll - kBlock; ++i) {
      const uint32_t qpn = lender.create();
      REQUIRE(qpn > kGsiQpn);
      REQUIRE(lent_block_of(qpn) != 8);
      numbers.insert(qpn);
    }
    CHECK(numbers.size() == kAll);
    CHECK(lender.create() == 0);
    // The block's places are for all once it is back.
    REQUIRE(lender.pairs().destroy(*std::ranges::find_if(numbers, [](uint32_t qpn) { return lent_block_of(qpn) == 8; })));
    CHECK(lender.create() == 0);
    lender.pairs().take_block_back(block);
    CHECK(lent_block_of(lender.create()) == 8);
  }
}

TEST_CASE("lent blocks: numbers stay in their block however often their places are used") {
  Lender lender;
  const int block = lender.pairs().lend_block();
  uint32_t last = 0;
  // There are fewer generations than that.
  for (uint32_t i = 0; i < 9'000; ++i) {
    const uint32_t qpn = lender.create(block);
    REQUIRE(qpn > kGsiQpn);
    REQUIRE(qpn < kMulticastQpn);
    REQUIRE(lent_block_of(qpn) == 8);
    REQUIRE(qpn != last);
    last = qpn;
    REQUIRE(lender.pairs().destroy(qpn));
  }
}

TEST_CASE("lent blocks: one with a queue pair in it is not lent") {
  Lender lender(kAll, std::vector<QueuePairParameters>(3, sender()));
  uint32_t qpn = 0;
  // The first half and one more.
  for (uint32_t i = 0; i < kAll / 2 + 1; ++i) qpn = lender.create();
  REQUIRE(lent_block_of(qpn) == 8);
  CHECK(lender.pairs().lend_block() == 9);
  REQUIRE(lender.pairs().destroy(qpn));
  CHECK(lender.pairs().lend_block() == 8);
  CHECK(lender.pairs().lend_block() == 10);
}

TEST_CASE("lent blocks: the last place of one keeps it as the first does") {
  Lender lender;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < kAll; ++i) all.push_back(lender.create());
  for (const uint32_t qpn : all) {
    const bool last = qpn % kAll == 9 * kBlock - 1;
    const bool first = qpn % kAll == 10 * kBlock;
    if (!last && !first) REQUIRE(lender.pairs().destroy(qpn));
  }
  CHECK(lender.pairs().lend_block() == 9);
  CHECK(lender.pairs().lend_block() == 11);
}

TEST_CASE("lent blocks: a NIC on one has queue pairs by the lender's numbers, and gives their transports back") {
  Lender lender(kBlock);
  constexpr uint32_t kOne = 0x123956;
  constexpr uint32_t kSamePlace = 0x456956;
  constexpr uint32_t kOther = 0x123957;
  std::unique_ptr<ReliableConnection> transport = lender.connection(kOne);
  VerbsTransport* const own = transport.get();
  REQUIRE(lender.pairs().create({.qpn = kOne, .transport = own}) == kOne);
  transport.release();
  REQUIRE(lender.pairs().find(kOne) != nullptr);
  CHECK(lender.pairs().find(kOne)->verbs() == own);
  CHECK(lender.pairs().find(kOne)->kind == QueuePair::Kind::connection);
  CHECK(lender.pairs().find(kSamePlace) == nullptr);
  // Who finds no place keeps its transport.
  std::unique_ptr<ReliableConnection> second = lender.connection(kSamePlace);
  CHECK(lender.pairs().create({.qpn = kSamePlace, .transport = second.get()}) == 0);
  CHECK(lender.pairs().create({.qpn = kOne, .transport = second.get()}) == 0);
  std::unique_ptr<ReliableConnection> third = lender.connection(kOther);
  REQUIRE(lender.pairs().create({.unreliable = true, .qpn = kOther, .transport = third.get()}) == kOther);
  third.release();
  CHECK(lender.pairs().find(kOther)->kind == QueuePair::Kind::unreliable);

  CHECK(lender.pairs().give_back(kSamePlace) == nullptr);
  const std::unique_ptr<VerbsTransport> back = lender.pairs().give_back(kOne);
  CHECK(back.get() == own);
  CHECK(back->state() == QueuePairState::reset);
  CHECK(lender.pairs().find(kOne) == nullptr);
  CHECK(lender.pairs().give_back(kOne) == nullptr);
  CHECK(lender.pairs().find(kOther) != nullptr);
  // The place is free for whoever has a number for it.
  REQUIRE(lender.pairs().create({.qpn = kSamePlace, .transport = second.get()}) == kSamePlace);
  second.release();
}

TEST_CASE("lent blocks: a transport that is given back while it waits for the link is passed over") {
  Two two;
  two.connect();
  std::array<uint16_t, kPriorities> quanta{};
  quanta[3] = 0xffff;
  two.left().nic.receive_pfc(0, 1 << 3, quanta);
  const Transfer transfer(two, 5'000, WorkOpcode::write);
  const std::unique_ptr<VerbsTransport> back = two.left().nic.applications().give_back(two.qpn(0));
  REQUIRE(back != nullptr);
  CHECK(back->state() == QueuePairState::rts);
  quanta[3] = 0;
  two.left().nic.receive_pfc(kMicrosecond, 1 << 3, quanta);
  two.run();
  CHECK(two.left().nic.counters().tx_packets == 0);
  CHECK(two.left().pool.available() == two.left().pool.size());
}

TEST_CASE("lent blocks: a transport that is given back is not active any more: the next one is alone, and begins at line rate") {
  Two two([](NicParameters& p) { p.initial_rate = 1'000'000'000; });
  two.connect();
  const Transfer first(two, 5'000, WorkOpcode::write);
  two.run(kMillisecond);
  REQUIRE(two.left().completions.all.size() == 1);
  const std::unique_ptr<VerbsTransport> back = two.left().nic.applications().give_back(two.qpn(0));
  REQUIRE(back != nullptr);
  two.connect();
  const Transfer second(two, 5'000, WorkOpcode::write);
  two.run(kMillisecond + 2 * kMicrosecond);
  const QueuePair& qp = two.pair_of(two.left(), two.qpn(0));
  REQUIRE(qp.counters.tx_packets > 0);
  CHECK(two.left().nic.allowed_rate(qp) == two.left().nic.line_rate());
}

// A program's connection on a lent block, whose frames the daemon sees once its path is taken back.
TEST_CASE("lent blocks: the peer of a program that ends on its own path is told when it goes back") {
  auto memory = std::make_unique<ProgramMemory>();
  ProgramLink link(*memory);
  Two two([](NicParameters& p) { p.verbs_queue_pairs = kAll; });
  const int block = two.right().nic.applications().lend_block();
  const uint32_t right = two.right().nic.applications().create({.program = 1, .link = &link, .block = block});
  const uint32_t left = two.left().nic.applications().create({});
  QueueAttributes a;
  a.domain = 1;
  a.timeout = 8;  // a millisecond
  for (const QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    a.remote_qpn = right;
    two.left().nic.applications().modify(left, to, a, path_to(kPeerMac, kNicMac), 3, 0);
    a.remote_qpn = left;
    two.right().nic.applications().modify(right, to, a, path_to(kNicMac, kPeerMac), 3, 0);
  }
  std::vector<uint8_t> bytes(100);
  const uint32_t key = two.left().register_memory(bytes);
  const auto post = [&](uint64_t id) {
    SendWork w = work(WorkOpcode::write, bytes, key, bytes, 77);
    w.id = id;
    two.left().nic.applications().post_send(left, w);
  };
  // The program has taken these, and said nothing.
  two.spoil = [](bool to_right, std::vector<uint8_t>&) { return !to_right; };
  post(1);
  post(2);
  two.run(100 * kMicrosecond);
  // It had said something before, of long ago.
  REQUIRE(two.right().nic.applications().abandon(right, 0xfffff0));
  two.right().nic.applications().take_block_back(block);
  two.spoil = nullptr;
  post(3);
  two.run(200 * kMicrosecond);
  CHECK(two.left().completions.all.empty());
  two.run(100 * kMillisecond);
  std::vector<WorkStatus> statuses;
  for (const Completion& c : two.left().completions.all) {
    if (c.retired > 0) statuses.push_back(c.status);
  }
  CHECK(statuses == std::vector{WorkStatus::remote_operation_error, WorkStatus::flushed, WorkStatus::flushed});
}

// The daemon sees what goes between two queue pairs of its own NIC, lent block or not.
TEST_CASE("lent blocks: the peer of a program on the same NIC is told at once") {
  auto memory = std::make_unique<ProgramMemory>();
  ProgramLink link(*memory);
  Two two([](NicParameters& p) { p.verbs_queue_pairs = kAll; });
  ApplicationPairs pairs = two.right().nic.applications();
  const uint32_t one = pairs.create({.program = 1, .link = &link, .block = pairs.lend_block()});
  QueueAttributes a;
  a.domain = 1;
  a.remote_qpn = pairs.create({});
  for (const QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    two.right().nic.applications().modify(one, to, a, path_to(kPeerMac, kPeerMac), 3, 0);
  }
  REQUIRE(two.right().nic.applications().abandon(one));
  two.run(kMillisecond);
  CHECK(two.right().nic.transport_counters().tx_naks == 1);
}

}  // namespace
}  // namespace weir::test
