// What the workers of one switch share: packet memory, the rings between them, and how to wake each other.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/exchange.h"
#include "engine/waker.h"
#include "wire/packet.h"

namespace weir {

class SharedSwitch {
 public:
  // `shape`: of each worker's slice. `owner`: the worker of each port, below `workers`. Throws std::bad_alloc.
  SharedSwitch(const PacketShape& shape, std::vector<uint8_t> owner, uint32_t workers)
      : owner_(std::move(owner)),
        workers_(workers),
        memory_({.count = shape.count * workers,
                 .stride = shape.stride,
                 .headroom = shape.headroom,
                 .long_count = shape.long_count * workers}),
        exchange_(owner_, workers, shape.count + shape.long_count),
        wakers_(workers) {}

  PacketMemory& memory() { return memory_; }
  Exchange& exchange() { return exchange_; }
  uint32_t workers() const { return workers_; }
  bool owns(uint32_t worker, size_t port) const { return owner_[port] == worker; }

  // While workers are made, before any of their threads starts.
  void attend(uint32_t worker, std::shared_ptr<Waker> waker) { wakers_[worker] = std::move(waker); }
  // `workers`: a mask, as of ShardLink::flush().
  void wake(uint64_t workers) {
    for (; workers != 0; workers &= workers - 1) {
      Waker* waker = wakers_[static_cast<size_t>(__builtin_ctzll(workers))].get();
      if (waker != nullptr) waker->wake();
    }
  }

 private:
  std::vector<uint8_t> owner_;
  uint32_t workers_;
  PacketMemory memory_;
  Exchange exchange_;
  std::vector<std::shared_ptr<Waker>> wakers_;
};

}  // namespace weir
