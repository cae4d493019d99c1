// A network interface through AF_XDP sockets, one for each of its receive queues: frames come in and go out in packets of the
// worker's own memory (io/umem.h). What is sent leaves by one transmit queue, and so in order; what comes in has the order of
// each flow, as the adapter keeps a flow to one queue.
//
// The XDP program is attached by a bpf_link: it is gone when the port is closed, however the process ends. Frames longer than a
// chunk (jumbo frames) come in several pieces; what lies behind the first piece is copied, so that every frame is contiguous.
// Needs Linux 6.6 for those, 5.11 otherwise, and CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF (or root).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ring.h"
#include "io/interface_port.h"
#include "io/network_namespace.h"
#include "io/stack_frames.h"
#include "io/umem.h"
#include "io/xdp_program.h"
#include "io/xdp_queue.h"
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
  int wait_descriptor() const override { return any_ ? any_->get() : -1; }
  // The port has a deadline while the kernel has not taken all frames that were handed to it.
  Time next_deadline() const override { return queues_.empty() ? kNever : queues_.front()->next_deadline(); }
  bool passed_on() override { return queues_.empty() || !queues_.front()->unsent(); }
  PortLosses losses() override;
  // Takes receive queues in, too, that the interface has got meanwhile.
  PortState state() override;
  PortQueues queues() const override;

 private:
  static constexpr size_t kBurst = 64;

  void open(int interface_index, bool first) override;
  void close() override;
  void add_queue(bool wait);
  void add_inserted_queue(bool wait);
  void add_hidden_queues(bool wait);
  size_t receive_by(XdpQueue& queue, std::span<RxFrame> frames);
  void read_metadata(uint8_t* in_front, RxFrame& frame) const;
  void free_lent(size_t count);

  Umem& umem_;
  PacketPool& pool_;
  const PortClock& clock_;
  const uint8_t number_;
  std::unique_ptr<XdpProgram> program_;
  std::unique_ptr<StackFrames> passed_by_;
  std::vector<std::unique_ptr<XdpQueue>> queues_;
  std::optional<Descriptor> any_;  // readable when one of the sockets is
  int index_ = 0;                  // of the interface
  uint32_t at_first_ = 1;          // receive queues of which the driver told when the port was opened,
  uint32_t told_ = 1;              // and last
  size_t next_ = 0;                // which of them is read first
  uint32_t metadata_ = 0;          // bytes in front of a received frame
  Ring<PacketId> lent_;            // packets of frames that the caller holds, kNoPacket for those it took
  PortLosses losses_;              // of queues that are closed
};

}  // namespace weir
