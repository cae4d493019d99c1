// The packet descriptor and the pool that owns every descriptor and buffer of one worker.
//
// Ownership: a PacketId is owned by exactly one place at a time (a queue, a link, a transmit batch). Whoever holds it
// either passes it on or calls PacketPool::free once. In simulation the pool has no byte buffers and the same code runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/lazy_memory.h"
#include "base/types.h"
#include "wire/offload.h"

namespace weir {

enum class FrameKind : uint8_t {
  other,       // any Ethernet frame we do not look into: ARP, LLDP, IPv4/IPv6 that is not RoCEv2, ...
  roce,        // RoCEv2 (UDP 4791) with a whole BTH, not a CNP
  cnp,         // RoCEv2 congestion notification packet, opcode 0x81 (IBTA annex A17.9.3)
  pause,       // MAC control PAUSE, opcode 0x0001 (IEEE 802.3 annex 31B)
  pfc,         // MAC control PFC, opcode 0x0101 (IEEE 802.3 annex 31D)
  mac_control  // MAC control with an opcode that we do not know
};

// Everything a decision needs to know of a frame, filled by one classify() when it arrives.
struct PacketMeta {
  uint64_t destination_mac = 0;  // low 48 bits, first octet on the wire most significant
  uint64_t source_mac = 0;
  uint32_t flow_hash = 0;  // over addresses, protocol and ports: for next-hop groups
  uint16_t ethertype = 0;  // after any 802.1Q tag
  uint16_t vlan_tci = 0;   // PCP, DEI, VID; only when tagged
  FrameKind kind = FrameKind::other;
  uint8_t ip_version = 0;  // 4, 6 or 0
  uint8_t dscp = 0;
  uint8_t ecn = 0;  // 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168)
  bool tagged = false;
  bool ecn_changed = false;     // the I/O edge writes `ecn` into the bytes
  uint16_t l3_offset = 0;       // of the IP header from the start of the frame; 0 if the frame is not IP
  uint32_t destination_qp = 0;  // 24 bits, BTH
  uint32_t psn = 0;             // 24 bits, BTH
  uint16_t bth_offset = 0;      // 0 if the frame is not RoCEv2
  uint16_t payload_length = 0;  // RoCEv2 payload without extension headers, pad and ICRC
  uint16_t udp_source_port = 0;
  uint8_t opcode = 0;        // BTH
  uint8_t pad_count = 0;     // BTH
  bool ack_request = false;  // BTH
  bool becn = false;         // BTH

  uint8_t pcp() const { return static_cast<uint8_t>(vlan_tci >> 13); }
  uint16_t vlan() const { return vlan_tci & 0x0fff; }
};

using PacketId = uint32_t;
inline constexpr PacketId kNoPacket = UINT32_MAX;

// In the order of use: what a switch looks at lies in the first cache line.
struct alignas(64) Packet {
  PacketId next = kNoPacket;  // intrusive link of whatever queue owns the packet
  uint32_t length = 0;        // bytes as a packet socket sees them: no FCS
  Offload offload = {};       // checked; the frame is not complete while any is pending
  uint16_t ingress_port = 0;
  uint8_t priority = 0;    // 0..7, from the device's priority map
  uint8_t pfc_enable = 0;  // kind pfc, made by a device: priorities that the frame speaks of ...
  uint8_t pfc_xoff = 0;    // ... and which of them it stops; the others it starts again
  PacketMeta meta;
  Time departs = 0;  // while a device holds it after picking it: when its last bit leaves
};

// Bytes of a descriptor in simulation, where the headers of a frame exist and its payload does not.
inline constexpr uint32_t kHeaderStride = 128;

// Fixed set of descriptors, each with `stride` bytes of its own. Single-threaded, allocates once. Descriptors are handed out
// last in, first out, and what was never touched costs nothing: a pool may be far larger than what is ever used of it.
class PacketPool {
 public:
  PacketPool(uint32_t count, uint32_t stride)
      : packets_(static_cast<size_t>(count) * sizeof(Packet), stride > kLargePiece, stride <= kHeaderStride),
        bytes_(static_cast<size_t>(count) * stride, stride > kLargePiece, stride <= kHeaderStride),
        stride_(stride),
        count_(count),
        available_(count) {}
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // kNoPacket when the pool is empty: the caller counts a drop. The descriptor's fields are stale until set.
  PacketId allocate() {
    PacketId id = head_;
    if (id != kNoPacket) {
      head_ = (*this)[id].next;
    } else if (made_ < count_) {
      id = made_++;
    } else {
      return kNoPacket;
    }
    (*this)[id].next = kNoPacket;
    --available_;
    return id;
  }
  void free(PacketId id) {
    (*this)[id].next = head_;
    head_ = id;
    ++available_;
  }
  Packet& operator[](PacketId id) { return reinterpret_cast<Packet*>(packets_.data())[id]; }
  const Packet& operator[](PacketId id) const { return reinterpret_cast<const Packet*>(packets_.data())[id]; }
  uint8_t* data(PacketId id) { return bytes_.data() + static_cast<size_t>(id) * stride_; }
  const uint8_t* data(PacketId id) const { return bytes_.data() + static_cast<size_t>(id) * stride_; }
  std::span<uint8_t> memory() { return bytes_.all(); }
  uint32_t stride() const { return stride_; }
  // Whether frames have their payload; if not, they have their headers only.
  bool has_payload() const { return stride_ > kHeaderStride; }
  uint32_t available() const { return available_; }
  uint32_t size() const { return count_; }
  // How many have ever been in use.
  uint32_t made() const { return made_; }

 private:
  static constexpr uint32_t kLargePiece = 16 * 1024;  // jumbo frames still fill what they have

  static_assert(std::is_trivially_copyable_v<Packet>);
  LazyMemory packets_;
  LazyMemory bytes_;
  uint32_t stride_;
  uint32_t count_;
  uint32_t available_;
  uint32_t made_ = 0;
  PacketId head_ = kNoPacket;
};

// A FIFO of packets threaded through Packet::next: owns what it holds.
class PacketQueue {
 public:
  bool empty() const { return head_ == kNoPacket; }
  PacketId front() const { return head_; }
  void push(PacketPool& pool, PacketId id) {
    pool[id].next = kNoPacket;
    if (tail_ == kNoPacket) {
      head_ = id;
    } else {
      pool[tail_].next = id;
    }
    tail_ = id;
  }
  PacketId pop(PacketPool& pool) {
    const PacketId id = head_;
    if (id == kNoPacket) return id;
    head_ = pool[id].next;
    if (head_ == kNoPacket) tail_ = kNoPacket;
    pool[id].next = kNoPacket;
    return id;
  }

 private:
  PacketId head_ = kNoPacket;
  PacketId tail_ = kNoPacket;
};

}  // namespace weir
