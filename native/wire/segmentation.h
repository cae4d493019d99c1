// Does in software the work of an interface with offloads: cutting super-frames (TSO, UDP_SEGMENT) and finishing checksums.
#pragma once

#include <cstdint>

#include "wire/offload.h"

namespace weir {

// Returns where the payload behind any 802.1Q and 802.1ad tags and a CN-TAG begins; `length` at most.
uint32_t network_offset(const uint8_t* frame, uint32_t length);

// The rest is for frames that check_offload() accepted.

inline uint32_t segment_count(uint32_t length, const Offload& offload) {
  return (length - offload.header_length + offload.segment_size - 1) / offload.segment_size;
}
// Writes segment `index` of a super-frame to `out`, whole and with all checksums; returns its length, at most
// offload.largest_segment(length). As in Linux: IPv4 identifications count up; FIN and PSH are left to the last segment of a
// TCP super-frame, CWR to the first.
uint32_t write_segment(const uint8_t* frame, uint32_t length, const Offload& offload, uint32_t index, uint8_t* out);

// Finishes the checksum of a frame that is not a super-frame. False, and nothing done, for SCTP, whose CRC32c this is not.
bool complete_checksum(uint8_t* frame, uint32_t length, const Offload& offload);

}  // namespace weir
