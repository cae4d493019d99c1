// One parse of a received frame into everything that decisions need. Total: any bytes of any length are safe.
#pragma once

#include <cstdint>
#include <span>

#include "wire/packet.h"

namespace weir {

// Reason why a frame, or its upper part, was not accepted. Captures give these names (src/device/capture/frames.ts).
enum class Refusal : uint8_t {
  none,
  runt,                   // shorter than an Ethernet header
  truncated_vlan,         // an 802.1Q tag without the rest of it
  truncated_cn_tag,       // a CN-TAG without the rest of it
  truncated_mac_control,  // MAC control without its opcode, or shorter than its opcode's parameters
  truncated_ip,           // shorter than the IP header or the length that it states
  bad_ip_header,          // wrong version, IHL below 5, or total length below the header's
  bad_ip_checksum,        // IPv4 header checksum
  ip_fragment,            // part of a fragmented IPv4 UDP datagram: RoCEv2 cannot be told from other UDP
  truncated_udp,          // IP payload shorter than a UDP header
  bad_udp_length,         // UDP length below 8 or above the IP payload; for RoCEv2, other than the IP payload
  truncated_bth,          // RoCEv2 shorter than BTH and ICRC; CNP without its 16 reserved bytes
  bad_transport_version,  // BTH TVer other than 0
  bad_transport_length,   // no room for the opcode's extension headers, the pad and the ICRC
  truncated_cnm,          // congestion notification message shorter than its 24 octets
  bad_cnm_version,        // its version other than 0
  bad_cnm_length,         // it encapsulates more than 64 octets, or than it has
  kCount
};

// Sets every field of `meta`. Bytes behind the IP datagram are Ethernet padding. A refusal leaves:
// - runt: nothing, meta is default.
// - truncated_vlan, truncated_cn_tag, truncated_ip, bad_ip_*, and all of a CNM: MACs, tags, ethertype, and flow_hash as for a
//   frame that is not IP; kind other.
// - truncated_mac_control: the same, kind mac_control (never to be forwarded).
// - all others: the IP fields as well (dscp, ecn, l3_offset), so that a switch can queue and mark the frame; kind other.
// One CN-TAG is looked through, where it belongs: behind the 802.1Q tag, or behind the MAC addresses.
// An IPv6 datagram with extension headers and an 802.1ad frame are kind other, not refused. MAC control within a tag of either
// kind is mac_control whatever its opcode: PAUSE and PFC frames are never tagged (IEEE 802.3 clause 31).
// A datagram to the port of CNMs that is none is kind other, not refused: anybody may use that port.
// Neither the UDP checksum nor the ICRC is looked at: see icrc_ok().
// flow_hash: 32 well mixed bits over addresses, protocol and ports (TCP, UDP, SCTP; without ports for fragments); for other
// frames over MACs and ethertype.
Refusal classify(const uint8_t* data, uint32_t length, PacketMeta& meta);

// The same for a frame whose 802.1Q tag was stripped on reception: offsets in `meta` are those in `data`, without the tag.
Refusal classify(const uint8_t* data, uint32_t length, PacketMeta& meta, uint16_t vlan_tci);

// The same for the next slice of a super-frame (wire/super_frame.h). `meta` is that of the slice before, with a BTH: up to there
// their headers are the same, but for what depends on their lengths.
Refusal classify_next_slice(const uint8_t* data, uint32_t length, PacketMeta& meta);

// `meta` is that of a RoCEv2 frame that differs in nothing before the BTH but its UDP source port, which is taken from `data`.
void take_source_port(const uint8_t* data, PacketMeta& meta);

// Flow of a frame of which there is the beginning only, from the ethertype behind its tags on, as a CNM has it.
struct SampledFlow {
  // unknown: the beginning is too short; roce: RoCEv2, whose flows are queue pairs'.
  enum class Kind : uint8_t { unknown, roce, other } kind = Kind::unknown;
  uint32_t hash = 0;  // others: the frame's flow_hash
};
// Total: any bytes, any length.
SampledFlow sampled_flow(std::span<const uint8_t> msdu, uint64_t destination_mac, uint64_t source_mac);

// flow_hash of RoCEv2 over IPv4. `addresses`: 8 bytes, source and destination as in the header.
uint32_t roce_flow_hash(const uint8_t* addresses, uint16_t source_port);

}  // namespace weir
