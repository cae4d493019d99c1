// A completion queue of a program: a ring that transports fill under the NIC's lock and that any thread empties, and the events
// of its channel.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "verbs/abi.h"

namespace weir {

struct CompletionQueue {
  verbs_cq base;  // first: what libibverbs hands around
  std::vector<ibv_wc> ring;
  std::atomic<uint32_t> written{0};
  std::atomic<uint32_t> read{0};
  std::mutex readers;
  enum Arming : uint32_t { kNone, kSolicited, kAny };
  std::atomic<uint32_t> armed{kNone};
  uint32_t events = 0;  // that the channel was told
  std::atomic<uint32_t> users{0};
  bool overrun = false;

  bool empty() const { return read.load(std::memory_order_relaxed) == written.load(std::memory_order_acquire); }
  // False: there is no room for it.
  bool push(const ibv_wc& wc) {
    const uint32_t at = written.load(std::memory_order_relaxed);
    if (at - read.load(std::memory_order_acquire) >= ring.size()) return false;
    ring[at % ring.size()] = wc;
    written.store(at + 1, std::memory_order_release);
    return true;
  }
  // What waits of a queue pair that is reset or gone is of no use to anybody. Nothing may be pushed meanwhile.
  void purge(uint32_t qpn) {
    const std::lock_guard lock(readers);
    const uint32_t from = read.load(std::memory_order_relaxed);
    const uint32_t end = written.load(std::memory_order_relaxed);
    uint32_t to = from;
    for (uint32_t at = from; at != end; ++at) {
      const ibv_wc& wc = ring[at % ring.size()];
      if (wc.qp_num != qpn) ring[to++ % ring.size()] = wc;
    }
    written.store(to, std::memory_order_release);
  }
  int poll(int most, ibv_wc* out) {
    const std::lock_guard lock(readers);
    uint32_t at = read.load(std::memory_order_relaxed);
    const uint32_t end = written.load(std::memory_order_acquire);
    int count = 0;
    for (; count < most && at != end; ++at) out[count++] = ring[at % ring.size()];
    read.store(at, std::memory_order_release);
    return count;
  }
};

}  // namespace weir
