#include "verbs/touch.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <mutex>

// One instruction that may fault, and what it does then: that is all that the handler knows of.
extern "C" {
int weir_touch(const void* at);
extern const char weir_touch_may_fault[];
extern const char weir_touch_failed[];
}

#if defined(__x86_64__)
asm(R"(
  .text
  .hidden weir_touch, weir_touch_may_fault, weir_touch_failed
  .globl weir_touch, weir_touch_may_fault, weir_touch_failed
  .type weir_touch, @function
weir_touch:
weir_touch_may_fault:
  movb (%rdi), %al
  movl $1, %eax
  ret
weir_touch_failed:
  xorl %eax, %eax
  ret
  .size weir_touch, . - weir_touch
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .hidden weir_touch, weir_touch_may_fault, weir_touch_failed
  .globl weir_touch, weir_touch_may_fault, weir_touch_failed
  .type weir_touch, %function
weir_touch:
weir_touch_may_fault:
  ldrb w0, [x0]
  mov w0, #1
  ret
weir_touch_failed:
  mov w0, #0
  ret
  .size weir_touch, . - weir_touch
)");
#else
#error "touching memory that may be gone is written for x86-64 and AArch64"
#endif

namespace weir {
namespace {

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
  if (instruction == reinterpret_cast<Word>(weir_touch_may_fault)) {
    instruction = reinterpret_cast<Word>(weir_touch_failed);
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

bool is_there(const uint8_t* first, uint64_t bytes) {
  return bytes == 0 || (weir_touch(first) != 0 && weir_touch(first + std::min<uint64_t>(bytes, kMostTouched) - 1) != 0);
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
