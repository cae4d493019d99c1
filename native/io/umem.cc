#include "io/umem.h"

#include <sys/socket.h>

#include <algorithm>

#include "io/xdp_ring.h"

namespace weir {

PacketShape Umem::shape(uint32_t count, uint32_t frame_bytes) {
  const uint32_t needed = kHeadroom + frame_bytes;
  const uint32_t stride =
      needed <= kLargestChunk / 2 ? kLargestChunk / 2 : (needed + kLargestChunk - 1) / kLargestChunk * kLargestChunk;
  return {.count = count, .stride = stride, .headroom = kHeadroom, .long_count = 0};
}

Umem::Umem(PacketMemory& memory, PacketPool& pool)
    : memory_(memory),
      pool_(pool),
      bytes_(memory.bytes().data()),
      stride_(memory.shape().stride),
      chunk_(std::min(stride_, kLargestChunk)),
      lent_(memory.shape().count) {}

uint8_t Umem::add_port() {
  if (ports_ == UINT8_MAX) {
    throw NativeError("INVALID_CONFIG", 0, "", "more than 255 AF_XDP ports in one worker", "spread them over more workers");
  }
  return ++ports_;
}

void Umem::share(int socket, sockaddr_xdp& address) {
  if (!members_.empty()) {
    // The kernel takes how to bind from the other socket.
    address.sxdp_flags = XDP_SHARED_UMEM;
    address.sxdp_shared_umem_fd = static_cast<uint32_t>(members_.front());
    return;
  }
  xdp_umem_reg registration{};
  registration.addr = reinterpret_cast<uint64_t>(memory_.bytes().data());
  registration.len = memory_.bytes().size();
  registration.chunk_size = chunk_;
  if (::setsockopt(socket, SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration) != 0) {
    throw NativeError::from_errno("setsockopt", "cannot register packet memory for AF_XDP",
                                  "needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK, and memory for a smaller buffer.total");
  }
}

uint32_t Umem::reclaim(uint8_t number) {
  uint32_t count = 0;
  for (PacketId id = 0; id < memory_.shape().count; ++id) {
    if (lent_[id] != number) continue;
    take_back(id, number);
    pool_.free(id);
    ++count;
  }
  return count;
}

}  // namespace weir
