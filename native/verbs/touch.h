// Memory that a program has registered and then given back to the system, or protected: a NIC would have kept its pages as they
// were. Here who touches them must live to tell, for it is a thread that the program knows nothing of.
#pragma once

#include <cstdint>

namespace weir {

// At most so many bytes of memory are looked at, which is what one packet has of it.
inline constexpr uint32_t kMostTouched = 4'096;

// Whether memory is there, and may be written to where somebody is about to.
bool is_there(const uint8_t* first, uint64_t bytes, bool to_write);
// Must be called before anybody asks: faults of is_there() are its answer, and all others are whoever's they were before.
void catch_touches();

}  // namespace weir
