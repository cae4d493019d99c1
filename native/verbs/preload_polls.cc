// Threads of programs in virtual time that poll in vain: completion queues, or others by sched_yield(). A look at all that a
// program looks at in a round is one turn.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "engine/virtual_turns.h"
#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

// How often one queue is polled in vain in a turn: what else the program looks at meanwhile has been looked at then. Who shares
// memory may still have done something at first, which nobody sees.
constexpr uint32_t kRounds = 2;
constexpr uint32_t kRoundsOfSharers = 3;
// Who polls in vain looks again after a part of the time that it has waited for, and for more rounds each time: it may count its
// looks, or read a clock now and then. Who reads a clock each time may wait for a time that comes.
constexpr Time kShortestLook = 10 * kMicrosecond;
constexpr Time kLongestLook = 10 * kMillisecond;
constexpr Time kLookPart = 32;
constexpr uint32_t kMostDoublings = 9;
// The same for one that shares memory, where nobody knows what is written to it.
constexpr Time kShortestGuess = 1 * kMicrosecond;
constexpr Time kLongestGuess = 1 * kMillisecond;
// Turns for one cause after which others look for what it has written there.
constexpr uint32_t kMostEchoes = 2;
// Turns of a thread without time passing after which some does: programs may wait for one another to see it pass.
constexpr uint32_t kMostOfInstant = 1'000;
constexpr Time kInstant = 1 * kMicrosecond;

// Polls of further queues, none of those that are counted among them, after which it has looked at all.
constexpr uint32_t kMostOthers = 4'096;

struct Polled {
  const void* queue = nullptr;
  uint32_t times = 0;
};
struct Poller {
  Polled queues[16];
  uint32_t count = 0;
  uint32_t others = 0;  // polls of queues for which there is no place
  uint32_t given = 0;   // turns that the thread had given away by then
  bool at_nic = false;  // the program has not looked since its last turn
  bool reads = false;   // it has read a clock when it looked last
  uint32_t vain = 0;    // looks because of the time alone, since anything else
  Time since = 0;       // when it found something last
  Time guess = kShortestGuess;
  uint32_t echoes = 0;
  Time instant = 0;
  uint32_t turns = 0;  // at that time
};
thread_local Poller poller __attribute__((tls_model("initial-exec")));

// Whether the program has looked at everything since its last turn, as far as can be told.
bool has_looked(const void* queue) {
  Polled* const end = poller.queues + poller.count;
  Polled* const found = std::find_if(poller.queues, end, [&](const Polled& one) { return one.queue == queue; });
  if (found == std::end(poller.queues)) return ++poller.others >= kMostOthers;
  if (found == end) {
    *found = {queue, 0};
    ++poller.count;
  }
  poller.others = 0;
  return ++found->times >= (shares_memory() ? kRoundsOfSharers : kRounds) << std::min(poller.vain, kMostDoublings);
}

// Until when it waits at most.
Time patience(Time now) {
  if (shares_memory() && !knows_writes()) return now + poller.guess;
  const Time look = std::max((now - poller.since) / kLookPart, kShortestLook);
  return now + (poller.reads ? std::min(look, kLongestLook) : look);
}

// Returns whether the program is to look.
bool poll_in_vain(const void* queue, bool another = false) {
  const OwnWork work;
  if (poller.at_nic && another) return poller.at_nic = false, true;
  if (!poller.at_nic) {
    // Another wait has ended meanwhile, and the program goes on for that.
    if (std::exchange(poller.given, turns_given()) != turns_given()) poller.count = 0;
    if (!has_looked(queue)) return true;
    poller.count = 0;
    poller.reads = readings() > 0;
    if (shares_memory() && (knows_writes() ? has_written() : poller.echoes < kMostEchoes)) note_written();
  }
  const Time now = virtual_now();
  poller.turns = poller.instant == now ? poller.turns + 1 : 0;
  poller.instant = now;
  const bool waits = poller.turns >= kMostOfInstant;
  constexpr uint32_t kAny = TurnPlace::kNews | TurnPlace::kProcess | TurnPlace::kOthers;
  const Time until = waits ? now + kInstant : patience(now);
  const bool signaled = give_turn(waits ? 0 : kAny | (shares_memory() ? TurnPlace::kShared : 0u), until, true);
  poller.given = turns_given();
  poller.guess = virtual_now() < until ? kShortestGuess : std::min(2 * poller.guess, kLongestGuess);
  // Rounds of a program that computes take time, in which it would not see what comes.
  poller.vain = woken() == TurnPlace::kTime && !computes() ? poller.vain + 1 : 0;
  poller.echoes = woken() == TurnPlace::kShared ? poller.echoes + 1 : 0;
  poller.at_nic = !signaled && woken() != 0 && (woken() & ~(TurnPlace::kNews | TurnPlace::kBell)) == 0;
  return !poller.at_nic;
}

}  // namespace

extern "C" {

WEIR_EXPORT bool weir_turns_poll(const void* queue, bool another) {
  static const auto yield = next<int (*)()>("sched_yield");
  return in_virtual_time() ? poll_in_vain(queue, another) : (yield(), true);
}

WEIR_EXPORT void weir_turns_found() {
  poller.count = 0;
  poller.vain = 0;
  poller.at_nic = false;
  if (in_virtual_time()) poller.since = virtual_now();
}

WEIR_EXPORT void weir_turns_tell() { note_deed(TurnPlace::kOwn); }

WEIR_EXPORT void weir_turns_act() { let_pass(); }

WEIR_EXPORT void weir_turns_work(bool begins) {
  if (begins) {
    begin_own_work();
  } else {
    end_own_work();
  }
}

WEIR_EXPORT bool weir_turns_computes() { return computes(); }

WEIR_EXPORT void weir_turns_serve() { begin_to_serve(); }

WEIR_EXPORT Time weir_turns_now() {
  timespec now{};
  if (in_virtual_time()) return kVirtualBoot + time_of_network();
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return time_of(now);
}

// Who yields waits for others, as who polls a completion queue in vain does.
WEIR_EXPORT int sched_yield() {
  static const auto real = next<int (*)()>("sched_yield");
  if (!in_virtual_time()) return real();
  poll_in_vain(nullptr);
  poller.at_nic = false;
  return 0;
}

}  // extern "C"
