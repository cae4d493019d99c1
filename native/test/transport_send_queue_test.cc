// Send queues that stand still: draining and drained (SQD), failed (SQE), and how they go on. IBTA volume 1, 10.3.1.
#include <set>

#include "base/native_error.h"
#include "test/refusal.h"
#include "test/transport_harness.h"
#include "transport/datagram.h"
#include "transport/unreliable_connection.h"

namespace weir {
namespace {

using test::Frame;
using test::Pair;
using test::refusal;
using test::Region;
using enum SendQueueState;

TEST_CASE("draining: of a reliable connection what has begun is finished whatever is lost, and the rest waits until it goes on") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    pair.faults.loss = seed % 2 == 0 ? 0.1 : 0;
    pair.both([](QueueAttributes& a) { a.window = 16; });
    pair.connect();
    const Region from = pair.left.make_region(20'000, seed);
    const Region to = pair.right.make_region(20'000);
    const auto post = [&](uint64_t id) {
      const WorkOpcode opcode = id % 3 == 2 ? WorkOpcode::read : WorkOpcode::write;
      pair.left.rc.post_send({id, opcode, kSignaled, from.length, from.address, from.key, to.key, to.address});
    };
    for (uint64_t id = 0; id < 6; ++id) post(id);
    CHECK(pair.left.rc.send_queue_state() == runs);
    std::set<uint32_t> begun;  // first PSNs of requests
    pair.on_frame = [&](test::End& end, Frame& frame) {
      const OpcodeShape shape = opcode_shape(frame.opcode());
      if (&end == &pair.left && shape.first && shape.kind != RequestKind::none) begun.insert(frame.psn());
      return true;
    };
    pair.run(static_cast<Time>(seed) * kMicrosecond);
    pair.left.rc.drain();
    const bool idle = begun.empty();
    CHECK(pair.left.rc.send_queue_state() == (idle ? drained : draining));
    const size_t before = begun.size();
    post(6);
    REQUIRE(pair.run());
    CHECK(pair.left.rc.send_queue_state() == drained);
    const std::vector<Completion> done = pair.left.take();
    // A READ is asked for in pieces.
    CHECK(done.size() <= begun.size());
    CHECK(done.size() < 7);
    CHECK((begun.size() == before || done.back().opcode == WorkOpcode::read));
    for (const Completion& c : done) CHECK(c.status == WorkStatus::success);

    pair.left_attributes.timeout = 9;
    pair.left.rc.modify(QueuePairState::rts, pair.left_attributes);
    CHECK(pair.left.rc.send_queue_state() == runs);
    REQUIRE(pair.run());
    const std::vector<Completion> rest = pair.left.take();
    CHECK(done.size() + rest.size() == 7);
    for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i].id == done.size() + i);
    CHECK(std::memcmp(from.data(), to.data(), from.length) == 0);
  }
}

TEST_CASE("draining: only a queue pair that may send drains, and receives as before; an error ends it") {
  Pair pair;
  CHECK(refusal([&] { pair.left.rc.drain(); }) == "INVALID_STATE");
  pair.connect();
  pair.right.rc.drain();
  CHECK(pair.right.rc.send_queue_state() == drained);
  const Region from = pair.left.make_region(100, 1);
  const Region to = pair.right.make_region(100);
  pair.right.receive(to);
  pair.left.rc.post_send({1, WorkOpcode::send, kSignaled, 100, from.address, from.key});
  REQUIRE(pair.run());
  CHECK(pair.right.take().size() == 1);
  pair.right.rc.post_send({2, WorkOpcode::send, kSignaled, 100, to.address, to.key});
  pair.right.rc.modify(QueuePairState::error, {});
  CHECK(pair.right.rc.send_queue_state() == runs);
  CHECK(pair.right.take().at(0).status == WorkStatus::flushed);
}

struct Told : CompletionSink {
  void complete(const Completion& completion) override { (completion.retired > 0 ? all : events).push_back(completion); }
  std::vector<Completion> all;
  std::vector<Completion> events;
};

