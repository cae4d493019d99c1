#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/wire_port.h"
#include "test/memory_port.h"
#include "test/rig/port.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate k1G = 1'000'000'000;
constexpr Time kFrameTime = 8'192;  // 1000 bytes and 24 of overhead at 1 Gb/s

struct Wire {
  explicit Wire(Rate rate, Time delay, size_t window = 64, uint32_t slots = 256) {
    auto [near, far] = make_memory_pair({.slots = slots, .slot_bytes = 2'048}, near_clock, far_clock);
    peer = std::move(far);
    port = std::make_unique<WirePort>(std::move(near), rate, delay, window);
  }
  // The peer hands over `count` frames at `stamp`; the first byte of each numbers it.
  void arrive(Time stamp, int count, uint32_t length = 1'000) {
    far_clock.now = stamp;
    for (int i = 0; i < count; ++i) {
      std::vector<uint8_t> bytes(length, next++);
      TxFrame frame;
      frame.data = bytes.data();
      frame.length = length;
      REQUIRE(peer->transmit(std::span(&frame, 1)).sent == 1);
    }
  }
  PortClock near_clock;
  PortClock far_clock;
  std::unique_ptr<MemoryPort> peer;
  std::unique_ptr<WirePort> port;
  uint8_t next = 0;
};

struct Sender {
  explicit Sender(size_t window = 64, Time delay = 0) {
    host.room = 0;
    port = std::make_unique<WirePort>(std::make_unique<ScriptedPort>(host), 0, delay, window);
  }
  void send(uint32_t length = 100) {
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id].length = length;
    port->send(pool, id);
  }
  void flush(Time now) {
    port->flush(
        pool, now, [this](PacketId) { ++left; }, [this](PacketId, bool down) { ++(down ? down_lost : refused_lost); });
  }
  PortScript host;  // takes nothing at first
  std::unique_ptr<WirePort> port;
  PacketPool pool{256, 256};
  size_t left = 0, down_lost = 0, refused_lost = 0;
};

}  // namespace

TEST_CASE("wire port: a host that takes nothing is asked ever less often, and again at once when it has taken something") {
  Sender s;
  for (int i = 0; i < 5; ++i) s.send();
  s.flush(0);
  CHECK(s.host.calls.size() == 1);
  CHECK(s.port->next_deadline() == 20 * kMicrosecond);
  s.flush(20 * kMicrosecond - 1);
  CHECK(s.host.calls.size() == 1);
  size_t looks = 0;
  Time now = 0;
  for (; now < 900 * kMillisecond; now = s.port->next_deadline(), ++looks) {
    s.flush(now);
    REQUIRE(s.port->next_deadline() - now <= kMillisecond);
  }
  CHECK(looks < 1'100);  // 45,000 in steps of 20 us
  CHECK(s.left == 0);
  s.host.room = 1;
  s.flush(now);
  CHECK(s.left == 1);
  CHECK(s.port->next_deadline() == now + 20 * kMicrosecond);
  s.host.room = 10;
  s.flush(now + 20 * kMicrosecond);
  CHECK(s.left == 5);
  CHECK(s.port->unsent_bytes() == 0);
  CHECK(s.port->next_deadline() == kNever);
  CHECK(s.pool.available() == s.pool.size());
}

TEST_CASE("wire port: no frame waits for longer than the patience, also where the host takes one now and then") {
  Sender s;
  Time now = 0;
  size_t sent = 0;
  // One frame in 200 ms, while ten come in that time.
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 10 && s.port->unsent() < 100; ++i, ++sent) s.send();
    s.host.room = 1;
    for (int step = 0; step < 20; ++step, now += 10 * kMillisecond) s.flush(now);
  }
  CHECK(s.left == 50);
  CHECK(s.port->unsent() <= 60);  // those that came in the last second
  CHECK(s.refused_lost == sent - s.left - s.port->unsent());
  CHECK(s.down_lost == 0);
  s.port->settle();
  CHECK(s.port->counters().host_tx_errors == s.refused_lost);
  s.host.room = 1'000;
  s.flush(now + kMillisecond);
  CHECK(s.port->unsent() == 0);
  CHECK(s.pool.available() == s.pool.size());
}

