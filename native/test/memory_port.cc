#include "test/memory_port.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/native_error.h"

namespace weir {

struct MemoryPort::Ring {
  struct Slot {
    Time stamp = 0;
    uint32_t length = 0;
    Offload offload;
  };

  explicit Ring(const MemoryPortOptions& options)
      : slots(options.slots), bytes(size_t{options.slots} * options.slot_bytes), slot_bytes(options.slot_bytes) {}

  uint8_t* data(size_t slot) { return bytes.data() + slot * slot_bytes; }

  std::vector<Slot> slots;
  std::vector<uint8_t> bytes;
  const uint32_t slot_bytes;
  alignas(64) std::atomic<uint64_t> put{0};    // written by the producer
  alignas(64) std::atomic<uint64_t> taken{0};  // written by the consumer
};

size_t MemoryPort::receive(std::span<RxFrame> frames) {
  Ring& ring = *in_;
  const uint64_t waiting = ring.put.load(std::memory_order_acquire) - read_;
  const size_t count = static_cast<size_t>(std::min<uint64_t>(frames.size(), waiting));
  for (size_t i = 0; i < count; ++i, ++read_) {
    const size_t slot = static_cast<size_t>(read_ % ring.slots.size());
    frames[i] = RxFrame{};
    frames[i].data = ring.data(slot);
    frames[i].length = ring.slots[slot].length;
    frames[i].stamp = ring.slots[slot].stamp;
    frames[i].offload = ring.slots[slot].offload;
  }
  return count;
}

void MemoryPort::release(size_t count) {
  const uint64_t taken = in_->taken.load(std::memory_order_relaxed);
  in_->taken.store(taken + std::min<uint64_t>(count, read_ - taken), std::memory_order_release);
}

Transmitted MemoryPort::transmit(std::span<const TxFrame> frames) {
  Ring& ring = *out_;
  uint64_t put = ring.put.load(std::memory_order_relaxed);
  uint64_t room = ring.slots.size() - (put - ring.taken.load(std::memory_order_acquire));
  Transmitted done;
  for (const TxFrame& frame : frames) {
    if (frame.length > ring.slot_bytes) {
      ++losses_.transmit_errors;
      done.refused = true;
      break;
    }
    if (room == 0) break;
    const size_t slot = static_cast<size_t>(put % ring.slots.size());
    if (frame.length > 0) std::memcpy(ring.data(slot), frame.data, frame.length);
    ring.slots[slot] = {clock_.now, frame.length, frame.offload};
    ++put;
    --room;
    ++done.sent;
  }
  ring.put.store(put, std::memory_order_release);
  return done;
}

std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> make_memory_pair(const MemoryPortOptions& options,
                                                                                     const PortClock& first,
                                                                                     const PortClock& second) {
  if (options.slots == 0 || options.slot_bytes == 0) {
    throw NativeError("INVALID_CONFIG", 0, "", "memory port: slots and slot_bytes must be greater than 0", "");
  }
  auto forth = std::make_shared<MemoryPort::Ring>(options);
  auto back = std::make_shared<MemoryPort::Ring>(options);
  return {std::unique_ptr<MemoryPort>(new MemoryPort(back, forth, first)),
          std::unique_ptr<MemoryPort>(new MemoryPort(forth, back, second))};
}

}  // namespace weir