// One that has no acknowledgements; what it sends goes nowhere.
template <class Type>
struct Sender {
  explicit Sender(bool errors = true) : context{.memory = memory, .completions = told, .counters = counters} {
    context.send_queue_errors = errors;
    transport = std::make_unique<Type>(9, context, 8, 8);
    key = memory.add({bytes.data(), kAddress, bytes.size(), 7, test::kAllRights, nullptr});
    attributes.domain = 7;
    attributes.path_mtu = 256;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) transport->modify(to, attributes);
  }
  void post(uint64_t id, uint32_t length, uint32_t with) {
    transport->post_send({id, WorkOpcode::send, kSignaled, length, kAddress, with});
  }
  // Returns how many packets it sends.
  int send(int most = 100) {
    int count = 0;
    while (count < most && transport->data_bytes() > 0) {
      OutgoingPacket out;
      if (!transport->take_data(0, out)) continue;
      transport->advance(0);
      ++count;
    }
    return count;
  }

  static constexpr uint64_t kAddress = 0x5000;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(4'096);
  MemoryTable memory{4};
  TransportCounters counters;
  Told told;
  TransportContext context;
  QueueAttributes attributes;
  std::unique_ptr<Type> transport;
  uint32_t key = 0;
};

TEST_CASE("draining: an unreliable message that has begun is sent to its end, and no other") {
  Sender<UnreliableConnection> one;
  one.post(1, 1'000, one.key);
  one.post(2, 1'000, one.key);
  CHECK(one.send(1) == 1);
  one.transport->drain();
  CHECK(one.transport->send_queue_state() == draining);
  CHECK(one.send() == 3);
  CHECK(one.transport->send_queue_state() == drained);
  CHECK(one.told.all.size() == 1);
  one.transport->modify(QueuePairState::rts, one.attributes);
  CHECK(one.send() == 4);
  CHECK(one.told.all.size() == 2);
}

TEST_CASE("draining: datagrams wait until it goes on, and their PSNs with them") {
  Sender<Datagram> one;
  one.post(1, 100, one.key);
  one.transport->drain();
  CHECK(one.transport->send_queue_state() == drained);
  CHECK(one.send() == 0);
  one.transport->modify(QueuePairState::rts, one.attributes);
  OutgoingPacket out;
  REQUIRE(one.transport->take_data(0, out));
  CHECK(out.header.psn == 0);
  one.transport->drain();
  CHECK(one.transport->send_queue_state() == draining);
  one.transport->advance(0);
  CHECK(one.transport->send_queue_state() == drained);
  one.transport->modify(QueuePairState::rts, one.attributes);
  one.post(2, 100, one.key);
  REQUIRE(one.transport->take_data(0, out));
  CHECK(out.header.psn == 1);
}

TEST_CASE_TEMPLATE("failed: what cannot be sent stops sends alone, until the queue pair is told to go on", Type,
                   UnreliableConnection, Datagram) {
  Sender<Type> one;
  one.transport->post_receive({20, one.kAddress, 1'000, one.key});
  one.post(1, 100, one.key);
  one.post(2, 100, one.key + 1);  // no key of this memory's
  one.post(3, 100, one.key);
  CHECK(one.send() == 1);
  CHECK(one.transport->state() == QueuePairState::rts);
  CHECK(one.transport->send_queue_state() == failed);
  CHECK(one.transport->may_receive());
  one.post(4, 100, one.key);
  const WorkStatus wanted[] = {WorkStatus::success, WorkStatus::local_protection_error, WorkStatus::flushed, WorkStatus::flushed};
  REQUIRE(one.told.all.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(one.told.all[i].id == i + 1);
    CHECK(one.told.all[i].status == wanted[i]);
  }
  CHECK(one.told.events.size() == 1);
  one.transport->modify(QueuePairState::rts, one.attributes);
  CHECK(one.transport->send_queue_state() == runs);
  one.post(5, 100, one.key);
  CHECK(one.send() == 1);
  CHECK(one.told.all.back().status == WorkStatus::success);

  // If that is not offered, it is of no more use.
  Sender<Type> other(false);
  other.post(2, 100, other.key + 1);
  CHECK(other.send() == 0);
  CHECK(other.transport->state() == QueuePairState::error);
}

}  // namespace
}  // namespace weir
