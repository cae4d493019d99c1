// Looks at threads of programs from outside, by their numbers in the namespace of their program: whether they live, and whether
// they get a processor.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <span>

namespace weir {

// Whether a process or thread of a program has not come to its end: one that nobody has waited for has. `first`: the program's
// first process, under whose root its namespace's /proc is. One that has none of its own is not asked.
bool lives(pid_t first, uint32_t number);

// A thread that is ready to run and is given no processor.
class Starvation {
 public:
  // Whether that has been so since the last look, at the same thread. Where the system does not tell, it has not.
  bool look(pid_t first, uint32_t number);

 private:
  uint64_t ran_ = 0;
  bool was_ready_ = false;
};

// Has all threads of programs, and the calling one, run on any of these processors; one that waits for a processor gets another
// one, if there is any. `firsts`: the programs' first processes; 0: none.
void spread(std::span<const pid_t> firsts, const cpu_set_t& processors);

}  // namespace weir
