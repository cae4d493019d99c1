// Parts of a switch that its workers share: packet memory, the rings between them, and how to wake each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/waker.h"
#include "io/live_transmit.h"
#include "switching/exchange.h"
#include "wire/packet_memory.h"

namespace weir {

class SharedSwitch {
 public:
  // `shape`: of each worker's slice. `owner`: the worker of each port, below `workers`, of whom there are Exchange::kMaxShards at
  // most. `live`: ports transmit live frames of the packets (io/live_transmit.h). Throws NativeError INVALID_CONFIG,
  // std::bad_alloc.
  SharedSwitch(const PacketShape& shape, std::vector<uint8_t> owner, uint32_t workers, bool live = false)
      : owner_(std::move(owner)),
        workers_(checked(shape, owner_, workers)),
        memory_(whole(shape, workers), live ? map_packet_bytes(whole(shape, workers)) : nullptr),
        exchange_(owner_, workers, shape.count + shape.long_count),
        wakers_(workers) {}

  PacketMemory& memory() { return memory_; }
  Exchange& exchange() { return exchange_; }
  uint32_t workers() const { return workers_; }
  size_t ports() const { return owner_.size(); }
  bool owns(uint32_t worker, size_t port) const { return owner_[port] == worker; }

  // Must be called while workers are made, before any of their threads starts.
  void attend(uint32_t worker, std::shared_ptr<Waker> waker) { wakers_[worker] = std::move(waker); }
  // `workers`: a mask, as of ShardLink::flush().
  void wake(uint64_t workers) {
    for (; workers != 0; workers &= workers - 1) {
      Waker* waker = wakers_[static_cast<size_t>(__builtin_ctzll(workers))].get();
      if (waker != nullptr) waker->wake();
    }
  }

 private:
  static PacketShape whole(PacketShape shape, uint32_t workers) {
    shape.count *= workers;
    shape.long_count *= workers;
    return shape;
  }
  static uint32_t checked(const PacketShape& shape, const std::vector<uint8_t>& owner, uint32_t workers) {
    constexpr const char* kWhose = "workers of a switch";
    require(workers >= 1 && workers <= Exchange::kMaxShards, kWhose, "they are 1 to 64");
    require(std::ranges::all_of(owner, [&](uint8_t worker) { return worker < workers; }), kWhose, "each port has one of them");
    require((uint64_t{shape.count} + shape.long_count) * workers <= kMostPackets, kWhose, "they have 2^30 packets at most");
    return workers;
  }

  std::vector<uint8_t> owner_;
  uint32_t workers_;
  PacketMemory memory_;
  Exchange exchange_;
  std::vector<std::shared_ptr<Waker>> wakers_;
};

}  // namespace weir
