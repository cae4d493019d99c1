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

// Gives the turn away until something may have changed, or for a time that is the longer the more often nothing had.
void wait_for_change(Time& wait) {
  const int error = errno;
  const Time until = virtual_now() + wait;
  give_turn(TurnPlace::kProcess | TurnPlace::kShared, until, true);
  wait = virtual_now() < until ? kShortestWait : std::min(2 * wait, kLongestWait);
  errno = error;
}

// An instruction of a loop that was found to wait, in whose place one is that faults: the next time the wait is known at once. A
// thread that comes by twice with the same registers waits, as nothing changes memory while it has the turn. All threads but the
// one that has the turn wait, so nobody else looks at these.
struct Plant {
  uint8_t* code = nullptr;
  uint8_t byte = 0;
  uint32_t passed = 0;  // since anybody has waited there
};
constexpr uint32_t kMostPassed = 200;  // so many, and it is no loop that waits
Plant plants[16];

struct Arrival {
  const uint8_t* at = nullptr;
  uint32_t turns = 0;
  uint32_t readings = 0;
  greg_t registers[REG_RSP + 1] = {};
  Time wait = kShortestWait;
  const uint8_t* stepping = nullptr;  // the place of a plant whose own instruction runs now
};
thread_local Arrival arrival __attribute__((tls_model("initial-exec")));

Plant* plant_at(const uint8_t* code) {
  const auto found = std::ranges::find(plants, code, &Plant::code);
  return code == nullptr || found == std::end(plants) ? nullptr : &*found;
}

// Not in this library, which has the turn's own waits.
void plant(uint8_t* code) {
  Dl_info theirs, ours;
  if (plant_at(code) != nullptr || *code == kHalt || ::dladdr(code, &theirs) == 0 || ::dladdr(plants, &ours) == 0) return;
  const auto free = std::ranges::find(plants, nullptr, &Plant::code);
  if (free == std::end(plants) || theirs.dli_fbase == ours.dli_fbase || !open_code(code, 1)) return;
  *free = {code, *code, 0};
  *code = kHalt;
}

void take_out(Plant& plant) {
  *plant.code = plant.byte;
  plant = {};
}

constexpr greg_t kTrapFlag = 0x100;

// The instruction of a plant has run. Another trap is the program's own, and ends it.
void on_step(int signal, siginfo_t*, void* context) {
  const uint8_t* const code = std::exchange(arrival.stepping, nullptr);
  if (code == nullptr) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_EFL] &= ~kTrapFlag;
  if (Plant* const plant = plant_at(code)) *plant->code = kHalt;
}

void look(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (turns_given() % 2 != 0 || in_system_call(registers)) return;
  Sample now;
  now.turns = turns_given();
  now.readings = readings();
  now.instruction = registers[REG_RIP];
  std::ranges::transform(kStill, std::begin(now.still), [&](int which) { return registers[which]; });
  std::ranges::transform(kLoaded, std::begin(now.loaded), [&](int which) { return registers[which]; });
  auto& [last, alike, repeats, wait] = samples;
  constexpr uint32_t kKept = Samples::kKept;
  if (alike == 0 || !now.is_like(last[(alike - 1) % kKept])) samples = {};
  repeats |= std::any_of(last, last + std::min(alike, kKept), [&](const Sample& one) { return now.is_same(one); });
  Sample& kept = last[alike++ % kKept];
  kept = now;
  if (alike < (repeats ? kAlike : kAlikeOfCounters)) return;
  wait_for_change(wait);
  kept.turns = turns_given();
  kept.readings = readings();
  if (repeats) plant(reinterpret_cast<uint8_t*>(registers[REG_RIP]));
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
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  Plant* plant = plant_at(code);
  if (plant == nullptr) return false;
  const bool same = arrival.at == code && arrival.turns == turns_given() && arrival.readings == readings() &&
                    std::equal(std::begin(arrival.registers), std::end(arrival.registers), registers);
  if (same) {
    plant->passed = 0;
    wait_for_change(arrival.wait);
    // Others may have taken it out meanwhile.
    plant = plant_at(code);
    if (plant == nullptr) return true;
  }
  // Who cannot be told that its instruction has run goes by for good.
  if (++plant->passed > kMostPassed || ::sigismember(&where->uc_sigmask, SIGTRAP) == 1) {
    take_out(*plant);
    return true;
  }
  arrival.at = code;
  arrival.turns = turns_given();
  arrival.readings = readings();
  std::copy_n(registers, std::size(arrival.registers), arrival.registers);
  *plant->code = plant->byte;
  arrival.stepping = code;
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
  timer_t timer;
  if (!begun || make(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
  const itimerspec each{{0, kSample}, {0, kSample}};
  set(timer, 0, &each, nullptr);
#endif
}

}  // namespace weir
