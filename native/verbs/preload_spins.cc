// Threads that wait for memory to change, without a call that this library sees: they are found by their registers, which stay as
// they are, and wait then for another thread of the program to run. The clock that finds them is that of the thread's own
// processor time, so a busy machine finds none where there is none.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_patches.h"
#include "verbs/preload_turns.h"

namespace weir {
namespace {

constexpr int kSignal = SIGSTKFLT;   // which nobody else uses
constexpr long kSample = 1'000'000;  // ns of processor time; the kernel looks at its ticks
// So many samples alike are a wait if one was the same as another in all registers, and else so many: a loop that writes to
// memory counts, too. One is, of a wait that is known.
constexpr uint32_t kAlike = 3;
constexpr uint32_t kAlikeOfCounters = 500;
// What was taken for a wait, and was none, goes on by itself.
constexpr Time kShortestWait = 1 * kMillisecond;
constexpr Time kLongestWait = 1 * kSecond;
constexpr int64_t kLoop = 128;  // bytes of instructions

#if defined(__x86_64__)

// Registers that a loop which looks at memory leaves as they are. It loads into the others.
constexpr int kStill[] = {REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
                          REG_R15, REG_RDI, REG_RSI, REG_RBP, REG_RBX, REG_RSP};

constexpr int kLoaded[] = {REG_RAX, REG_RCX, REG_RDX};

struct Sample {
  // Who gave its turn away since, or has read a clock, does not wait here.
  uint32_t turns = 0;
  uint32_t readings = 0;
  int64_t instruction = 0;
  int64_t still[std::size(kStill)] = {};
  int64_t loaded[std::size(kLoaded)] = {};

  bool is_same(const Sample& other) const {
    return instruction == other.instruction && std::equal(std::begin(loaded), std::end(loaded), std::begin(other.loaded));
  }
  bool is_like(const Sample& other) const {
    const int64_t apart = instruction - other.instruction;
    return turns == other.turns && readings == other.readings && apart < kLoop && apart > -kLoop &&
           std::equal(std::begin(still), std::end(still), std::begin(other.still));
  }
};

struct Samples {
  static constexpr uint32_t kKept = 8;
  Sample last[kKept];  // each like the one before
  uint32_t alike = 0;
  bool repeats = false;  // one was the same as another
  Time wait = kShortestWait;
};
thread_local Samples samples __attribute__((tls_model("initial-exec")));

// Whether the signal came in a system call, which is done, or is made again after it: a long one has still registers, too, and
// may have locks of libc's about it.
bool in_system_call(const greg_t* registers) {
  constexpr greg_t kPage = 4096;
  const greg_t place = registers[REG_RIP] % kPage;
  const auto is_call = [](const uint8_t* code) { return code[0] == 0x0f && code[1] == 0x05; };
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  // What is not on the same page may not be there.
  return (place >= 2 && is_call(code - 2)) || (place <= kPage - 2 && is_call(code));
}

// Gives the turn away until something may have changed, or for a time that is the longer the more often nothing had. `idle`: this
// thread has done nothing but that since the last time.
void wait_for_change(Time& wait, bool idle) {
  const int error = errno;
  const Time until = virtual_now() + wait;
  give_turn(TurnPlace::kProcess | TurnPlace::kShared, until, idle);
  wait = virtual_now() < until ? kShortestWait : std::min(2 * wait, kLongestWait);
  errno = error;
}

// An instruction of a loop that was found to wait, in whose place one is that faults: the next time the wait is known at once.
// Who comes by goes on step by step, until it leaves the loop, or is there again: with the same registers it waits, as nobody
// else changes memory while it has the turn. All threads but that one wait, so nobody else looks at these.
struct Plant {
  uint8_t* code = nullptr;
  uint8_t byte = 0;
  uint32_t passed = 0;  // since anybody has waited there
};
constexpr uint32_t kMostPassed = 200;  // so many, and it is no loop that waits
constexpr uint32_t kMostSteps = 64;
Plant plants[16];

// This thread's way through a loop.
struct Round {
  const uint8_t* of = nullptr;  // the place of its plant
  uint32_t steps = 0;
  uint32_t turns = 0;
  uint32_t readings = 0;
  greg_t registers[REG_RSP + 1] = {};
  bool waited = false;
  Time wait = kShortestWait;

