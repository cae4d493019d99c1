// What a program's transports say to the library that gives programs turns in virtual time (verbs/preload_turns.h), where it is
// there: elsewhere these are null.
#pragma once

#include "base/types.h"

extern "C" {
// What the clock says, of which nobody waits for it to pass.
[[gnu::weak, gnu::visibility("default")]] weir::Time weir_turns_now();
// Somebody has polled that queue in vain. Gives the turn away, unless the program may still have others to look at; returns
// whether the program is to look now, or else its NIC alone has something. `another`: that had nothing, but another one that the
// process has opened may.
[[gnu::weak, gnu::visibility("default")]] bool weir_turns_poll(const void* queue, bool another);
// The polling thread has found something.
[[gnu::weak, gnu::visibility("default")]] void weir_turns_found();
// Something has come that the process's other threads may wait for.
[[gnu::weak, gnu::visibility("default")]] void weir_turns_tell();
// The program does now what others see.
[[gnu::weak, gnu::visibility("default")]] void weir_turns_act();
// Weir's own work begins, or ends, which is not the program's to pay.
[[gnu::weak, gnu::visibility("default")]] void weir_turns_work(bool begins);
// Whether what the program computes takes time.
[[gnu::weak, gnu::visibility("default")]] bool weir_turns_computes();
// This thread is of a library, and does nothing that others wait for but what it tells. It sleeps by one futex.
[[gnu::weak, gnu::visibility("default")]] void weir_turns_serve();
}

namespace weir {

// A call of a program that the provider answers. `acts`: others see what it does.
class AnsweredCall {
 public:
  explicit AnsweredCall(bool acts) {
    if (weir_turns_work == nullptr) [[likely]]
      return;
    if (acts) weir_turns_act();
    weir_turns_work(true);
  }
  ~AnsweredCall() {
    if (weir_turns_work != nullptr) [[unlikely]]
      weir_turns_work(false);
  }
  AnsweredCall(const AnsweredCall&) = delete;
  AnsweredCall& operator=(const AnsweredCall&) = delete;
};

}  // namespace weir
