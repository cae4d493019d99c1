#include <doctest/doctest.h>

#include <cstdint>

#include "link/pfc.h"

using weir::kMaxPauseQuanta;
using weir::kNever;
using weir::pause_time;
using weir::PauseState;
using weir::PfcSender;
using weir::Rate;
using weir::Time;

namespace {

constexpr Rate k10G = 10'000'000'000;

uint8_t take(PfcSender& sender, Time now, uint8_t& xoff) { return sender.take(now, xoff); }

}  // namespace

TEST_CASE("pfc: a quantum is 512 bit times") {
  CHECK(pause_time(1, 1'000'000'000) == 512);
  CHECK(pause_time(kMaxPauseQuanta, 1'000'000'000) == 33'553'920);
  CHECK(pause_time(kMaxPauseQuanta, k10G) == 3'355'392);
  CHECK(pause_time(kMaxPauseQuanta, 40'000'000'000) == 838'848);
  CHECK(pause_time(kMaxPauseQuanta, 400'000'000'000) == 83'884);  // 83 884.8
  CHECK(pause_time(kMaxPauseQuanta, 1'000) == 33'553'920'000'000);
  CHECK(pause_time(0, k10G) == 0);
  CHECK(pause_time(100, 0) == 0);
}

TEST_CASE("pfc sender: stop, refresh when half its time has run, resume") {
  PfcSender sender;
  sender.configure(k10G);
  uint8_t xoff = 0xff;
  CHECK(sender.owed() == 0);
  CHECK(sender.next_deadline() == kNever);
  sender.stop(3, 0);
  CHECK(sender.owed() == 1 << 3);
  CHECK(sender.next_deadline() == kNever);  // not sent yet: nothing runs
  CHECK(take(sender, 1'000, xoff) == 1 << 3);
  CHECK(xoff == 1 << 3);
  CHECK(sender.owed() == 0);
  const Time half = pause_time(kMaxPauseQuanta, k10G) / 2;
  Time sent = 1'000;
  for (int i = 0; i < 3; ++i) {
    CHECK(sender.next_deadline() == sent + half);
    sender.advance(sent + half - 1);
    CHECK(sender.owed() == 0);
    sender.advance(sent + half);
    CHECK(sender.owed() == 1 << 3);
    CHECK(sender.next_deadline() == kNever);
    sent += half + 700;  // the link was busy for 700 ns
    CHECK(take(sender, sent, xoff) == 1 << 3);
    CHECK(xoff == 1 << 3);
  }
  sender.resume(3, 0);
  CHECK_FALSE(sender.stopped(3));
  CHECK(sender.owed() == 1 << 3);
  CHECK(sender.next_deadline() == kNever);
  CHECK(take(sender, sent + 1, xoff) == 1 << 3);
  CHECK(xoff == 0);
  sender.advance(sent + 100 * half);
  CHECK(sender.owed() == 0);
}

TEST_CASE("pfc sender: what is owed goes in one frame, and says how things stand when it leaves") {
  PfcSender sender;
  sender.configure(k10G);
  uint8_t xoff = 0;
  sender.stop(1, 0);
  sender.stop(4, 0);
  sender.stop(6, 0);
  sender.resume(4, 0);  // never told: the frame says XON
  CHECK(sender.stopped_mask() == ((1 << 1) | (1 << 6)));
  CHECK(take(sender, 0, xoff) == ((1 << 1) | (1 << 4) | (1 << 6)));
  CHECK(xoff == ((1 << 1) | (1 << 6)));
  // Priorities stopped at different times are refreshed at their own.
  sender.stop(2, 0);
  CHECK(take(sender, 1'000, xoff) == 1 << 2);
  const Time half = pause_time(kMaxPauseQuanta, k10G) / 2;
  sender.advance(half);
  CHECK(sender.owed() == ((1 << 1) | (1 << 6)));
  CHECK(sender.next_deadline() == half + 1'000);
  sender.resume(1, 0);
  CHECK(take(sender, half, xoff) == ((1 << 1) | (1 << 6)));
  CHECK(xoff == 1 << 6);
}

TEST_CASE("pfc sender: on a link without a rate refreshes are spaced, not endless") {
  PfcSender sender;
  sender.configure(0);
  uint8_t xoff = 0;
  sender.stop(3, 0);
  take(sender, 5, xoff);
  CHECK(sender.next_deadline() > 5 + 10'000);
  CHECK(sender.next_deadline() <= 5 + pause_time(kMaxPauseQuanta, weir::kFastestLink) / 2);
}

TEST_CASE("pause state: expiry, XON and the time spent paused") {
  PauseState state;
  CHECK(state.next_resume(0xff) == kNever);
  state.apply(3, 100, 1'000, k10G);  // 5120 ns
  CHECK(state.paused_mask() == 1 << 3);
  CHECK(state.next_resume(0xff) == 6'120);
  CHECK(state.next_resume(0xff & ~(1 << 3)) == kNever);
  CHECK(state.paused_for(3, 1'000) == 0);
  CHECK(state.paused_for(3, 4'000) == 3'000);
  CHECK(state.paused_for(3, 9'000) == 5'120);  // over, though nobody has looked
  state.advance(6'119);
  CHECK(state.paused_mask() == 1 << 3);
  state.advance(6'120);
  CHECK(state.paused_mask() == 0);
  CHECK(state.paused_for(3, 50'000) == 5'120);

  state.apply(3, 1'000, 100'000, k10G);
  state.apply(3, 0, 101'000, k10G);
  CHECK(state.paused_mask() == 0);
  CHECK(state.paused_for(3, 200'000) == 6'120);
  state.apply(3, 0, 102'000, k10G);  // XON to who is not paused
  CHECK(state.paused_for(3, 200'000) == 6'120);
}

TEST_CASE("pause state: a later frame replaces the time, longer or shorter; overlaps count once") {
  PauseState state;
  state.apply(0, 10, 0, 1'000'000'000);  // to 5120
  state.apply(0, 10, 2'000, 1'000'000'000);
  CHECK(state.next_resume(1) == 7'120);
  CHECK(state.paused_for(0, 7'000) == 7'000);
  state.apply(0, 1, 3'000, 1'000'000'000);
  CHECK(state.next_resume(1) == 3'512);
  state.advance(10'000);
  CHECK(state.paused_for(0, 10'000) == 3'512);
  // One that comes after the last ran out unnoticed starts a new pause.
  state.apply(0, 1, 20'000, 1'000'000'000);
  state.apply(0, 1, 30'000, 1'000'000'000);
  CHECK(state.paused_for(0, 40'000) == 3'512 + 2 * 512);
}

TEST_CASE("pause state: priorities are independent") {
  PauseState state;
  state.apply(1, 10, 0, 1'000'000'000);
  state.apply(5, 20, 0, 1'000'000'000);
  CHECK(state.next_resume(0xff) == 5'120);
  CHECK(state.next_resume(1 << 5) == 10'240);
  state.advance(5'120);
  CHECK(state.paused_mask() == 1 << 5);
}

TEST_CASE("pfc: how long a priority was stopped, and how many pauses have ended") {
  PfcSender sender;
  sender.configure(k10G);
  CHECK(sender.stopped_for(3, 5'000) == 0);
  sender.stop(3, 5'000);
  sender.stop(3, 6'000);  // already
  CHECK(sender.stopped_for(3, 7'000) == 2'000);
  sender.resume(3, 8'000);
  CHECK(sender.stopped_for(3, 20'000) == 3'000);
  sender.stop(3, 20'000);
  CHECK(sender.stopped_for(3, 20'500) == 3'500);
  CHECK(sender.stopped_for(4, 20'500) == 0);

  PauseState state;
  state.apply(3, 100, 1'000, k10G);  // for 5120 ns
  state.apply(3, 100, 2'000, k10G);  // goes on
  CHECK(state.ended(3) == 0);
  state.apply(3, 0, 3'000, k10G);
  CHECK(state.ended(3) == 1);
  state.apply(3, 0, 4'000, k10G);  // was not paused
  state.apply(3, 100, 10'000, k10G);
  state.advance(20'000);  // ran out
  CHECK(state.ended(3) == 2);
}

TEST_CASE("pfc sender: PAUSE frames say XOFF while any priority is to be stopped, and XON once none is") {
  PfcSender sender;
  sender.configure(k10G, true, 1'000);
  weir::Packet packet;
  sender.stop(3, 0);
  sender.make(0, 0x025745000001, packet);
  CHECK(packet.meta.kind == weir::FrameKind::pause);
  CHECK(weir::pause_quanta(packet) == 1'000);
  sender.stop(5, 10);
  sender.resume(3, 20);
  sender.make(20, 0x025745000001, packet);
  CHECK(weir::pause_quanta(packet) == 1'000);
  CHECK(sender.next_deadline() == 20 + pause_time(1'000, k10G) / 2);
  sender.resume(5, 30);
  sender.make(30, 0x025745000001, packet);
  CHECK(weir::pause_quanta(packet) == 0);
  CHECK(sender.owed() == 0);
  CHECK(sender.next_deadline() == kNever);
}
