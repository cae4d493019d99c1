// The pool by which a worker hands out packets, and queues of them.
//
// Ownership: a PacketId is owned by exactly one place at a time (a queue, a link, a transmit batch, the kernel: see
// io/umem.h). Whoever holds it either passes it on or calls PacketPool::free once. In simulation packets have their
// headers only, and the same code runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fetch.h"
#include "wire/bth.h"
#include "wire/packet.h"
#include "wire/packet_memory.h"

namespace weir {

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
        first_long_id_(memory.shape().count),
        icrc_(memory.shape().icrc) {
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
  // Whether frames have their ICRC: without payload there is none.
  bool has_icrc() const { return icrc_ && has_payload(); }
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
  bool icrc_;
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
