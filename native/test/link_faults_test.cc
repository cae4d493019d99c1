#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/native_error.h"
#include "engine/impairment_port.h"
#include "link/faults.h"
#include "test/rig/port.h"
#include "wire/classify.h"

using namespace weir;
using namespace weir::test;

namespace {

using Kind = FaultParameters::Kind;

// A packet of RoCEv2 over IPv4, as classify() has it.
struct Seen {
  PacketMeta meta;
  std::array<uint8_t, 64> frame{};

  explicit Seen(uint8_t opcode = 0x0a, uint32_t qp = 17) {
    meta.l3_offset = 14;
    meta.ip_version = 4;
    meta.ecn = 2;
    meta.bth_offset = 42;
    meta.opcode = opcode;
    meta.destination_qp = qp;
    meta.udp_source_port = 0xc001;
    const uint8_t addresses[] = {10, 0, 0, 1, 10, 0, 0, 2};
    std::memcpy(frame.data() + 14 + 12, addresses, sizeof addresses);
  }
  Impairment::Fate fate(Faults& faults, Time now = 0) const {
    Impairment::Fate fate;
    fate.at = now;
    faults.decide(frame.data(), frame.size(), meta, now, fate);
    return fate;
  }
};

IpAddress ipv4(uint8_t last) { return {4, {10, 0, 0, last}}; }

uint32_t lost_of(Faults& faults, uint32_t frames, const Seen& seen = Seen{}) {
  uint32_t lost = 0;
  for (uint32_t i = 0; i < frames; ++i) lost += seen.fate(faults).lost;
  return lost;
}

}  // namespace

TEST_CASE("faults: all of what matches, and nothing else") {
  Faults faults;
  SUBCASE("by opcode") {
    faults.add(1, {.kind = Kind::drop, .opcodes = {0x0a, 0x0b}}, 0);
    CHECK(Seen(0x0b).fate(faults).lost);
    CHECK_FALSE(Seen(0x11).fate(faults).lost);
  }
  SUBCASE("by queue pair") {
    faults.add(1, {.kind = Kind::drop, .destination_qp = 17}, 0);
    CHECK(Seen().fate(faults).lost);
    CHECK_FALSE(Seen(0x0a, 18).fate(faults).lost);
  }
  SUBCASE("by source port") {
    faults.add(1, {.kind = Kind::drop, .udp_source_port = uint16_t{0xc001}}, 0);
    CHECK(Seen().fate(faults).lost);
  }
  SUBCASE("by addresses") {
    faults.add(1, {.kind = Kind::drop, .source = ipv4(1), .destination = ipv4(2)}, 0);
    faults.add(2, {.kind = Kind::duplicate, .source = ipv4(2)}, 0);
    CHECK(Seen().fate(faults).lost);
    CHECK(faults.states()[1].matched == 0);
  }
  SUBCASE("a frame that is not RoCEv2 has no opcode and no queue pair") {
    faults.add(1, {.kind = Kind::drop, .opcodes = {0}}, 0);
    faults.add(2, {.kind = Kind::drop, .destination_qp = 0}, 0);
    Seen other(0, 0);
    other.meta.bth_offset = 0;
    CHECK_FALSE(other.fate(faults).lost);
  }
  SUBCASE("a frame that is not IP has no address") {
    faults.add(1, {.kind = Kind::drop, .source = IpAddress{4, {}}}, 0);
    Seen other;
    other.meta.l3_offset = 0;
    CHECK_FALSE(other.fate(faults).lost);
  }
}

