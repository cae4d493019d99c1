// The packet descriptor, the memory of descriptors and bytes, and the pool by which a worker hands them out.
//
// Ownership: a PacketId is owned by exactly one place at a time (a queue, a link, a transmit batch, the kernel: see
// io/umem.h). Whoever holds it either passes it on or calls PacketPool::free once. In simulation packets have their
// headers only, and the same code runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fetch.h"
#include "base/lazy_memory.h"
#include "base/types.h"
#include "wire/bth.h"
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

// Shape of a memory of descriptors and bytes. Most packets are short; a few are long enough for a super-frame of the kernel.
// Pages that were never touched cost nothing, unless they are locked: a memory may be far larger than its used part.
struct PacketShape {
  uint32_t count = 0;       // short packets, which have the ids from 0 on
  uint32_t stride = 0;      // bytes from one to the next
  uint32_t headroom = 0;    // bytes of those in front of the frame
  uint32_t long_count = 0;  // packets of kMaxSuperFrame bytes, which have the ids behind
};

// Bytes of short packets that are not the process's alone: a BPF map (io/live_transmit.h).
struct MappedBytes {
  virtual ~MappedBytes() = default;
  std::span<uint8_t> bytes;
  int map = -1;  // its descriptor
};

class PacketMemory {
 public:
  // `mapped`: of that shape; null: the memory has its own. Throws std::bad_alloc.
  explicit PacketMemory(const PacketShape& shape, std::unique_ptr<MappedBytes> mapped = nullptr)
      : shape_(shape),
        packets_((static_cast<size_t>(shape.count) + shape.long_count) * sizeof(Packet), false, dense(shape)),
        mapped_(std::move(mapped)),
        bytes_(mapped_ ? 0 : static_cast<size_t>(shape.count) * shape.stride, shape.stride > kLargePiece, dense(shape)),
        long_bytes_(static_cast<size_t>(shape.long_count) * kMaxSuperFrame, true) {}

  const PacketShape& shape() const { return shape_; }
  Packet* packets() { return reinterpret_cast<Packet*>(packets_.data()); }
  // Bytes of the short packets.
  std::span<uint8_t> bytes() { return mapped_ ? mapped_->bytes : bytes_.all(); }
  // Null where the short packets are the process's alone.
  const MappedBytes* mapped() const { return mapped_.get(); }
  std::span<uint8_t> long_bytes() { return long_bytes_.all(); }

  // The first `made` short packets of `from`, which has them no longer.
  void take_over(PacketMemory& from, uint32_t made) {
    move_pages(packets(), from.packets(), made * sizeof(Packet));
    move_pages(bytes().data(), from.bytes().data(), static_cast<size_t>(made) * shape_.stride);
  }

 private:
  // Moves piece by piece, so that bytes are never held twice for long.
  static void move_pages(void* to, void* from, size_t bytes) {
    constexpr size_t kPiece = 2 << 20;
    for (size_t done = 0; done < bytes; done += kPiece) {
      uint8_t* const piece = static_cast<uint8_t*>(from) + done;
      const size_t length = std::min(kPiece, bytes - done);
      std::memcpy(static_cast<uint8_t*>(to) + done, piece, length);
      LazyMemory::forget(piece, length);
    }
  }

  static constexpr uint32_t kLargePiece = 16 * 1024;  // jumbo frames still fill what they have
  // Memory with headroom is for the kernel, which locks all of it.
  static bool dense(const PacketShape& shape) { return shape.stride <= kTelemetryStride || shape.headroom > 0; }

  static_assert(std::is_trivially_copyable_v<Packet>);
  PacketShape shape_;
  LazyMemory packets_;
  std::unique_ptr<MappedBytes> mapped_;
  LazyMemory bytes_;
  LazyMemory long_bytes_;
};

// Hands out the packets of a memory, or of a slice of one that several workers share, or what it is supplied with of a memory
// in which packets belong to whoever frees them. Single-threaded; allocates nothing. Packets are handed out last in, first out.
class PacketPool {
 public:
  struct Supplied {};
  // Makes the pool of a whole memory.
  explicit PacketPool(PacketMemory& memory) : PacketPool(memory, 0, 1) {}
  // Slice number `slice` of `slices` equal ones. `memory` must outlive the pool.
  PacketPool(PacketMemory& memory, uint32_t slice, uint32_t slices)
      : packets_(memory.packets()),
        bytes_(memory.bytes().data() + memory.shape().headroom),
        long_bytes_(memory.long_bytes().data()),
        stride_(memory.shape().stride),
        room_(memory.shape().stride - memory.shape().headroom),
        first_long_id_(memory.shape().count) {
    const PacketShape& shape = memory.shape();
    short_ = FreeList(shape.count / slices * slice, shape.count / slices);
    long_ = FreeList(first_long_id_ + shape.long_count / slices * slice, shape.long_count / slices);
  }
  // The pool of a memory of short packets has none of them until supply().
  PacketPool(PacketMemory& memory, Supplied /*kind*/) : PacketPool(memory) {
    short_.fresh_end = 0;
    short_.available = 0;
  }
  // A memory of its own, of short packets.
  PacketPool(uint32_t count, uint32_t stride) : PacketPool(std::make_unique<PacketMemory>(PacketShape{count, stride})) {}
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // Packets from `first` on that no pool has had.
  void supply(PacketId first, uint32_t count) {
    while (short_.fresh != short_.fresh_end && short_.fresh_end != first) {
      --short_.available;
      free(short_.fresh++);
    }
    if (short_.fresh == short_.fresh_end) short_.fresh = first;
    short_.fresh_end = first + count;
    short_.available += count;
  }
  // A memory that has more packets has taken over the pool's: what data() and operator[] have given is void.
  void move_to(PacketMemory& memory) {
    packets_ = memory.packets();
    bytes_ = memory.bytes().data();
    long_bytes_ = memory.long_bytes().data();
    short_.count = first_long_id_ = long_.first = long_.fresh = long_.fresh_end = memory.shape().count;
  }

