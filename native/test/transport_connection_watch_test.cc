// The daemon's view of a connection that it only passes on: it hears the same as the end that has the connection, and a program's
// words do no harm.
#include <deque>
#include <random>

#include "test/transport_harness.h"
#include "transport/connection_watch.h"

namespace weir::test {
namespace {

constexpr uint32_t kMtu = 1'024;

// Requests from PSN `first` on, sent at 1'000, 2'000 ..., and answers to them.
struct Watched {
  explicit Watched(uint32_t first = 0) : psn(first) {}
  void request(uint32_t packets = 1, bool answered = false) {
    CHECK(watch.allows(psn, packets));
    watch.sent(now += 1'000, psn, packets, answered);
    psn = psn_add(psn, packets);
  }
  void again(uint32_t at) { watch.sent(now += 1'000, at, 1, false); }
  Heard answer(uint8_t opcode, uint32_t at, uint8_t syndrome = kSyndromeAck, bool echo = false, bool marked = false) {
    Bth bth;
    bth.opcode = opcode;
    bth.psn = at;
    bth.becn = echo;
    watch.hear(now += 1'000, bth, {syndrome, 0}, marked, watch.end());
    return take();
  }
  Heard acknowledge(uint32_t at, bool echo = false) { return answer(kOpcodeRcAcknowledge, at, kSyndromeAck, echo); }
  Heard take() {
    Heard heard;
    told = watch.take(heard);
    return heard;
  }

  ConnectionWatch watch{16, false};
  uint32_t psn;
  Time now = 0;
  bool told = false;  // told by the last answer
};

TEST_CASE("watch: one acknowledgement is of all before it, with the time and the mark of the newest, across the end of PSNs") {
  Watched w(0xfffffe);
  for (int i = 0; i < 4; ++i) w.request();
  const Heard first = w.acknowledge(0xffffff, true);
  CHECK(first.ack.packets == 2);
  CHECK(first.ack.sent == 2'000);
  CHECK(first.ack.arrived == 5'000);
  CHECK(first.ack.marked);
  CHECK(first.ack.in_flight == 2);
  CHECK(first.ack.wanted == 4);
  CHECK_FALSE(first.lost);
  w.acknowledge(0xffffff);
  CHECK_FALSE(w.told);
  const Heard second = w.acknowledge(1);
  CHECK(second.ack.packets == 2);
  CHECK_FALSE(second.ack.marked);
  CHECK(second.ack.in_flight == 0);
  w.acknowledge(2);  // never sent
  CHECK_FALSE(w.told);
}

TEST_CASE("watch: of READs only responses count, each of which is one packet, and a mark on them is theirs") {
  Watched w;
  w.request();
  w.request(3, true);
  w.request();
  const Heard first = w.answer(kOpcodeRcReadResponseFirst, 1, kSyndromeAck, false, true);
  CHECK(first.ack.packets == 2);
  CHECK(first.ack.sent == 2'000);
  CHECK(first.ack.marked);
  CHECK(first.ack.in_flight == 3);
  // An acknowledgement of what comes behind them says that they are lost.
  const Heard gap = w.acknowledge(4);
  CHECK(gap.lost);
  CHECK(gap.ack.packets == 0);
  w.answer(kOpcodeRcReadResponseLast, 3);  // so does a later response; once is enough
  CHECK_FALSE(w.told);
  w.watch.sent(w.now += 1'000, 2, 2, true);
  CHECK(w.watch.timed_out_at() == kNever);
  const Heard again = w.answer(kOpcodeRcReadResponseFirst, 2);
  CHECK(again.ack.packets == 1);
  CHECK(again.ack.sent == kNever);
  CHECK(w.answer(kOpcodeRcReadResponseLast, 3).ack.packets == 1);
  CHECK(w.acknowledge(4).ack.packets == 1);
}

TEST_CASE("watch: a NAK acknowledges what is before it; it tells of a loss once until something is new, an RNR NAK of none") {
  Watched w;
  for (int i = 0; i < 6; ++i) w.request();
  const Heard nak = w.answer(kOpcodeRcAcknowledge, 2, kNakSequence);
  CHECK(nak.lost);
  CHECK(nak.ack.packets == 2);
  w.answer(kOpcodeRcAcknowledge, 2, kNakSequence);
  CHECK_FALSE(w.told);
  for (uint32_t psn = 2; psn < 6; ++psn) w.again(psn);
  CHECK(w.watch.timed_out_at() == kNever);
  const Heard rnr = w.answer(kOpcodeRcAcknowledge, 4, kSyndromeRnrNak | 1);
  CHECK_FALSE(rnr.lost);
  CHECK(rnr.ack.packets == 2);
  CHECK(rnr.ack.sent == kNever);
  w.again(4);
  CHECK(w.watch.timed_out_at() == kNever);
  CHECK(w.answer(kOpcodeRcAcknowledge, 4, kNakSequence).lost);
}

TEST_CASE("watch: the oldest that is sent again for no reason is a timeout, each time") {
  Watched w;
  for (int i = 0; i < 3; ++i) w.request();
  w.again(0);
  CHECK(w.watch.timed_out_at() == w.now);
  const Heard first = w.take();
  CHECK(first.timed_out);
  CHECK_FALSE(first.lost);
  CHECK(first.ack.in_flight == 3);
  CHECK(w.watch.timed_out_at() == kNever);
  w.again(1);
  CHECK(w.watch.timed_out_at() == kNever);
  w.again(0);
  CHECK(w.take().timed_out);
  CHECK(w.acknowledge(1).ack.sent == kNever);
  CHECK(w.acknowledge(2).ack.sent == 3'000);
}

TEST_CASE("watch: the window holds what is not the oldest, and what is sent again from its own place on") {
  Watched w;
  w.watch.limit(2);
  w.request();
  w.request();
  CHECK_FALSE(w.watch.allows(2, 1));
  CHECK(w.watch.allows(0, 1));
  w.acknowledge(0);
  CHECK(w.watch.allows(2, 1));
  CHECK_FALSE(w.watch.allows(2, 2));
  w.acknowledge(1);
  CHECK(w.watch.allows(2, 100));  // a READ of more than the window, once it is the oldest
  w.watch.limit(UINT32_MAX);
  w.request();
  CHECK(w.watch.allows(3, 15));
  CHECK_FALSE(w.watch.allows(3, 16));  // the transport's own window
}

// Both ends of a connection with go-back-N, one frame after another in any order that each way keeps.
TEST_CASE("watch: hears of every answer what the connection's own end hears, whatever is lost, marked or not ready") {
  uint32_t timeouts = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 draw(seed);
    std::mt19937 limits(seed);
    Pair pair(seed);
    pair.both([](QueueAttributes& a) {
      a.path_mtu = kMtu;
      a.informs = true;
      a.window = 32;
      a.timeout = 8;
    });
    pair.connect();
    Region here = pair.left.make_region(64 * kMtu);
    Region there = pair.right.make_region(64 * kMtu);
    ConnectionWatch watch(64, false);
    std::deque<Frame> to_right;
    std::deque<Frame> to_left;
    const uint32_t lost_of_100 = seed % 4 * 4;
    uint64_t arrived = 0;
    uint32_t losses = 0;
    const auto compare = [&] {
      Heard own;
      Heard seen;
      const bool told = pair.left.rc.take_heard(own);
      CHECK(watch.take(seen) == told);
      if (!told) return;
      CHECK(seen.ack.packets == own.ack.packets);
      CHECK(seen.lost == own.lost);
      if (own.ack.packets > 0) {
        CHECK(seen.ack.sent == own.ack.sent);
        CHECK(seen.ack.marked == own.ack.marked);
        CHECK(seen.ack.arrived == own.ack.arrived);
      }
      CHECK(seen.ack.in_flight == own.ack.in_flight);
      arrived += own.ack.packets;
      losses += own.lost;
    };
    const auto put = [&](End& from, std::deque<Frame>& on, const OutgoingPacket& out) {
      if (draw() % 100 < lost_of_100) return;
      on.push_back(build_frame(from.headers, out.header, out.payload, out.payload_bytes));
      if (draw() % 5 == 0) on.back().meta.ecn = 3;
    };
    const auto send_left = [&] {
      OutgoingPacket out;
      if (pair.left.rc.data_bytes() == 0 || !pair.left.rc.take_data(pair.now, out)) return;
      const RequestKind kind = opcode_shape(out.header.opcode).kind;
      const uint32_t packets = kind == RequestKind::read ? packets_of(out.header.reth.dma_length, kMtu) : 1;
      watch.sent(pair.now, out.header.psn, packets, kind == RequestKind::read || kind == RequestKind::atomic);
      put(pair.left, to_right, out);
    };
    for (int step = 0; step < 6'000; ++step) {
      pair.now += 1 + draw() % 200;
      if (limits() % 50 == 0) pair.left.rc.limit(16 + limits() % 32, limits() % 64);
      switch (draw() % 8) {
        case 0: {
          constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::write, WorkOpcode::read, WorkOpcode::fetch_add};
          SendWork work;
          work.opcode = kOpcodes[draw() % 4];
          work.length = work.opcode == WorkOpcode::fetch_add ? 8 : draw() % (20 * kMtu);
          work.local_address = here.address;
          work.local_key = here.key;
          work.remote_address = there.address;
          work.remote_key = there.key;
          if (pair.left.rc.state() == QueuePairState::rts && draw() % 2 == 0) pair.left.rc.post_send(work);
          break;
        }
        case 1:
          if (draw() % 2 == 0) pair.right.receive(there);
          break;
        case 2:
        case 3:
          send_left();
          break;
        case 4:
          if (to_right.empty()) break;
          pair.deliver(pair.right, to_right.front());
          to_right.pop_front();
          break;
        case 5: {
          OutgoingPacket out;
          if (pair.right.rc.control_waits()) {
            pair.right.rc.take_control(out);
          } else if (pair.right.rc.data_bytes() == 0 || !pair.right.rc.take_data(pair.now, out)) {
            break;
          }
          put(pair.right, to_left, out);
          break;
        }
        case 6: {
          if (to_left.empty()) break;
          const Frame frame = to_left.front();
          to_left.pop_front();
          const Bth bth = frame.bth();
          const Aeth aeth = (extensions(bth.opcode) & kHasAeth) != 0 ? frame.aeth() : Aeth{};
          pair.deliver(pair.left, frame);
          watch.hear(pair.now, bth, aeth, frame.meta.ecn == 3, watch.end());
          compare();
          break;
        }
        default: {
          const bool waits = !to_left.empty() || !to_right.empty() || pair.right.rc.control_waits() ||
                             pair.right.rc.data_bytes() > 0 || pair.left.rc.data_bytes() > 0;
          const Time due = pair.left.rc.next_deadline();
          if (waits || due == kNever) break;
          pair.now = std::max(pair.now, due);
          pair.left.rc.advance(pair.now);
          Heard own;
          if (!pair.left.rc.take_heard(own)) break;
          REQUIRE(own.timed_out);
          ++timeouts;
          send_left();
          Heard seen;
          REQUIRE(watch.take(seen));
          CHECK(seen.timed_out);
          CHECK_FALSE(seen.lost);
          CHECK(seen.ack.in_flight == own.ack.in_flight);
        }
      }
      if (pair.left.rc.state() != QueuePairState::rts || pair.right.rc.state() != QueuePairState::rts) break;
    }
    CHECK(arrived > 100);
    if (lost_of_100 > 0) CHECK(losses > 0);
  }
  CHECK(timeouts > 10);
}

// The window bounds its places, whatever PSNs a program and a peer come up with.
TEST_CASE("watch: no PSNs make it hold more than the window, or wait for more than is in flight") {
  std::mt19937 draw(3);
  for (int round = 0; round < 50; ++round) {
    ConnectionWatch watch(16, false);
    uint32_t base = draw() & kPsnMask;
    for (int step = 0; step < 2'000; ++step) {
      const uint32_t psn = psn_add(base, draw() % 8 == 0 ? draw() : draw() % 40);
      if (draw() % 4 == 0) watch.limit(draw() % 40);
      if (draw() % 2 == 0) {
        const uint32_t packets = draw() % 8 == 0 ? 1 + draw() % kMostPsns : 1 + draw() % 4;
        if (watch.allows(psn, packets)) watch.sent(step, psn, packets, draw() % 3 == 0);
      } else {
        Bth bth;
        bth.opcode = static_cast<uint8_t>(kOpcodeRcReadResponseFirst + draw() % 6);
        bth.psn = psn;
        watch.hear(step, bth, {static_cast<uint8_t>(draw()), 0}, draw() % 2 == 0, draw() & kPsnMask);
      }
      Heard heard;
      if (watch.take(heard)) CHECK(heard.ack.in_flight <= kMostPsns);
      if (draw() % 16 == 0) base = watch.end();
    }
  }
}

}  // namespace
}  // namespace weir::test
