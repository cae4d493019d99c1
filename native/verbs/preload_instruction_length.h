// How long instructions of x86-64 are: who looks for one among bytes of a program has to know where instructions begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

// Bytes of the instruction of 64-bit mode that `code` begins with (Intel SDM volume 2, chapter 2 and appendix A); 0 where there
// is none, or not all of it.
size_t instruction_length(std::span<const uint8_t> code);

}  // namespace weir