  // A short packet; kNoPacket when there is none: the caller counts a drop. The descriptor's fields are stale until set.
  PacketId allocate() { return allocate(short_); }
  // Hints for the caches: what the next short packet will need, if it has been used before.
  WEIR_FETCHES void fetch_next() const {
    if (short_.head == kNoPacket) return;
    fetch_bytes(&packets_[short_.head], sizeof(Packet));
    fetch_bytes(data(short_.head), kHeaderStride);
  }
  // A packet for a frame of `length` bytes.
  PacketId allocate(uint32_t length) {
    if (length <= room_) return allocate(short_);
    return length <= kMaxSuperFrame ? allocate(long_) : kNoPacket;
  }
  // The same packet once more, owned by the caller; kNoPacket when there is no memory for it.
  PacketId copy(PacketId id) {
    const bool is_long = id >= first_long_id_;
    const PacketId other = allocate(is_long ? long_ : short_);
    if (other == kNoPacket) return other;
    (*this)[other] = (*this)[id];
    const uint32_t length = (*this)[id].length;
    if (is_long || room_ > 0) std::memcpy(data(other), data(id), is_long ? length : std::min(length, room_));
    return other;
  }
  void free(PacketId id) {
    FreeList& list = id - short_.first < short_.count ? short_ : id - long_.first < long_.count ? long_ : foreign_;
    (*this)[id].next = list.head;
    list.head = id;
    ++list.available;
  }
  // A packet of another worker's slice that was freed here, to be sent home; kNoPacket when there is none.
  PacketId take_foreign() {
    const PacketId id = foreign_.head;
    if (id == kNoPacket) return id;
    foreign_.head = (*this)[id].next;
    --foreign_.available;
    return id;
  }
  // The slice that a packet of the memory belongs to.
  uint32_t slice_of(PacketId id) const { return id < first_long_id_ ? id / short_.count : (id - first_long_id_) / long_.count; }
  Packet& operator[](PacketId id) { return packets_[id]; }
  const Packet& operator[](PacketId id) const { return packets_[id]; }
  uint8_t* data(PacketId id) {
    if (id < first_long_id_) return bytes_ + static_cast<size_t>(id) * stride_;
    return long_bytes_ + static_cast<size_t>(id - first_long_id_) * kMaxSuperFrame;
  }
  const uint8_t* data(PacketId id) const { return const_cast<PacketPool*>(this)->data(id); }
  // Longest frame of a short packet.
  uint32_t room() const { return room_; }
  // Longest frame of this packet.
  uint32_t room(PacketId id) const { return id < first_long_id_ ? room_ : kMaxSuperFrame; }
  // Whether frames have their payload; if not, they have their headers only.
  bool has_payload() const { return room_ > kTelemetryStride; }
  // Returns how many bytes of a frame there are. RoCEv2 without payload has no pad and ICRC either; other frames are whole.
  uint32_t present(PacketId id) const {
    const Packet& packet = (*this)[id];
    if (has_payload()) return packet.length;
    const PacketMeta& meta = packet.meta;
    const uint32_t absent = meta.kind == FrameKind::roce ? meta.payload_length + meta.pad_count + kIcrc : 0;
    return std::min(packet.length - std::min(packet.length, absent), room_);
  }
  // Only short packets are counted.
  uint32_t available() const { return short_.available; }
  uint32_t size() const { return short_.count; }
  // Takes the marks off those of the short packets that this pool may hand out.
  void unmark_free(std::vector<bool>& marks) const {
    for (PacketId id = short_.head; id != kNoPacket; id = (*this)[id].next) marks[id] = false;
    for (PacketId id = short_.fresh; id != short_.fresh_end; ++id) marks[id] = false;
  }

 private:
  struct FreeList {
    FreeList() = default;
    FreeList(PacketId from, uint32_t number)
        : first(from), count(number), fresh(from), fresh_end(from + number), available(number) {}
    PacketId head = kNoPacket;
    PacketId first = 0;  // packets that may be in it begin here
    uint32_t count = 0;
    PacketId fresh = 0;  // the first of those that have never been handed out
    PacketId fresh_end = 0;
    uint32_t available = 0;
  };

  explicit PacketPool(std::unique_ptr<PacketMemory> own) : PacketPool(*own) { own_ = std::move(own); }

  PacketId allocate(FreeList& list) {
    PacketId id = list.head;
    if (id != kNoPacket) {
      list.head = (*this)[id].next;
    } else if (list.fresh != list.fresh_end) {
      id = list.fresh++;
    } else {
      return kNoPacket;
    }
    (*this)[id].next = kNoPacket;
    --list.available;
    return id;
  }

  Packet* packets_;
  uint8_t* bytes_;
  uint8_t* long_bytes_;
  uint32_t stride_;
  uint32_t room_;
  uint32_t first_long_id_;
  FreeList short_;
  FreeList long_;
  FreeList foreign_;
  std::unique_ptr<PacketMemory> own_;
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
