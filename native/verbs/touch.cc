#include "verbs/touch.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <mutex>

// Two leaves without a frame, of which each has one access that may fault, and the place where both go on then: the handler knows
// of nothing else. A touch to write writes back the byte that is there, in one step, for others may write there, too.
extern "C" {
int weir_touch(const void* at);
int weir_touch_to_write(const void* at);
extern const char weir_touch_failed[];
}

#if defined(__x86_64__)
asm(R"(
  .text
  .hidden weir_touch, weir_touch_to_write, weir_touch_failed
  .globl weir_touch, weir_touch_to_write, weir_touch_failed
  .type weir_touch, @function
weir_touch:
  movb (%rdi), %al
  movl $1, %eax
  ret
  .size weir_touch, . - weir_touch
  .type weir_touch_to_write, @function
weir_touch_to_write:
  lock orb $0, (%rdi)
  movl $1, %eax
  ret
  .size weir_touch_to_write, . - weir_touch_to_write
weir_touch_failed:
  xorl %eax, %eax
  ret
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .hidden weir_touch, weir_touch_to_write, weir_touch_failed
  .globl weir_touch, weir_touch_to_write, weir_touch_failed
  .type weir_touch, %function
weir_touch:
  ldrb w0, [x0]
  mov w0, #1
  ret
  .size weir_touch, . - weir_touch
  .type weir_touch_to_write, %function
weir_touch_to_write:
  ldxrb w1, [x0]
  stxrb w2, w1, [x0]
  cbnz w2, weir_touch_to_write
  mov w0, #1
  ret
  .size weir_touch_to_write, . - weir_touch_to_write
weir_touch_failed:
  mov w0, #0
  ret
)");
#else
#error "touching memory that may be gone is written for x86-64 and AArch64"
#endif

namespace weir {
namespace {

constexpr uintptr_t kPage = 4'096;  // pages are at least as large

struct sigaction before_segv;
struct sigaction before_bus;

auto& instruction_of(ucontext_t& at) {
#if defined(__x86_64__)
  return at.uc_mcontext.gregs[REG_RIP];
#else
  return at.uc_mcontext.pc;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto& instruction = instruction_of(*static_cast<ucontext_t*>(context));
  using Word = std::remove_reference_t<decltype(instruction)>;
  const auto failed = reinterpret_cast<Word>(weir_touch_failed);
  if (instruction >= reinterpret_cast<Word>(weir_touch) && instruction < failed) {
    instruction = failed;
    return;
  }
  const struct sigaction& before = signal == SIGSEGV ? before_segv : before_bus;
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  // It faults again, and ends as it would have; one that was sent by somebody is sent again.
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

bool is_there(const uint8_t* first, uint64_t bytes, bool to_write) {
  if (bytes == 0) return true;
  const auto touch = to_write ? weir_touch_to_write : weir_touch;
  const uint8_t* const last = first + std::min<uint64_t>(bytes, kMostTouched) - 1;
  const auto page = [](const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) / kPage; };
  return touch(first) != 0 && (page(first) == page(last) || touch(last) != 0);
}

void catch_touches() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGSEGV, &ours, &before_segv);
    ::sigaction(SIGBUS, &ours, &before_bus);
  });
}

}  // namespace weir
