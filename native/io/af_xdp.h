// A network interface through an AF_XDP socket: frames come in and go out in packets of the worker's own memory (io/umem.h).
// Raw kernel interface (linux/if_xdp.h), without libxdp: its dispatcher program, its threads-unsafe UMEM and libbpf are not
// needed for one socket per queue, and a failed bind cannot be retried with it.
//
// The XDP program is attached by a bpf_link: it is gone when the port is closed, however the process ends. Frames longer than a
// chunk (jumbo frames) come in several pieces; what lies behind the first piece is copied, so that every frame is contiguous.
// Needs Linux 6.6 for those, 5.11 otherwise, and CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF (or root).
#pragma once

#include <linux/if_xdp.h>

#include <cstdint>
#include <memory>

#include "base/ring.h"
#include "io/interface_port.h"
#include "io/umem.h"
#include "io/xdp_program.h"
#include "io/xdp_ring.h"
#include "wire/packet_pool.h"

namespace weir {

class AfXdpPort final : public InterfacePort {
 public:
  // `umem` must outlive the port. A queue that the kernel has not freed yet after an earlier user (EBUSY) is waited for, two
  // seconds at most. A port for transmitting only has no program attached. Throws NativeError.
  AfXdpPort(const PortOptions& options, Umem& umem, const PortClock& clock);
  ~AfXdpPort() override { shut(); }

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  Transmitted transmit(std::span<const TxFrame> frames) override;
  PortCapabilities capabilities() const override { return {.keeps_packets = true, .tells_checksums = false}; }
  int wait_descriptor() const override { return receive_ring_.mapped() ? socket_ : -1; }
  // The port has a deadline while the kernel has not taken all frames that were handed to it.
  Time next_deadline() const override { return unsent_ ? kick_at_ : kNever; }
  bool passed_on() override { return !unsent_; }
  PortLosses losses() override;

 private:
  void open(int interface_index, bool first) override;
  bool bind(int interface_index);
  void map_rings();
  void close() override;
  uint32_t gather(uint32_t index, uint32_t waiting, PacketId& packet, uint32_t& length);
  void read_metadata(uint8_t* in_front, RxFrame& frame) const;
  void free_lent(size_t count);
  void refill();
  void collect();
  void kick();

  Umem& umem_;
  PacketPool& pool_;
  const PortClock& clock_;
  const uint8_t number_;
  std::unique_ptr<XdpProgram> program_;
  int socket_ = -1;
  bool zero_copy_ = false;  // the driver reads and writes our memory itself
  bool unsent_ = false;     // the kernel has not taken all that is in the transmit ring ...
  uint32_t unread_ = 0;     // ... but for so many descriptors,
  Time unread_since_ = 0;   // it has taken none of them since then,
  Time kick_at_ = kNever;   // the kernel is asked again then
  uint32_t metadata_ = 0;   // bytes in front of a received frame
  XdpRing<xdp_desc> receive_ring_;
  XdpRing<uint64_t> fill_ring_;
  XdpRing<xdp_desc> transmit_ring_;
  XdpRing<uint64_t> completion_ring_;
  Ring<PacketId> lent_;           // packets of frames that the caller holds, kNoPacket for those it took
  uint32_t in_kernel_ = 0;        // transmit descriptors that have not completed ...
  uint64_t in_kernel_bytes_ = 0;  // ... and the bytes of their frames
  PortLosses losses_;
  uint64_t overrun_before_ = 0;  // overruns of sockets that are closed
};

}  // namespace weir
