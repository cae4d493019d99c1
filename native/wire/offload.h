// Work on a frame that its sender left to the network interface: finishing the transport checksum, and cutting a
// super-frame (GSO: one header, up to 64 KiB of payload) into segments. On a packet socket this is told in a struct
// virtio_net_hdr in front of the frame (PACKET_VNET_HDR; virtio 1.2, section 5.1.6).
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir {

inline constexpr uint32_t kOffloadHeader = 10;         // struct virtio_net_hdr
inline constexpr uint32_t kMaxSuperFrame = 66 * 1024;  // the longest IP datagram, and room for the link header

enum class Gso : uint8_t {
  none,
  tcp4,        // TCP over IPv4
  tcp6,        // TCP over IPv6
  udp,         // equal UDP datagrams (UDP_SEGMENT), IPv4 or IPv6
  unsupported  // any other
};

struct Offload {
  uint16_t checksum_start = 0;   // offset from the start of the frame; the checksum covers all from there to the end of the frame
  uint16_t checksum_offset = 0;  // offset of the checksum field from there; it holds the sum of the pseudo header
  uint16_t segment_size = 0;     // payload bytes of every segment but the last
  uint16_t header_length = 0;    // length of a super-frame's header, repeated in each segment; set by check_offload()
  Gso gso = Gso::none;
  bool ecn = false;  // TCP: CWR is set, and means the first segment only (RFC 3168, section 6.1.2)
  bool needs_checksum = false;

  bool pending() const { return needs_checksum || gso != Gso::none; }
  // Length of the longest frame that `length` bytes become.
  uint32_t largest_segment(uint32_t length) const {
    return gso == Gso::none ? length : std::min<uint32_t>(length, uint32_t{header_length} + segment_size);
  }
};

// The kOffloadHeader bytes in front of a frame, as the kernel of this host lays them out.
Offload load_offload(const uint8_t* header);
void store_offload(uint8_t* header, const Offload& offload);

// Whether the frame is what `offload` says, so that segment() and complete_checksum() may be called; sets header_length.
// Total: any frame, any offload. False for a checksum field outside the frame, and for a super-frame that is not one TCP
// segment or UDP datagram of exactly the frame's length, has no payload or no partial checksum, or would become dust.
// IPv6 extension headers in front of checksum_start are not walked.
bool check_offload(const uint8_t* frame, uint32_t length, Offload& offload);

// Finding a checksum that its sender left unfinished where nobody tells: a frame of an ordinary socket that XDP received from a
// virtual interface has no struct virtio_net_hdr beside it.
//
// True, and `offload` asks for the checksum, if the checksum field of a TCP segment or UDP datagram holds the folded sum of its
// pseudo header, which is where Linux starts from (CHECKSUM_PARTIAL in skbuff.h). Total: any bytes, any length. For frames of a
// host's own stack; those that came over a real network are complete.
//
// Finishing such a frame (complete_checksum()) is right, whether or not it was unfinished. Let P be the sum of the pseudo header
// and D that of the segment without the field. A finished checksum is ~(P + D) by definition. Finishing sums up what the field
// holds and D, and writes ~(P + D): an unfinished field becomes right, and one that was right, and equal to P by chance (one
// frame in 65,536), stays as it is. Only one damaged frame in 65,536 could change: it would look whole.
//
// A UDP checksum of 0, which means none, is left alone; RoCEv2 frames end here after a handful of loads. Not looked into:
// fragments (Linux finishes checksums before it cuts), IPv6 extension headers, tunnels, SCTP.
bool infer_partial_checksum(const uint8_t* frame, uint32_t length, Offload& offload);

}  // namespace weir
