// A completion queue of a program: a ring that transports fill under the NIC's lock and that any thread empties, and the events
// of its channel.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "verbs/abi.h"

namespace weir {

struct CompletionQueue {
  verbs_cq base;  // first: what libibverbs hands around
  std::vector<ibv_wc> ring;
  // When each was completed, where the program wants to know; else empty.
  struct Stamp {
    uint64_t clock = 0;  // ns of the monotonic clock
    uint64_t wall = 0;   // ns since 1970
  };
  std::vector<Stamp> stamps;
  uint32_t at = 0;  // place of a poll of ibv_cq_ex; with `readers`
  std::atomic<uint32_t> written{0};
  std::atomic<uint32_t> read{0};
  std::mutex readers;
  enum Arming : uint32_t { kNone, kSolicited, kAny };
  std::atomic<uint32_t> armed{kNone};
  uint32_t events = 0;        // events that the channel was told
  uint32_t async_events = 0;  // events that the program was told
  std::atomic<uint32_t> users{0};
  std::atomic<uint32_t>* domain = nullptr;  // users of the parent domain that it was made with
  bool overrun = false;                     // it was, and the program knows, or does not want to

  bool empty() const { return read.load(std::memory_order_relaxed) == written.load(std::memory_order_acquire); }
  // False: there is no room for it.
  bool push(const ibv_wc& wc) {
    const uint32_t to = written.load(std::memory_order_relaxed);
    if (to - read.load(std::memory_order_acquire) >= ring.size()) return false;
    ring[to % ring.size()] = wc;
    if (!stamps.empty()) stamps[to % ring.size()] = {ns_of(CLOCK_MONOTONIC), ns_of(CLOCK_REALTIME)};
    written.store(to + 1, std::memory_order_release);
    return true;
  }
  static uint64_t ns_of(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  // Drops the waiting completions of a queue pair that is reset or gone, which are of no use to anybody. Nothing may be pushed.
  void purge(uint32_t qpn) {
    const std::lock_guard lock(readers);
    const uint32_t from = read.load(std::memory_order_relaxed);
    const uint32_t end = written.load(std::memory_order_relaxed);
    uint32_t to = from;
    for (uint32_t place = from; place != end; ++place) {
      if (ring[place % ring.size()].qp_num == qpn) continue;
      if (!stamps.empty()) stamps[to % ring.size()] = stamps[place % ring.size()];
      ring[to++ % ring.size()] = ring[place % ring.size()];
    }
    written.store(to, std::memory_order_release);
  }
  int poll(int most, ibv_wc* out) {
    const std::lock_guard lock(readers);
    uint32_t place = read.load(std::memory_order_relaxed);
    const uint32_t end = written.load(std::memory_order_acquire);
    int count = 0;
    for (; count < most && place != end; ++place) out[count++] = ring[place % ring.size()];
    read.store(place, std::memory_order_release);
    return count;
  }
};

}  // namespace weir
