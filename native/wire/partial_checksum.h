// Finding a checksum that its sender left unfinished where nobody tells (offload.h): a frame of an ordinary socket that XDP
// received from a virtual interface has no struct virtio_net_hdr beside it.
#pragma once

#include <cstdint>

#include "wire/offload.h"

namespace weir {

// True, and `offload` asks for the checksum, if the checksum field of a TCP segment or UDP datagram holds the folded sum of its
// pseudo header, which is where Linux starts from (CHECKSUM_PARTIAL in skbuff.h). Total: any bytes, any length. For frames of a
// host's own stack; what came over a real network is complete.
//
// Finishing such a frame (complete_checksum()) is right, whether or not it was unfinished. Let P be the sum of the pseudo header
// and D that of the segment without the field. A finished checksum is ~(P + D) by definition. Finishing sums up what the field
// holds and D, and writes ~(P + D): an unfinished field becomes right, and one that was right, and equal to P by chance (one
// frame in 65,536), stays as it is. What could change is one damaged frame in 65,536 of those damaged: it would look whole.
//
// A UDP checksum of 0, which means none, is left alone; RoCEv2 frames end here after a handful of loads. Not looked into:
// fragments (Linux finishes checksums before it cuts), IPv6 extension headers, tunnels, SCTP.
bool infer_partial_checksum(const uint8_t* frame, uint32_t length, Offload& offload);

}  // namespace weir