TEST_CASE("wire port: a frame that the host refuses for good is discarded, and those behind it go on") {
  Sender s;
  s.host.room = 100;
  s.host.hopeless = 222;
  for (const uint32_t length : {100u, 222u, 222u, 90u}) s.send(length);
  s.flush(0);
  CHECK(s.left == 2);
  CHECK(s.refused_lost == 2);
  s.port->settle();
  CHECK(s.port->counters().host_tx_errors == 2);
  CHECK(s.pool.available() == s.pool.size());
}

TEST_CASE("wire port: what waits when the interface is deleted is discarded, and nothing leaks") {
  Sender s;
  for (int i = 0; i < 7; ++i) s.send();
  s.flush(0);
  CHECK(s.port->unsent() == 7);
  s.host.state = PortState::gone;
  CHECK(s.port->check(kMillisecond).up);
  s.send();
  s.flush(kMillisecond);  // earlier than the host would be asked again
  CHECK(s.down_lost == 8);
  CHECK(s.left == 0);
  CHECK(s.port->unsent_bytes() == 0);
  CHECK(s.port->next_deadline() == kNever);
  CHECK(s.pool.available() == s.pool.size());
}

TEST_CASE("wire port: an egress that stands still is told, with the time for which it did") {
  Sender s;
  s.host.room = 1;
  s.send();
  s.flush(0);
  CHECK_FALSE(s.port->check(0).any());
  Time now = 0;
  // The host takes nothing for three seconds: frames wait, and are given up.
  size_t told = 0;
  for (; now < 3 * kSecond; now += 10 * kMillisecond) {
    if (s.port->unsent() < 50) s.send();
    s.flush(now);
    if (now % WirePort::kStall == 0 && s.port->check(now).stall) ++told;
  }
  CHECK(told == 1);
  CHECK(s.port->transmit_stalled());
  CHECK(s.port->counters().tx_stall_duration >= 2'500'000'000);
  CHECK(s.port->counters().tx_stall_duration <= 3'000'000'000);
  s.host.room = 1'000;
  s.flush(now);
  CHECK(s.port->check(now).stall);
  CHECK_FALSE(s.port->transmit_stalled());
  // One that is slow, but takes what it is given within the time, does not.
  for (; now < 9 * kSecond; now += 10 * kMillisecond) {
    for (int i = 0; i < 2 && s.port->unsent() < 20; ++i) s.send();
    s.host.room = 1;
    s.flush(now);
    if (now % WirePort::kStall == 0) CHECK_FALSE(s.port->check(now).stall);
  }
}

TEST_CASE("wire port: frames that come and are not taken are told") {
  for (const bool full : {false, true}) {
    CAPTURE(full);
    Sender s(4, kSecond);  // a delay of a second, during which they have to wait
    Time now = 0;
    CHECK_FALSE(s.port->check(now).any());
    // A device lives by arrivals: one that lies in the future is not taken, and holds back all behind it.
    for (int i = 0; i < (full ? 8 : 1); ++i) s.host.give(100 * kSecond, std::vector<uint8_t>(100));
    s.port->poll();
    for (now += WirePort::kStall; now < 2 * kSecond; now += WirePort::kStall) CHECK_FALSE(s.port->check(now).stall);
    if (full) s.host.losses.receive_overrun += 5;
    now += WirePort::kStall;
    CHECK(s.port->check(now).stall);
    CHECK(s.port->receive_stuck());
    while (s.port->next_arrival() != kNever) s.port->pop();
    CHECK(s.port->check(now + WirePort::kStall).stall);
    CHECK_FALSE(s.port->receive_stuck());
  }
}

TEST_CASE("wire port: a burst with one stamp is spread at the link's rate, the delay is added") {
  Wire w(k1G, 500);
  w.arrive(100'000, 4);
  CHECK(w.port->next_arrival() == kNever);
  w.port->poll();
  for (int i = 0; i < 4; ++i) {
    CHECK(w.port->next_arrival() == 100'000 + i * kFrameTime + 500);  // the stamp is of the last bit
    CHECK(w.port->front().data[0] == i);
    w.port->pop();
  }
  CHECK(w.port->next_arrival() == kNever);
  // One that comes while the link is still busy with the burst queues behind it; a later one arrives at its stamp.
  w.arrive(110'000, 1);
  w.arrive(400'000, 1);
  w.port->poll();
  CHECK(w.port->front().stamp == 100'000 + 4 * kFrameTime + 500);
  w.port->pop();
  CHECK(w.port->front().stamp == 400'500);
  CHECK(w.port->received() == 6);
}

TEST_CASE("wire port: arrival times never go back, whatever the stamps") {
  for (const Rate rate : {Rate{0}, k1G, Rate{700'000'000}}) {
    Wire w(rate, 0);
    for (const Time stamp : {Time{500'000}, Time{400'000}, Time{500'001}, Time{0}, Time{900'000}, Time{899'999}})
      w.arrive(stamp, 3);
    w.port->poll();
    Time previous = 0;
    for (; w.port->next_arrival() != kNever; w.port->pop()) {
      CHECK(w.port->next_arrival() >= previous);
      previous = w.port->next_arrival();
    }
    CHECK(previous >= 900'000);
  }
}

TEST_CASE("wire port: without a rate a frame arrives at its stamp plus the delay") {
  Wire w(0, 2'000);
  w.arrive(7'000, 2);
  w.port->poll();
  CHECK(w.port->front().stamp == 9'000);
  w.port->pop();
  CHECK(w.port->front().stamp == 9'000);
}

TEST_CASE("wire port: no more is borrowed than fits the window; what is given back makes room, in order") {
  Wire w(k1G, 0, 8, 16);
  w.arrive(0, 16);
  w.port->poll();
  CHECK(w.port->received() == 8);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 2; ++i) {
      CHECK(w.port->front().data[0] == round * 2 + i);
      w.port->pop();
    }
    w.port->poll();  // used, but not given back: still no room
    CHECK(w.port->received() == static_cast<uint64_t>(8 + 2 * round));
    w.port->give_back();
    w.port->poll();
    CHECK(w.port->received() == static_cast<uint64_t>(10 + 2 * round));
  }
  for (int i = 8; i < 16; ++i) {
    CHECK(w.port->front().data[0] == i);
    w.port->pop();
  }
  w.port->give_back();
  w.arrive(kSecond, 16);  // all slots of the ring are free again
}

TEST_CASE("wire port: what the port does not take yet is kept, in order, and freed once sent") {
  Wire w(k1G, 0, 64, 4);
  PacketPool pool(16, 256);
  for (uint8_t i = 0; i < 10; ++i) {
    const PacketId id = pool.allocate();
    pool[id].length = 100;
    pool.data(id)[0] = i;
    w.port->send(pool, id);
  }
  uint8_t expected = 0;
  size_t left = 0;
  for (Time now = 0; expected < 10; now += kMillisecond) {
    w.port->flush(
        pool, now, [&](PacketId id) { CHECK(pool.data(id)[0] == left++); }, [](PacketId, bool) { FAIL("lost"); });
    CHECK(left == expected + 4u - (expected == 8 ? 2u : 0u));
    CHECK(w.port->unsent_bytes() == 100 * (10 - left));
    RxFrame frames[16];
    const size_t got = w.peer->receive(frames);
    REQUIRE(got > 0);
    for (size_t i = 0; i < got; ++i) CHECK(frames[i].data[0] == expected++);
    w.peer->release(got);
    CHECK(pool.available() == 6u + expected);
  }
  CHECK(w.port->unsent() == 0);
}

TEST_CASE("wire port: frames that wait when the interface is replaced are counted, read or not") {
  PortScript replaced;
  replaced.state = PortState::replaced;
  for (int i = 0; i < 3; ++i) replaced.give(1'000, std::vector<uint8_t>(100));
  WirePort port(std::make_unique<ScriptedPort>(replaced), 0, kSecond,
                2);  // a delay that none of them has seen the end of, room for two
  port.poll();
  CHECK(replaced.waiting() == 1);
  CHECK(port.check(0).reopened);
  CHECK(port.up());
  CHECK(port.counters().host_rx_abandoned == 3);
  CHECK(port.next_arrival() == kNever);
  CHECK_FALSE(port.check(0).any());
}

TEST_CASE("wire port: a changed MTU is told once, and one that is gone has not changed") {
  PortScript interface;
  WirePort port(std::make_unique<ScriptedPort>(interface), 0, 0, 8);
  CHECK_FALSE(port.check(0).any());
  CHECK(port.mtu() == 0);
  interface.mtu = 1500;
  CHECK(port.check(0).mtu);
  CHECK_FALSE(port.check(0).any());
  interface.mtu = 0;
  CHECK_FALSE(port.check(0).any());
  CHECK(port.mtu() == 1500);
  interface.mtu = 9000;
  const WirePort::Changes changes = port.check(0);
  CHECK(changes.mtu);
  CHECK_FALSE(changes.up);
  CHECK_FALSE(changes.reopened);
  CHECK(port.mtu() == 9000);
}

TEST_CASE("wire port: faults of what leaves hold frames back, double, change and take them, and no packet is lost") {
  Sender s;
  s.host.room = 100;
  PortClock clock;
  Faults& faults = s.port->leaving(clock).faults();
  using Kind = FaultParameters::Kind;
  SUBCASE("taken") {
    faults.add(1, {.kind = Kind::drop, .leaving = true, .every = 2}, 0);
    for (int i = 0; i < 4; ++i) s.send();
    CHECK(s.port->unsent() == 4);
    s.flush(0);
    CHECK(s.host.sent.size() == 2);
    CHECK(s.left == 4);
    s.port->settle();
    CHECK(s.port->counters().faults_dropped == 2);
  }
  SUBCASE("doubled") {
    faults.add(1, {.kind = Kind::duplicate, .leaving = true, .count = 1}, 0);
    for (int i = 0; i < 2; ++i) s.send();
    s.flush(0);
    CHECK(s.host.sent.size() == 3);
  }
  SUBCASE("held back, and gone when their time has come") {
    faults.add(1, {.kind = Kind::delay, .leaving = true, .count = 2, .delay = 500}, 0);
    for (uint32_t length = 100; length < 104; ++length) s.send(length);
    s.flush(0);
    CHECK(s.host.sent.size() == 2);
    CHECK(s.port->next_deadline() == 500);
    CHECK(s.port->unsent() == 2);
    clock.now = 500;
    s.flush(500);
    REQUIRE(s.host.sent.size() == 4);
    CHECK((s.host.sent[2].bytes.size() == 100 && s.host.sent[3].bytes.size() == 101));
    CHECK(s.port->next_deadline() == kNever);
    CHECK(s.left == 4);
  }
  SUBCASE("held back, as many as there is room for") {
    faults.add(1, {.kind = Kind::delay, .leaving = true, .delay = 500}, 0);
    PacketPool many{2048, 128};
    for (size_t i = 0; i < LeavingFaults::kMostHeld + 3; ++i) {
      const PacketId id = many.allocate();
      many[id].length = 100;
      s.port->send(many, id);
    }
    s.port->settle();
    CHECK(s.port->counters().faults_dropped == 3);
    CHECK(s.port->counters().faults_delayed == LeavingFaults::kMostHeld);
  }
  SUBCASE("a bit flipped") {
    faults.add(1, {.kind = Kind::corrupt, .leaving = true}, 0);
    s.send();
    s.flush(0);
    REQUIRE(s.host.sent.size() == 1);
    s.port->settle();
    CHECK(s.port->counters().faults_changed == 1);
  }
  CHECK(s.pool.available() == s.pool.size());
}
