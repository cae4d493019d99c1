// The packet descriptor: what is known of a frame, and where it is. packet_memory.h has the memory of descriptors and bytes,
// packet_pool.h hands them out.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "wire/offload.h"

namespace weir {

enum class FrameKind : uint8_t {
  other,        // any Ethernet frame we do not look into: ARP, LLDP, IPv4/IPv6 that is not RoCEv2, ...
  roce,         // RoCEv2 (UDP 4791) with a whole BTH, not a CNP
  cnp,          // RoCEv2 congestion notification packet, opcode 0x81 (IBTA annex A17.9.3)
  pause,        // MAC control PAUSE, opcode 0x0001 (IEEE 802.3 annex 31B)
  pfc,          // MAC control PFC, opcode 0x0101 (IEEE 802.3 annex 31D)
  mac_control,  // MAC control with an opcode that we do not know
  cnm           // QCN congestion notification message (IEEE 802.1Q clause 33) of layer 2, or in a datagram (wire/qcn.h)
};

// Everything a decision needs to know of a frame, filled by one classify() when it arrives.
struct PacketMeta {
  uint64_t destination_mac = 0;  // low 48 bits, first octet on the wire most significant
  uint64_t source_mac = 0;
  uint32_t flow_hash = 0;  // hash over addresses, protocol and ports: for next-hop groups
  uint16_t ethertype = 0;  // behind any 802.1Q tag and any CN-TAG
  uint16_t vlan_tci = 0;   // PCP, DEI, VID; only when tagged
  FrameKind kind = FrameKind::other;
  uint8_t ip_version = 0;  // 4, 6 or 0
  uint8_t dscp = 0;
  uint8_t ecn = 0;  // 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168)
  bool tagged = false;
  bool cn_tagged = false;       // there is a CN-TAG, see wire/qcn.h
  bool ecn_changed = false;     // the I/O edge writes `ecn` into the bytes
  uint8_t failure = 0;          // WorkStatus with which its queue pair fails by a fault that is made on purpose (link/faults.h)
  uint16_t l3_offset = 0;       // offset of the IP header from the start of the frame; 0 if the frame is not IP
  uint32_t destination_qp = 0;  // 24 bits, BTH
  uint32_t psn = 0;             // 24 bits, BTH
  uint16_t bth_offset = 0;      // 0 if the frame is not RoCEv2
  uint16_t payload_length = 0;  // RoCEv2 payload without extension headers, pad and ICRC
  uint16_t udp_source_port = 0;
  uint8_t opcode = 0;        // BTH
  uint8_t pad_count = 0;     // BTH
  bool ack_request = false;  // BTH
  bool becn = false;         // BTH
  uint16_t cn_flow = 0;      // flow identifier of the CN-TAG; only when cn_tagged

  uint8_t pcp() const { return static_cast<uint8_t>(vlan_tci >> 13); }
  uint16_t vlan() const { return vlan_tci & 0x0fff; }
  bool operator==(const PacketMeta&) const = default;
};

using PacketId = uint32_t;
inline constexpr PacketId kNoPacket = UINT32_MAX;
inline constexpr uint32_t kMostPackets = 1u << 30;  // most packets of one memory
// Bytes of what a device has picked that may wait for the host to take them; a device goes on when there are no more.
inline constexpr uint32_t kMostUnsent = 128 * 1024;
inline constexpr uint16_t kNoIngress = UINT16_MAX;  // for packets that a device has made for its own link, or was given to send

// Fields are in the order of use: those that a switch looks at lie in the first cache line.
struct alignas(64) Packet {
  PacketId next = kNoPacket;  // intrusive link of whatever queue owns the packet
  uint32_t length = 0;        // bytes as a packet socket sees them: no FCS
  Offload offload = {};       // checked; the frame is not complete while any is pending
  uint16_t ingress_port = 0;
  uint8_t priority = 0;     // 0..7, from the device's priority map
  uint8_t pfc_enable = 0;   // kind pfc or pause, made by a device: priorities that the frame speaks of ...
  uint8_t pfc_xoff = 0;     // ... and which of them it stops; the others it starts again
  uint16_t pfc_quanta = 0;  // ... for so long
  PacketMeta meta;
  Rate slowed = 0;   // pace at which its host takes it, by a fault that is made on purpose; 0: its own
  Time departs = 0;  // time when its last bit leaves, while a device holds it after picking it

  // The same as *this = Packet{}. GCC turns that, and any loop, into a `rep stos`, which takes 15 ns to begin.
  void reset() {
    typedef uint64_t Block __attribute__((vector_size(32), may_alias));
    static_assert(sizeof(Packet) == 4 * sizeof(Block));
    Block* const blocks = reinterpret_cast<Block*>(this);
    blocks[0] = blocks[1] = blocks[2] = blocks[3] = Block{};
    next = kNoPacket;
  }
};

// Bytes of a descriptor in simulation, where the headers of a frame exist and its payload does not; and where headers may have
// telemetry.
inline constexpr uint32_t kHeaderStride = 128;
inline constexpr uint32_t kTelemetryStride = 192;

}  // namespace weir
