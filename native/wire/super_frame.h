// RoCEv2 packets of one path in one frame (a super-frame, virtio's GSO_UDP_L4): one Ethernet, IP and UDP header, and behind it
// BTH, payload and ICRC of each packet. The packets are of one length, of which the last may fall short.
//
// A super-frame says of its packets what their headers say alone, but for lengths and checksums, and IPv4 identifications, which
// count up: whoever cuts it (Linux, segmentation.h, or this) makes the packets of it that were joined, byte for byte. So each
// has an ICRC of its own that is right, over the identification and the lengths that it will have.
#pragma once

#include <cstdint>

#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/offload.h"
#include "wire/udp.h"

namespace weir {

// Ethernet header, two tags, IPv6 and UDP.
inline constexpr uint32_t kLongestSuperHeader = kEthernetHeader + 2 * kVlanTag + kIpv6Header + kUdpHeader;
// A packet has a BTH and an ICRC at least.
inline constexpr uint16_t kLeastRoceSegment = 16;

// Joins packets that are to leave one after the other.
class SuperFrameJoin {
 public:
  // Begins with a frame. False: nothing may follow it.
  bool begin(const uint8_t* frame, uint32_t length);
  // Whether the frame may come next; if so it is the next.
  bool add(const uint8_t* frame, uint32_t length);
  // Whether nothing may follow, for the last packet is shorter than those before.
  bool ended() const { return ended_; }
  // The last packet, of `length`, comes elsewhere. Allowed only where it has ended this.
  void take_back(uint32_t length);
  // Returns how many packets of `length` a datagram has room for.
  uint32_t room_for(uint32_t length) const;
  // Number of frames so far. Their headers, which are not repeated, have the length header_length().
  uint32_t packets() const { return packets_; }
  uint32_t header_length() const { return header_; }
  // Bytes of the first frame as an IP datagram.
  uint32_t datagram_bytes() const { return header_ - l3_ + segment_; }
  // Writes the headers of the whole, kLongestSuperHeader bytes at most, and says what the interface has to do.
  void finish(uint8_t* header, Offload& offload) const;

 private:
  const uint8_t* first_ = nullptr;
  uint32_t l3_ = 0;
  uint32_t header_ = 0;
  uint32_t segment_ = 0;  // bytes behind the headers
  uint32_t total_ = 0;    // the same of all packets
  uint32_t packets_ = 0;
  bool ended_ = false;  // the last was shorter
};

// Whether a frame that check_offload() accepted is RoCEv2's, and its packets may be.
bool is_roce_super_frame(const uint8_t* frame, const Offload& offload);

// Takes a super-frame apart in place: each packet's headers are written in front of it, over the end of the one before, which is
// void then. For frames that is_roce_super_frame(). The UDP checksum of packets is 0, as RoCEv2 senders have it.
class SuperFrameSlices {
 public:
  SuperFrameSlices(uint8_t* frame, uint32_t length, const Offload& offload);

  // The next packet; null when there is none. Its length is at `length`.
  const uint8_t* next(uint32_t& length);
  bool more() const { return left_ > 0; }
  // Identifications do not count up: the last packet has that of the one before, as have all that follow. So it is where a
  // receiving kernel joined packets whose sender gives all the same (GRO).
  void hold_identification();

 private:
  uint8_t* at_;
  uint32_t left_;  // bytes behind the headers
  uint32_t l3_;
  uint32_t header_;
  uint32_t segment_;
  uint16_t identification_ = 0;  // that of the next packet
  uint16_t step_ = 1;
  uint32_t ip_sum_ = 0;  // sum over the IPv4 header without length, identification and checksum
  uint8_t headers_[kLongestSuperHeader];
};

}  // namespace weir
