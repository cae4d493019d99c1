// The instructions of a program that read the time stamp counter, or make a system call of OpenMP, in whose place others are that
// fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

// Puts HLT, which faults in user mode everywhere, in the place of each RDTSC and RDTSCP of what is loaded, and of each SYSCALL of
// GCC's OpenMP, whose threads wait by them and not by functions of libc; and sees to it that what is loaded later is looked at
// before it begins. What is no instruction is left as it is: where instructions begin is known from the tables for unwinding, and
// code that is not in these stays.
void patch_code();

// What a fault at this place of the program is for.
enum class Fault : uint8_t { other, rdtsc, rdtscp, call, loaded };
Fault fault_at(const uint8_t* code);

// Something was loaded or unloaded.
void patch_loaded();

// Has calls of a function, also those of its own library, come to another one. Returns false, and changes nothing, where that
// function is too short.
bool redirect(void* function, const void* to);

// An instruction that faults in user mode, of one byte.
constexpr uint8_t kHalt = 0xf4;
// Lets code be written to, for good; returns whether it may be.
bool open_code(const uint8_t* place, size_t length);

}  // namespace weir
