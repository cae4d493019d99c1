// One receive queue of an interface, and what is sent by the transmit queue of its number: an AF_XDP socket with its four rings
// (Documentation/networking/af_xdp.rst). Raw kernel interface (linux/if_xdp.h), without libxdp: its dispatcher program, its
// threads-unsafe UMEM and libbpf are not needed for one socket per queue, and a failed bind cannot be retried with it.
#pragma once

#include <linux/if_xdp.h>

#include <cstdint>
#include <span>
#include <string>

#include "io/packet_port.h"
#include "io/umem.h"
#include "io/xdp_ring.h"

namespace weir {

struct XdpQueueOptions {
  std::string interface = {};  // for errors
  int interface_index = 0;     // in the calling thread's network namespace
  uint32_t queue = 0;
  uint32_t receive_ring = 0;   // frames, a power of two; 0: nothing is received
  uint32_t transmit_ring = 0;  // frames, a power of two; 0: nothing is sent
  bool wait = false;           // for the kernel to free a queue after an earlier user, two seconds at most
  uint32_t longest = 0;        // bytes of the longest frame that is received
};

// Single-threaded. Nothing here throws after construction.
class XdpQueue {
 public:
  // `umem` and `clock` must outlive it; packets that the kernel has are lent to the port `number` of the UMEM, which takes back
  // what is left after the end (Umem::reclaim()). Throws NativeError: EBUSY (another socket has the queue), ...
  XdpQueue(const XdpQueueOptions& options, Umem& umem, uint8_t number, const PortClock& clock);
  ~XdpQueue();
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;

  int socket() const { return socket_; }
  // The driver reads and writes our memory itself, as the kernel decided when the socket was opened.
  bool zero_copy() const { return zero_copy_; }

  // Keeps the fill ring full, as far as there is memory.
  void refill();
  // The frames that have come, as many as fit: `data`, `length`, and which packet each lies in, which is the caller's.
  struct Frame {
    uint8_t* data;
    uint32_t length;
    PacketId packet;
  };
  size_t receive(std::span<Frame> frames, uint32_t bytes_in_front);
  // Frames that were longer than `longest`, and are dropped.
  uint64_t truncated() const { return truncated_; }
  // Frames that the kernel dropped for want of room, since the beginning.
  uint64_t overruns() const;

  Transmitted transmit(std::span<const TxFrame> frames);
  // Frees what the kernel has sent.
  void collect();
  // Asks the kernel again for what it has not taken, if it is time.
  void attend() {
    if (unsent_ && clock_.now >= kick_at_) kick();
  }
  // The kernel has not taken all frames that were handed to it, and is asked again at next_deadline().
  bool unsent() const { return unsent_; }
  Time next_deadline() const { return unsent_ ? kick_at_ : kNever; }
  // Frames that were refused here.
  uint64_t transmit_errors() const { return transmit_errors_; }
  // Frames that transmit() has sent, and that the driver or the link partner threw away.
  uint64_t transmit_dropped() const { return transmit_dropped_; }
  // Descriptors that the kernel has not read: lost when the socket is closed.
  uint64_t unread() { return transmit_ring_.mapped() ? transmit_ring_.unread() : 0; }

 private:
  bool bind();
  void close();
  void map_rings();
  uint32_t gather(uint32_t index, uint32_t waiting, PacketId& packet, uint32_t& length);
  void kick();

  const XdpQueueOptions options_;
  Umem& umem_;
  PacketPool& pool_;
  const uint8_t number_;
  const PortClock& clock_;
  int socket_ = -1;
  bool zero_copy_ = false;
  bool unsent_ = false;
  uint32_t unread_ = 0;    // so many descriptors are not taken,
  Time unread_since_ = 0;  // none of them since then,
  Time kick_at_ = kNever;  // the kernel is asked again then
  XdpRing<xdp_desc> receive_ring_;
  XdpRing<uint64_t> fill_ring_;
  XdpRing<xdp_desc> transmit_ring_;
  XdpRing<uint64_t> completion_ring_;
  uint32_t in_kernel_ = 0;        // transmit descriptors that have not completed ...
  uint64_t in_kernel_bytes_ = 0;  // ... and the bytes of their frames
  uint64_t truncated_ = 0;
  uint64_t transmit_errors_ = 0;
  uint64_t transmit_dropped_ = 0;
};

}  // namespace weir