TEST_CASE("faults: which of those that match") {
  Faults faults;
  SUBCASE("one of three") {
    faults.add(1, {.kind = Kind::drop, .every = 3}, 0);
    std::vector<bool> lost;
    for (int i = 0; i < 7; ++i) lost.push_back(Seen().fate(faults).lost);
    CHECK(lost == std::vector<bool>{false, false, true, false, false, true, false});
  }
  SUBCASE("the third, once") {
    faults.add(1, {.kind = Kind::drop, .every = 3, .count = 1}, 0);
    CHECK(lost_of(faults, 30) == 1);
    CHECK(faults.states()[0].over);
    CHECK_FALSE(faults.any());
  }
  SUBCASE("a share, the same with the same seed") {
    Faults same;
    Faults other;
    faults.add(1, {.kind = Kind::drop, .share = 0.25, .seed = 7}, 0);
    same.add(1, {.kind = Kind::drop, .share = 0.25, .seed = 7}, 0);
    other.add(1, {.kind = Kind::drop, .share = 0.25, .seed = 8}, 0);
    std::vector<bool> fates[3];
    for (int i = 0; i < 4000; ++i) {
      fates[0].push_back(Seen().fate(faults).lost);
      fates[1].push_back(Seen().fate(same).lost);
      fates[2].push_back(Seen().fate(other).lost);
    }
    CHECK(fates[0] == fates[1]);
    CHECK(fates[0] != fates[2]);
    // Six standard deviations of a binomial distribution.
    CHECK(std::abs(static_cast<double>(faults.states()[0].hits) - 1000) < 165);
  }
  SUBCASE("for a time") {
    faults.add(1, {.kind = Kind::drop, .lasts = 100}, 1000);
    CHECK(Seen().fate(faults, 1099).lost);
    CHECK_FALSE(Seen().fate(faults, 1100).lost);
    CHECK(faults.states()[0].over);
  }
  SUBCASE("from a time on") {
    faults.add(1, {.kind = Kind::drop, .after = 50, .lasts = 100}, 1000);
    CHECK_FALSE(Seen().fate(faults, 1049).lost);
    CHECK(Seen().fate(faults, 1050).lost);
    CHECK(Seen().fate(faults, 1149).lost);
    CHECK_FALSE(Seen().fate(faults, 1150).lost);
    CHECK(faults.states()[0].matched == 2);
  }
  SUBCASE("until it is ended, and its place goes to another when there are many") {
    faults.add(1, {.kind = Kind::drop}, 0);
    CHECK(faults.end(1));
    CHECK_FALSE(faults.end(1));
    CHECK_FALSE(faults.end(2));
    CHECK_FALSE(Seen().fate(faults).lost);
    for (uint32_t number = 2; number <= Faults::kMost; ++number) faults.add(number, {.kind = Kind::drop}, 0);
    CHECK(faults.states()[0].over);
    faults.add(Faults::kMost + 1, {.kind = Kind::drop}, 0);
    CHECK(faults.states().size() == Faults::kMost);
    CHECK(faults.states()[0].number == 2);
  }
}

TEST_CASE("faults: what each does") {
  Faults faults;
  faults.add(1, {.kind = Kind::delay, .delay = 500}, 0);
  faults.add(2, {.kind = Kind::duplicate}, 0);
  faults.add(3, {.kind = Kind::corrupt}, 0);
  faults.add(4, {.kind = Kind::mark}, 0);
  const Impairment::Fate fate = Seen().fate(faults, 100);
  CHECK(fate.at == 600);
  CHECK((fate.reordered && fate.duplicated && fate.corrupted && fate.marked));
  faults.add(5, {.kind = Kind::trim, .size = 128, .dscp = 40}, 0);
  faults.add(6, {.kind = Kind::error, .status = 4}, 0);
  // It is too short to be trimmed, and for nobody of note.
  Seen managing(0x64, 1);
  managing.meta.kind = FrameKind::roce;
  CHECK((!managing.fate(faults).trimmed && managing.fate(faults).failure == 0));
  Seen data;
  data.meta.kind = FrameKind::roce;
  Impairment::Fate longer;
  faults.decide(data.frame.data(), 1000, data.meta, 0, longer);
  CHECK((longer.trimmed && longer.size == 128 && longer.dscp == 40 && longer.failure == 4));
  CHECK((faults.states()[4].matched == 1 && faults.states()[5].matched == 1));
  // What may not be marked, or is, does not count.
  Seen unmarkable;
  unmarkable.meta.ecn = 0;
  CHECK_FALSE(unmarkable.fate(faults).marked);
  unmarkable.meta.ecn = 3;
  CHECK_FALSE(unmarkable.fate(faults).marked);
  CHECK(faults.states()[3].matched == 4);
}

TEST_CASE("faults: a pause is asked for, refreshed at half of its time, and taken back when it is over") {
  constexpr Rate kRate = 10'000'000'000;
  const Time half = pause_time(kMaxPauseQuanta, kRate) / 2;
  Faults faults;
  CHECK(faults.next_pause(0) == kNever);
  faults.add(1, {.kind = Kind::pause, .priorities = 0b1001, .rate = kRate, .after = 100, .lasts = half + 500}, 0);
  CHECK(faults.next_pause(0) == 100);
  Packet packet;
  CHECK_FALSE(faults.pause(99, packet));
  REQUIRE(faults.pause(100, packet));
  CHECK((packet.meta.kind == FrameKind::pfc && packet.pfc_enable == 0b1001 && packet.pfc_xoff == 0b1001));
  CHECK_FALSE(faults.pause(100, packet));
  CHECK(faults.next_pause(100) == 100 + half);
  REQUIRE(faults.pause(100 + half, packet));
  CHECK(packet.pfc_xoff == 0b1001);
  CHECK(faults.next_pause(100 + half) == 100 + half + 500);
  REQUIRE(faults.pause(100 + half + 500, packet));
  CHECK((packet.pfc_enable == 0b1001 && packet.pfc_xoff == 0));
  CHECK(faults.states()[0].hits == 2);
  CHECK(faults.states()[0].over);
  CHECK(faults.next_pause(100 + half + 500) == kNever);
  SUBCASE("one that is ended asks at once to go on") {
    faults.add(2, {.kind = Kind::pause, .priorities = 1 << 3, .rate = kRate}, 0);
    REQUIRE(faults.pause(0, packet));
    CHECK(faults.end(2));
    CHECK(faults.next_pause(5) == 5);
    REQUIRE(faults.pause(5, packet));
    CHECK(packet.pfc_xoff == 0);
    CHECK_FALSE(faults.pause(6, packet));
  }
  SUBCASE("one that is ended before it began asks for nothing") {
    faults.add(2, {.kind = Kind::pause, .priorities = 1 << 3, .rate = kRate, .after = 50}, 0);
    CHECK(faults.end(2));
    CHECK_FALSE(faults.pause(60, packet));
    CHECK(faults.next_pause(60) == kNever);
  }
}

