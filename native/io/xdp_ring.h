// One of the four rings that an AF_XDP socket shares with the kernel (Documentation/networking/af_xdp.rst): single producer,
// single consumer, indexes that count up for ever.
#pragma once

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/native_error.h"

namespace weir {

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

template <class Entry>
class XdpRing {
 public:
  XdpRing() = default;
  ~XdpRing() { unmap(); }
  XdpRing(const XdpRing&) = delete;
  XdpRing& operator=(const XdpRing&) = delete;

  // `option`: XDP_RX_RING, ...; `page_offset`: XDP_PGOFF_RX_RING, ...; `size`: a power of two. Throws NativeError.
  void map(int socket, int option, uint64_t page_offset, const xdp_ring_offset& offset, uint32_t size) {
    bytes_ = offset.desc + size * sizeof(Entry);
    void* memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket, static_cast<off_t>(page_offset));
    if (memory == MAP_FAILED) throw NativeError::from_errno("mmap", "cannot map ring " + std::to_string(option), "");
    memory_ = static_cast<uint8_t*>(memory);
    producer_ = reinterpret_cast<uint32_t*>(memory_ + offset.producer);
    consumer_ = reinterpret_cast<uint32_t*>(memory_ + offset.consumer);
    flags_ = reinterpret_cast<uint32_t*>(memory_ + offset.flags);
    entries_ = reinterpret_cast<Entry*>(memory_ + offset.desc);
    size_ = size;
    own_ = other_ = 0;
  }
  void unmap() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
    memory_ = nullptr;
    size_ = 0;
  }
  bool mapped() const { return memory_ != nullptr; }
  uint32_t size() const { return size_; }
  // The entry `i` behind those that have been submitted or consumed.
  Entry& operator[](uint32_t i) { return entries_[(own_ + i) & (size_ - 1)]; }

  // Producer (fill and transmit rings): how many entries may be written; looks again when fewer than `wanted` are known of.
  uint32_t room(uint32_t wanted) {
    if (size_ - (own_ - other_) < wanted) other_ = __atomic_load_n(consumer_, __ATOMIC_ACQUIRE);
    return size_ - (own_ - other_);
  }
  void submit(uint32_t count) {
    own_ += count;
    __atomic_store_n(producer_, own_, __ATOMIC_RELEASE);
  }
  // Entries that the kernel has not taken yet.
  uint32_t unread() { return own_ - (other_ = __atomic_load_n(consumer_, __ATOMIC_ACQUIRE)); }
  bool needs_wakeup() const { return (__atomic_load_n(flags_, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP) != 0; }

  // Consumer (receive and completion rings): how many entries wait; looks again when there are fewer than `wanted`.
  uint32_t waiting(uint32_t wanted) {
    if (other_ - own_ < wanted) other_ = __atomic_load_n(producer_, __ATOMIC_ACQUIRE);
    return other_ - own_;
  }
  void consume(uint32_t count) {
    own_ += count;
    __atomic_store_n(consumer_, own_, __ATOMIC_RELEASE);
  }

 private:
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
  uint32_t* producer_ = nullptr;
  uint32_t* consumer_ = nullptr;
  uint32_t* flags_ = nullptr;
  Entry* entries_ = nullptr;
  uint32_t size_ = 0;
  uint32_t own_ = 0;    // our index
  uint32_t other_ = 0;  // the kernel's, as last seen
};

}  // namespace weir
