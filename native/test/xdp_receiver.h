// The least AF_XDP socket that receives, in copy mode: for tests of the program in front of it. No more than 64 frames.
#pragma once

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weir::test {

class XdpReceiver {
 public:
  struct Frame {
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> before;  // kMetadata bytes in front
  };
  static constexpr uint32_t kMetadata = 16;

  // Binds to the queue 0 of an interface of this thread's network namespace.
  explicit XdpReceiver(uint32_t interface_index) : socket_(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    area_ = static_cast<uint8_t*>(
        ::mmap(nullptr, kFrames * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    xdp_umem_reg umem{};
    umem.addr = reinterpret_cast<uintptr_t>(area_);
    umem.len = kFrames * kChunk;
    umem.chunk_size = kChunk;
    set(XDP_UMEM_REG, &umem, sizeof umem);
    const uint32_t entries = kFrames;
    for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING}) set(ring, &entries, sizeof entries);
    xdp_mmap_offsets offsets{};
    socklen_t size = sizeof offsets;
    if (::getsockopt(socket_, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) error_ = "XDP_MMAP_OFFSETS";
    fill_ = map(offsets.fr, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
    received_ = map(offsets.rx, sizeof(xdp_desc), XDP_PGOFF_RX_RING);
    if (!error_.empty()) return;
    for (uint64_t i = 0; i < kFrames; ++i) reinterpret_cast<uint64_t*>(fill_.entries)[i] = i * kChunk;
    __atomic_store_n(fill_.producer, kFrames, __ATOMIC_RELEASE);
    sockaddr_xdp address{};
    address.sxdp_family = AF_XDP;
    address.sxdp_flags = XDP_COPY;
    address.sxdp_ifindex = interface_index;
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) error_ = std::strerror(errno);
  }
  ~XdpReceiver() {
    for (const Ring& ring : {fill_, received_}) {
      if (ring.memory != nullptr) ::munmap(ring.memory, ring.bytes);
    }
    ::close(socket_);
    ::munmap(area_, kFrames * kChunk);
  }
  XdpReceiver(const XdpReceiver&) = delete;
  XdpReceiver& operator=(const XdpReceiver&) = delete;

  const std::string& error() const { return error_; }  // empty: it works
  int descriptor() const { return socket_; }
  // All that have come so far.
  const std::vector<Frame>& frames() {
    const uint32_t produced = __atomic_load_n(received_.producer, __ATOMIC_ACQUIRE);
    for (; seen_ != produced; ++seen_) {
      const xdp_desc& d = reinterpret_cast<const xdp_desc*>(received_.entries)[seen_ % kFrames];
      const uint8_t* at = area_ + d.addr;
      frames_.push_back({{at, at + d.len}, {at - kMetadata, at}});
    }
    return frames_;
  }

 private:
  static constexpr uint32_t kFrames = 64;
  static constexpr uint32_t kChunk = 4096;
  struct Ring {
    void* memory = nullptr;
    size_t bytes = 0;
    uint32_t* producer = nullptr;
    uint8_t* entries = nullptr;
  };

  void set(int option, const void* value, socklen_t size) {
    if (::setsockopt(socket_, SOL_XDP, option, value, size) != 0) error_ = std::strerror(errno);
  }
  Ring map(const xdp_ring_offset& offset, size_t entry, uint64_t page) {
    Ring ring;
    ring.bytes = offset.desc + kFrames * entry;
    ring.memory =
        ::mmap(nullptr, ring.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_, static_cast<off_t>(page));
    if (ring.memory == MAP_FAILED) {
      error_ = std::strerror(errno);
      return {};
    }
    ring.producer = reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(ring.memory) + offset.producer);
    ring.entries = static_cast<uint8_t*>(ring.memory) + offset.desc;
    return ring;
  }

  int socket_;
  uint8_t* area_ = nullptr;
  std::string error_;
  Ring fill_, received_;
  uint32_t seen_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace weir::test