TEST_CASE("faults: a link that is down, and one that flaps") {
  Faults faults;
  CHECK(faults.next_change(0) == kNever);
  faults.add(1, {.kind = Kind::down, .after = 100, .lasts = 1000}, -100);
  CHECK(faults.next_change(-50) == 0);
  CHECK(faults.next_change(0) == 1000);
  CHECK(faults.down(0));
  CHECK(Seen().fate(faults, 5).lost);
  CHECK_FALSE(faults.down(1000));
  CHECK_FALSE(Seen().fate(faults, 1001).lost);
  faults.add(2, {.kind = Kind::down, .up = 30, .period = 100}, 2000);
  std::vector<Time> downs;
  for (Time now = 2000; now < 2200; now += 10) {
    if (faults.down(now)) downs.push_back(now - 2000);
  }
  CHECK(faults.next_change(2200) == 2270);
  CHECK(downs == std::vector<Time>{0, 10, 20, 30, 40, 50, 60, 100, 110, 120, 130, 140, 150, 160});
  CHECK(faults.states()[1].hits == 2);
}

TEST_CASE("faults: parameters that make no sense are refused") {
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::delay}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::error}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::pause}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::error, .leaving = true, .status = 4}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::trim, .size = 127}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.share = 1.5}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.every = 0}, "fault"), NativeError);
  CHECK_THROWS_AS(check(FaultParameters{.kind = Kind::down, .up = 100, .period = 100}, "fault"), NativeError);
}

TEST_CASE("faults: a port that comes around one with frames lent gives them all back, in their order") {
  PortScript script;
  PortClock clock;
  for (uint8_t i = 0; i < 8; ++i) script.give(i, std::vector<uint8_t>(60, i));
  std::unique_ptr<PacketPort> inner = std::make_unique<ScriptedPort>(script);
  std::array<RxFrame, 3> before;
  REQUIRE(inner->receive(before) == 3);
  ImpairmentPort port(clock);
  port.come_around(std::move(inner), 3);
  std::array<RxFrame, 8> frames;
  REQUIRE(port.receive(std::span(frames).first(2)) == 2);
  CHECK(frames[0].data[0] == 3);
  port.faults().add(1, {.kind = Kind::drop, .every = 2}, 0);
  REQUIRE(port.receive(std::span(frames).subspan(2)) == 2);
  CHECK(frames[2].data[0] == 5);
  CHECK(frames[3].data[0] == 7);
  port.release(4);
  CHECK(script.released == 4);
  CHECK(frames[1].data[0] == 4);
  port.release(3);
  CHECK(script.released == 8);
  CHECK(port.losses().faults_dropped == 1);
}

TEST_CASE("faults: a port takes in pauses that nobody has sent, and counts them") {
  PortScript script;
  PortClock clock;
  ImpairmentPort port(clock);
  port.come_around(std::make_unique<ScriptedPort>(script), 0);
  CHECK(port.next_deadline() == kNever);
  clock.now = 1000;
  port.faults().add(1, {.kind = Kind::pause, .priorities = 1 << 3, .lasts = 10}, clock.now);
  CHECK(port.next_deadline() == 1000);
  std::array<RxFrame, 4> frames;
  REQUIRE(port.receive(frames) == 1);
  PacketMeta meta;
  CHECK(classify(frames[0].data, frames[0].length, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::pfc);
  CHECK(port.losses().faults_duplicated == 1);
  clock.now = 1010;
  CHECK(port.next_deadline() == 1010);
  CHECK(port.receive(frames) == 1);
  CHECK(port.next_deadline() == kNever);
  port.release(2);
  CHECK(script.released == 0);
}

TEST_CASE("faults: a port with a link that is down says so, and takes nothing in") {
  PortScript script;
  PortClock clock;
  ImpairmentPort port(clock);
  port.come_around(std::make_unique<ScriptedPort>(script), 0);
  CHECK(port.state() == PortState::up);
  port.faults().add(1, {.kind = Kind::down}, 0);
  CHECK(port.state() == PortState::down);
  script.give(0, std::vector<uint8_t>(60));
  std::array<RxFrame, 4> frames;
  CHECK(port.receive(frames) == 0);
  CHECK(script.released == 1);
  port.faults().end(1);
  CHECK(port.state() == PortState::up);
  script.give(0, std::vector<uint8_t>(60));
  CHECK(port.receive(frames) == 1);
}
