// The time stamp counter of a program in virtual time, kVirtualTicks a second, and what else would tell runs apart: random
// numbers of the system. x86-64 only: elsewhere programs are refused before they begin.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/random.h"
#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_patches.h"
#include "verbs/preload_turns.h"

#if defined(__x86_64__)
// A function with nothing but an instruction that traps.
extern "C" {
void weir_turns_halt();
extern const uint8_t weir_turns_trap[];
}
asm(R"(
  .text
  .hidden weir_turns_halt, weir_turns_trap
  .globl weir_turns_halt, weir_turns_trap
  .type weir_turns_halt, @function
weir_turns_halt:
weir_turns_trap:
  hlt
  ret
  .size weir_turns_halt, . - weir_turns_halt
)");
#endif

namespace {

using namespace weir;

#if defined(__x86_64__)

// Handler that the program has for faults, in whose place ours is.
struct sigaction of_program;

uint64_t ticks(const void* from) {
  static_assert(kVirtualTicks % static_cast<uint64_t>(kSecond) == 0);
  return static_cast<uint64_t>(kVirtualBoot + read_clock(from)) * (kVirtualTicks / static_cast<uint64_t>(kSecond));
}

void hand_on(int signal, siginfo_t* info, void* context) {
  if ((of_program.sa_flags & SA_SIGINFO) != 0) return of_program.sa_sigaction(signal, info, context);
  if (of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN) return of_program.sa_handler(signal);
  // It faults again, and ends as it would have.
  static const auto real = next<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  real(signal, &plain, nullptr);
}

// Makes the system call that the program was about to make.
void make_call(greg_t (&registers)[NGREG]) {
  const int error = errno;
  const long made = ::syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
                              registers[REG_R8], registers[REG_R9]);
  registers[REG_RAX] = made == -1 ? -errno : made;
  registers[REG_RIP] += 2;
  errno = error;
}

// Whether the fault is one that was put there, or a reading of the counter; then the program goes on.
bool handle_own(void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (code == weir_turns_trap) return ++registers[REG_RIP], true;
  const Fault what = fault_at(code);
  if (what == Fault::call) return make_call(registers), true;
  const TrapWork work(false);
  if (pass_plant(context)) return true;
  if (what == Fault::other) return false;
  const int error = errno;
  if (what == Fault::loaded) {
    patch_loaded();
    // The function whose place that is returns.
    registers[REG_RIP] = *reinterpret_cast<const greg_t*>(registers[REG_RSP]);
    registers[REG_RSP] += sizeof(greg_t);
  } else {
    const uint64_t now = ticks(code);
    registers[REG_RAX] = static_cast<greg_t>(now & UINT32_MAX);
    registers[REG_RDX] = static_cast<greg_t>(now >> 32);
    if (what == Fault::rdtscp) registers[REG_RCX] = 0;
    registers[REG_RIP] += what == Fault::rdtsc ? 2 : 3;
  }
  errno = error;
  return true;
}

// What else faults is the program's.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (info->si_code != SI_KERNEL || !handle_own(context)) hand_on(signal, info, context);
}

[[gnu::constructor(102)]] void begin() {
  if (!in_virtual_time()) return;
  const OwnWork work;
  static const auto real = next<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  real(SIGSEGV, &ours, &of_program);
  patch_code();
  let_read_ticks(false);
  measure_traps(weir_turns_halt);
}

#else

[[gnu::constructor(102)]] void begin() {
  if (in_virtual_time()) refuse("a processor other than x86-64");
}

#endif

// The same numbers in each run, others in each program.
Random& random_numbers() {
  static Random numbers = [] {
    const char* const program = std::getenv(kProgramVariable);
    return Random(1 + (program == nullptr ? 0 : std::strtoul(program, nullptr, 10)));
  }();
  return numbers;
}

}  // namespace

namespace weir {

// The kernel leaves the counter as it is when a program becomes another, whose loader reads it before anybody can handle that.
void let_read_ticks(bool whether) {
#if defined(__x86_64__)
  if (in_virtual_time()) ::prctl(PR_SET_TSC, whether ? PR_TSC_ENABLE : PR_TSC_SIGSEGV, 0, 0, 0);
#else
  (void)whether;
#endif
}

}  // namespace weir

extern "C" {

#if defined(__x86_64__)
WEIR_EXPORT int sigaction(int signal, const struct sigaction* set, struct sigaction* before) {
  static const auto real = next<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
  if (signal != SIGSEGV || !in_virtual_time()) return real(signal, set, before);
  const struct sigaction was = of_program;
  if (set != nullptr) of_program = *set;
  if (before != nullptr) *before = was;
  return 0;
}
#endif

// The processor is as fast as its counter: programs that measure by it compare the two.
WEIR_EXPORT FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  if (!in_virtual_time() || std::strcmp(path, "/proc/cpuinfo") != 0) return real(path, mode);
  static char text[128];
  std::snprintf(text, sizeof text, "processor\t: 0\nmodel name\t: virtual time\ncpu MHz\t\t: %.3f\n\n",
                static_cast<double>(kVirtualTicks) / 1e6);
  return ::fmemopen(text, std::strlen(text), "r");
}
WEIR_EXPORT FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen64");
  return in_virtual_time() && std::strcmp(path, "/proc/cpuinfo") == 0 ? fopen(path, mode) : real(path, mode);
}

WEIR_EXPORT ssize_t getrandom(void* bytes, size_t length, unsigned flags) {
  static const auto real = next<ssize_t (*)(void*, size_t, unsigned)>("getrandom");
  if (!in_virtual_time()) return real(bytes, length, flags);
  for (size_t i = 0; i < length; ++i) static_cast<uint8_t*>(bytes)[i] = static_cast<uint8_t>(random_numbers().next());
  return static_cast<ssize_t>(length);
}

WEIR_EXPORT int getentropy(void* bytes, size_t length) { return getrandom(bytes, length, 0) < 0 ? -1 : 0; }

}  // extern "C"
