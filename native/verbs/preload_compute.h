// What threads of a program in virtual time compute, where that takes time (TurnMemory::compute): the processor time that a
// thread has used itself, by the kernel's account of it, times a factor. It is that far ahead of virtual time until it passes.
#pragma once

#include "base/types.h"

namespace weir {

// The time that it takes, for each ns of the processor's; 0: none, and all that follows does nothing.
extern double compute_factor;
inline bool computes() { return compute_factor > 0; }
void begin_to_measure(double factor);

// What this thread has computed since its turn began, virtual ns: it passes before anybody sees what the thread does next.
Time ahead();
// What it has ever computed, and all threads of the process, virtual ns.
Time computed_by_thread();
Time computed_by_process();
// Its turn begins.
void begin_computing();
// The process is a child, which has computed nothing.
void forget_computed();
// What it has used since the last account was a wait.
void forget_computing();
// It has been looked at, and computes; or may wait since the last look at which it did.
void note_look();
// Finds out what a trap takes besides its handler, which is not the program's to pay. `trap` makes one.
void measure_traps(void (*trap)());

// From here on this library works, or Weir's provider, which takes no time; such work may be within other.
void begin_own_work();
void end_own_work();
bool is_own_work();

class OwnWork {
 public:
  OwnWork() { begin_own_work(); }
  ~OwnWork() { end_own_work(); }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
};

// The same of a trap's handler.
class TrapWork {
 public:
  // `steps`: what was before has run step by step, and may be a wait.
  explicit TrapWork(bool steps);
  ~TrapWork();
  TrapWork(const TrapWork&) = delete;
  TrapWork& operator=(const TrapWork&) = delete;
};

// While there is one, the program computes, within work of this library: it handles a signal.
class ProgramsWork {
 public:
  ProgramsWork();
  ~ProgramsWork();
  ProgramsWork(const ProgramsWork&) = delete;
  ProgramsWork& operator=(const ProgramsWork&) = delete;

 private:
  unsigned depth_;
};

}  // namespace weir
