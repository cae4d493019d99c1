// QCN on the wire: the congestion notification message (CNM) and the CN-TAG (IEEE 802.1Q clause 33, formerly IEEE 802.1Qau).
//
// A frame of a congestion controlled flow may have a CN-TAG, which names the flow to its sender and to nobody else. It stands
// behind the MAC addresses and the 802.1Q tag, and in front of the ethertype of what the frame carries:
//   0  ethertype 22-E9      2  flow identifier (16 bits)
//
// A CNM goes from a congestion point back to the source of a frame that it sampled. It has the MAC addresses, the 802.1Q tag if
// any, the CN-TAG of the sampled frame if that had one, the ethertype 22-E7, and the PDU, all of it big endian:
//   0  version (4 bits, 0), reserved (6 bits, 0), quantized feedback (6 bits)
//   2  congestion point identifier, CPID (8 octets)
//  10  cnmQOffset   (2, signed, in units of 64 octets): the queue less its set point
//  12  cnmQDelta    (2, signed, in units of 64 octets): the queue less what it was at the sample before
//  14  encapsulated priority (2): that of the sampled frame in the top 3 bits, the others 0
//  16  encapsulated destination MAC address (6): that of the sampled frame
//  22  encapsulated MSDU length (2): 0..64
//  24  encapsulated MSDU: so many octets of the sampled frame, from the ethertype behind its tags on
// Octets behind that are Ethernet padding. So a PDU has 24 to 88 octets.
//
// Beyond routers a CNM goes as a datagram (the standard has none; Liss and the DCQCN paper say why QCN ends at a router without
// one): IPv4 or IPv6 from an address of the congestion point's router to the source of the sampled frame, which its encapsulated
// MSDU has, with its own time to live and the DSCP of CNMs; behind that UDP, and the PDU as above:
//   0  source port 1021     2  destination port 1021 (exp1, for experiments: RFC 4727, 6)
//   4  length: 8 and that of the PDU      6  checksum, which is never left out
//   8  the PDU: version, feedback, CPID, cnmQOffset, cnmQDelta, encapsulated priority, destination MAC address, length, MSDU
// It has no CN-TAG, which ends at the first router, and its destination MAC address is of the link where the frame was sampled,
// and says nothing elsewhere: the flow is that of the MSDU, which has its BTH at least, or its ports.
//
// Sources, as the standard is not free to copy: the table of the PDU in HPE's configuration guides of the FlexFabric 5700, 5930
// and 5940 ("CNM format": all sizes, version and reserved bits 0, PDU of 24 to 88 octets, ethertype 22-E7, the sampled frame's
// tag and CN-TAG copied); the bit order of the open test bench PktLib (cnm_hdr_class); the IEEE registry of ethertypes (22-E7,
// 22-E9). That both quantities are signed and count 64 octets is 802.1Q's own and in none of those. A number that is no
// multiple of 64 octets is rounded towards 0, and one that is out of range becomes the nearest number in range.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "wire/bth.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/packet_pool.h"
#include "wire/udp.h"

namespace weir {

inline constexpr uint32_t kCnmPdu = 24;  // without the encapsulated MSDU
inline constexpr uint32_t kCnmMaxMsdu = 64;
inline constexpr int64_t kCnmUnit = 64;  // octets, of cnmQOffset and cnmQDelta
inline constexpr uint8_t kCnmMaxQuantizedFeedback = 63;
// The longest CNM, with both tags: it fits a simulation's packet.
inline constexpr uint32_t kCnmMaxLength = kEthernetHeader + kVlanTag + kCnTag + kCnmPdu + kCnmMaxMsdu;
static_assert(kCnmMaxLength <= kHeaderStride);

inline constexpr uint16_t kCnmUdpPort = 1021;
// The longest in a datagram: it fits a simulation's packet with telemetry.
inline constexpr uint32_t kCnmDatagramMaxLength = kEthernetHeader + kVlanTag + kIpv6Header + kUdpHeader + kCnmPdu + kCnmMaxMsdu;
static_assert(kCnmDatagramMaxLength <= kTelemetryStride);

struct CongestionNotification {
  uint8_t quantized_feedback = 0;      // 0..63; congestion points do not send 0, which asks for nothing
  uint8_t priority = 0;                // 0..7, of the sampled frame
  uint64_t congestion_point = 0;       // CPID
  int64_t queue_offset = 0;            // octets; parsed: a multiple of 64
  int64_t queue_delta = 0;             // the same
  uint64_t destination_mac = 0;        // the sampled frame's
  std::span<const uint8_t> msdu = {};  // beginning of the sampled frame; parsed: points into the CNM
};

// The PDU, behind the ethertype. Total: any bytes of any length. Reserved bits are ignored. `cnm` is set with Refusal::none only.
Refusal parse_cnm_pdu(const uint8_t* pdu, uint32_t length, CongestionNotification& cnm);

// A whole frame, with or without 802.1Q tag and CN-TAG in its bytes. False if it is no CNM of layer 2, or one with an error:
// never for a frame of kind cnm that is no IP packet. Total.
bool parse_cnm(const uint8_t* frame, uint32_t length, CongestionNotification& cnm);

// Writes a CNM without FCS, padded with zero to kMinimumFrame, to `out`, which has room for kCnmMaxLength bytes; returns its
// length. `header`: from the congestion point to the source of the sampled frame. A value that does not fit its field becomes the
// nearest that does: the feedback to 63, the MSDU to 64 octets.
uint32_t build_cnm(uint8_t* out, const LinkHeader& header, const CongestionNotification& cnm);

// Whether UDP of `length` bytes at `udp` is a CNM. Total.
bool is_cnm_datagram(const uint8_t* udp, uint32_t length);
// The same of a whole frame that has been classified, whatever its PDU is.
bool is_to_cnm_port(const uint8_t* frame, const PacketMeta& meta);
// Parses a frame that is_to_cnm_port(). A checksum that is there and wrong is a bad length.
Refusal parse_cnm_datagram(const uint8_t* frame, const PacketMeta& meta, CongestionNotification& cnm);
// Returns the source address of the frame whose beginning a CNM encapsulates; nothing: that is no IP packet, or too short.
std::optional<IpAddress> sampled_source(std::span<const uint8_t> msdu);
// Octets of an IP packet, from its ethertype on, that a CNM has to encapsulate for its flow to be known: up to a BTH.
inline constexpr uint32_t known_by(uint8_t ip_version) {
  return 2 + (ip_version == 6 ? kIpv6Header : kIpv4Header) + kUdpHeader + kBthHeader;
}

// The rest is for classified packets whose 802.1Q tag is in their bytes, as it is in all that devices hold.

// Returns the part of a sampled frame that a CNM encapsulates: from the ethertype behind its tags on, at most `most` octets,
// fewer where there are fewer bytes (PacketPool::present).
std::span<const uint8_t> msdu_of(const PacketPool& pool, PacketId id, uint32_t most);

// Makes a frame that build_cnm() has written, of a sampled IP packet, a datagram from `own` to the packet's source, without tags.
// Its MAC addresses are for whoever sends it. False, and nothing done, if the packet's IP version is not that of `own`, or there
// is no room.
bool wrap_cnm(PacketPool& pool, PacketId id, const IpAddress& own, uint8_t dscp, uint8_t ttl);

// Length, meta and offload agree with the bytes afterwards. In simulation only the headers move.
// False, and nothing done, if the packet has a CN-TAG, or no room for one.
bool insert_cn_tag(PacketPool& pool, PacketId id, uint16_t flow);
// Nothing is done if the packet has none.
void remove_cn_tag(PacketPool& pool, PacketId id);

}  // namespace weir