  void begin(const greg_t* now, bool again) {
    steps = 0;
    waited = again;
    turns = turns_given();
    readings = weir::readings();
    std::copy_n(now, std::size(registers), registers);
  }
  bool is_again(const greg_t* now) const {
    return turns == turns_given() && readings == weir::readings() && std::equal(std::begin(registers), std::end(registers), now);
  }
};
thread_local Round round_ __attribute__((tls_model("initial-exec")));

Plant* plant_at(const uint8_t* code) {
  const auto found = std::ranges::find(plants, code, &Plant::code);
  return code == nullptr || found == std::end(plants) ? nullptr : &*found;
}

// Not in this library, which has the turn's own waits. Returns whether it is new.
bool plant(uint8_t* code) {
  Dl_info theirs, ours;
  if (plant_at(code) != nullptr || *code == kHalt || ::dladdr(code, &theirs) == 0 || ::dladdr(plants, &ours) == 0) {
    return false;
  }
  const auto free = std::ranges::find(plants, nullptr, &Plant::code);
  if (free == std::end(plants) || theirs.dli_fbase == ours.dli_fbase || !open_code(code, 1)) return false;
  *free = {code, *code, 0};
  *code = kHalt;
  return true;
}

void take_out(Plant& plant) {
  *plant.code = plant.byte;
  plant = {};
}

constexpr greg_t kTrapFlag = 0x100;

// The clock that has this thread looked at.
thread_local timer_t clock_of_thread __attribute__((tls_model("initial-exec")));
thread_local bool has_clock __attribute__((tls_model("initial-exec"))) = false;

// The thread is where the plant is. Returns whether it goes on step by step.
bool passes(Plant& plant, const greg_t* registers) {
  const uint8_t* const code = plant.code;
  const bool again = round_.is_again(registers);
  if (again) {
    plant.passed = 0;
    *plant.code = kHalt;
    wait_for_change(round_.wait, round_.waited);
    // Others may have taken it out meanwhile.
    if (plant.code != code) return false;
  }
  if (++plant.passed > kMostPassed) return take_out(plant), false;
  *plant.code = plant.byte;
  round_.begin(registers, again);
  return true;
}

// An instruction of a round has run. Another trap is the program's own, and ends it.
void on_step(int signal, siginfo_t*, void* context) {
  const TrapWork work(true);
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (round_.of == nullptr) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  Plant* const plant = plant_at(round_.of);
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (plant != nullptr && code == plant->code && passes(*plant, registers)) return;
  const auto apart = code - round_.of;
  if (plant != nullptr && code != plant->code && apart < kLoop && apart > -kLoop && ++round_.steps < kMostSteps) return;
  registers[REG_EFL] &= ~kTrapFlag;
  if (Plant* const left = plant_at(std::exchange(round_.of, nullptr)); left != nullptr && code != left->code) *left->code = kHalt;
}

void look(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (turns_given() % 2 != 0 || is_own_work() || in_system_call(registers)) return;
  Sample now;
  now.turns = turns_given();
  now.readings = readings();
  now.instruction = registers[REG_RIP];
  std::ranges::transform(kStill, std::begin(now.still), [&](int which) { return registers[which]; });
  std::ranges::transform(kLoaded, std::begin(now.loaded), [&](int which) { return registers[which]; });
  auto& [last, alike, repeats, wait] = samples;
  constexpr uint32_t kKept = Samples::kKept;
  if (alike == 0 || !now.is_like(last[(alike - 1) % kKept])) samples = {}, note_look();
  repeats |= std::any_of(last, last + std::min(alike, kKept), [&](const Sample& one) { return now.is_same(one); });
  Sample& kept = last[alike++ % kKept];
  kept = now;
  if (alike < (repeats ? kAlike : kAlikeOfCounters)) return;
  forget_computing();
  if (repeats && plant(reinterpret_cast<uint8_t*>(registers[REG_RIP]))) return;
  wait_for_change(wait, true);
  kept.turns = turns_given();
  kept.readings = readings();
}

void begin_looking() {
  struct sigaction ours {};
  ours.sa_sigaction = look;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(kSignal, &ours, nullptr);
  ours.sa_sigaction = on_step;
  ::sigaction(SIGTRAP, &ours, nullptr);
}

// A signal that still waits would end the program that this one becomes.
void end_looking() {
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(kSignal, &ignored, nullptr);
}

#endif

}  // namespace

bool pass_plant(void* context) {
#if defined(__x86_64__)
  auto* const where = static_cast<ucontext_t*>(context);
  auto& registers = where->uc_mcontext.gregs;
  Plant* const plant = plant_at(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
  if (plant == nullptr) return false;
  // Who cannot be told of its steps goes by for good.
  if (::sigismember(&where->uc_sigmask, SIGTRAP) == 1) return take_out(*plant), true;
  // A way through another loop ends here.
  if (Plant* const before = plant_at(std::exchange(round_.of, nullptr))) *before->code = kHalt;
  round_.turns = turns_given() - 1;
  registers[REG_EFL] &= ~kTrapFlag;
  if (!passes(*plant, registers)) return true;
  round_.of = plant->code;
  registers[REG_EFL] |= kTrapFlag;
  return true;
#else
  (void)context;
  return false;
#endif
}

void pause_watch(bool whether) {
#if defined(__x86_64__)
  if (in_virtual_time()) whether ? end_looking() : begin_looking();
#else
  (void)whether;
#endif
}

void watch_spins() {
#if defined(__x86_64__)
  static const bool begun = (begin_looking(), true);
  static const auto make = next<int (*)(clockid_t, sigevent*, timer_t*)>("timer_create");
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event._sigev_un._tid = ::gettid();
  static const auto set = next<int (*)(timer_t, int, const itimerspec*, itimerspec*)>("timer_settime");
  if (!begun || make(CLOCK_THREAD_CPUTIME_ID, &event, &clock_of_thread) != 0) return;
  has_clock = true;
  const itimerspec each{{0, kSample}, {0, kSample}};
  set(clock_of_thread, 0, &each, nullptr);
#endif
}

void end_watch() {
#if defined(__x86_64__)
  static const auto remove = next<int (*)(timer_t)>("timer_delete");
  if (std::exchange(has_clock, false)) remove(clock_of_thread);
#endif
}

}  // namespace weir
