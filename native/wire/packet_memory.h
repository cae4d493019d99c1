// The memory of packets: their descriptors, and their bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/lazy_memory.h"
#include "wire/offload.h"
#include "wire/packet.h"

namespace weir {

// Shape of a memory of descriptors and bytes. Most packets are short; a few are long enough for a super-frame of the kernel.
// Pages that were never touched cost nothing, unless they are locked: a memory may be far larger than its used part.
struct PacketShape {
  uint32_t count = 0;       // short packets, which have the ids from 0 on
  uint32_t stride = 0;      // bytes from one to the next
  uint32_t headroom = 0;    // bytes of those in front of the frame
  uint32_t long_count = 0;  // packets of kMaxSuperFrame bytes, which have the ids behind
  bool icrc = true;         // those of RoCEv2 with payload have it, and it is looked at
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

}  // namespace weir
