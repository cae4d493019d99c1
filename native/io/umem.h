// Packet memory that AF_XDP sockets send from and receive into (a "UMEM"). One serves all ports of a worker, in whatever network
// namespace they are: a frame that came in by one port leaves by another from where it lies.
//
// Ownership of a packet: the pool's free list -> port (fill ring) -> kernel -> port (receive ring) -> whoever takes it -> port
// (transmit ring) -> kernel -> port (completion ring) -> free list. While it is in a fill or transmit ring or in the kernel it is
// noted which port lent it; it is asserted, in release builds too, that it is nobody's before, and that port's afterwards.
#pragma once

#include <linux/if_xdp.h>

#include <cassert>
#include <cstdint>
#include <vector>

#include "wire/packet_pool.h"

namespace weir {

class Umem {
 public:
  // The kernel puts frames behind so many bytes of a chunk, where an XDP program may put metadata in front of them.
  static constexpr uint32_t kHeadroom = 256;
  static constexpr uint32_t kLargestChunk = 4096;  // a page: the kernel's limit

  // Shape of short packets for frames of up to `frame_bytes`: in one chunk if that is possible.
  static PacketShape shape(uint32_t count, uint32_t frame_bytes);

  // `memory` has such a shape; `pool` hands out the packets of this worker. Both must outlive it.
  Umem(PacketMemory& memory, PacketPool& pool);

  PacketPool& pool() { return pool_; }
  uint32_t chunk() const { return chunk_; }
  // Whether a frame may need more than one chunk.
  bool multi_buffer() const { return stride_ > chunk_; }
  bool holds(PacketId id) const { return id < lent_.size(); }
  uint64_t address(PacketId id) const { return uint64_t{id} * stride_; }
  uint8_t* at(uint64_t address) const { return bytes_ + address; }
  PacketId packet_at(uint64_t address) const { return static_cast<PacketId>(address / stride_); }

  // Number of a new port, from 1.
  uint8_t add_port();
  // The kernel gets a packet from the port `number`, or gives it back.
  void lend(PacketId id, uint8_t number) {
    assert(lent_[id] == 0);
    lent_[id] = number;
  }
  void take_back(PacketId id, [[maybe_unused]] uint8_t number) {
    assert(lent_[id] == number);
    lent_[id] = 0;
  }
  // Makes the memory known to a new socket, by registering it or by naming a socket that has done so in `address`.
  // Throws NativeError.
  void share(int socket, sockaddr_xdp& address);
  // A socket that bind() has accepted, until it is closed.
  void joined(int socket) { members_.push_back(socket); }
  void left(int socket) { std::erase(members_, socket); }
  // Gives what the port `number` has with the kernel back to the pool, after its socket was closed. Returns how many.
  uint32_t reclaim(uint8_t number);

 private:
  PacketMemory& memory_;
  PacketPool& pool_;
  uint8_t* bytes_;
  uint32_t stride_;
  uint32_t chunk_;
  uint8_t ports_ = 0;
  std::vector<uint8_t> lent_;  // number of the port that lent each packet, 0 for none
  std::vector<int> members_;
};

}  // namespace weir
