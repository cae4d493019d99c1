// A network interface through a Linux packet socket (packet(7)): frames come in through a memory-mapped TPACKET_V2
// ring and go out in sendmmsg() batches. Needs CAP_NET_RAW over the interface's network namespace, nothing else.
//
// TPACKET_V2 hands over every frame as it arrives; V3 is cheaper per frame but holds frames back for up to 1 ms.
// PACKET_QDISC_BYPASS: no queue of the kernel stands between a device's shaper and the interface, unless it has offloads.
#pragma once

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/lazy_memory.h"
#include "base/ring.h"
#include "io/interface_port.h"
#include "io/packet_port.h"
#include "io/stamps.h"
#include "wire/packet_pool.h"
#include "wire/super_frame.h"

namespace weir {

class AfPacketPort final : public InterfacePort {
 public:
  // The calling thread is in its own network namespace again afterwards, also when this throws. Throws NativeError: EPERM (no
  // CAP_NET_RAW), ENODEV (no such interface), ENOMEM (ring), INVALID_CONFIG (options out of range), ... `pool`: the worker's,
  // which outlives the port. If frames carry offloads, long ones are fetched into packets of it, for the caller to take; null:
  // into memory of the port.
  AfPacketPort(const PortOptions& options, const PortClock& clock, PacketPool* pool = nullptr);
  ~AfPacketPort() override { shut(); }

  PortCapabilities capabilities() const override { return {.joins = join_ > 1}; }
  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  // ENOBUFS is for later, as EAGAIN is, though it also stands for "no carrier" and "the peer dropped it", which need not end.
  Transmitted transmit(std::span<const TxFrame> frames) override;
  // Polls readable while the newest frame has not been released: release before sleeping on it.
  int wait_descriptor() const override { return socket_; }
  bool passed_on() override;
  // Asks the kernel (two system calls), and clears a pending error of the socket, which would keep poll() awake after
  // the interface went down.
  PortLosses losses() override;
  PortState state() override;

  int lend(uint16_t blocks) override;
  void take_back(uint16_t blocks) override;

  uint32_t receive_slots() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  static constexpr size_t kBatch = 128;      // frames given to one system call
  static constexpr size_t kLongFrames = 64;  // most that can be lent at a time

  void open(int interface_index, bool first) override;
  void open_lent(bool first);
  void map_ring(bool long_slots);
  void close() override;
  // Prepares messages for the first frames; returns how many messages.
  size_t prepare(std::span<const TxFrame> frames);
  // Fetches the frame of a slot that was too small for it; no data if it is lost.
  struct Fetched {
    const uint8_t* data = nullptr;
    PacketId packet = kNoPacket;  // packet that the bytes are in
    Offload offload = {};
  };
  Fetched fetch(const tpacket2_hdr* slot);

  int socket_ = -1;
  uint16_t lent_blocks_ = 0;  // blocks of queue pairs whose packets come by other sockets
  uint8_t* ring_ = nullptr;
  size_t ring_bytes_ = 0;

  std::vector<tpacket2_hdr*> slots_;  // slots in the kernel's order
  size_t next_slot_ = 0;
  struct Lent {
    tpacket2_hdr* slot;
    PacketId packet;  // packet in which the frame lies, as long as the caller has not taken it
  };
  Ring<Lent> lent_;  // frames that the caller holds; has room for all slots

  PacketPool* const pool_;
  LazyMemory long_frames_;  // circular: kLongFrames of kMaxSuperFrame bytes, for those that no packet was there for
  Stamps stamps_;
  size_t long_next_ = 0;
  size_t long_count_ = 0;  // lent

  std::array<mmsghdr, kBatch> messages_{};
  std::array<uint32_t, kBatch> carried_{};   // frames in each message
  std::array<iovec, 2 * kBatch> vectors_{};  // parts of each message: offload header, with the headers of a super-frame; frames
  std::array<std::array<uint8_t, kOffloadHeader + kLongestSuperHeader>, kBatch> headers_{};
  uint32_t join_;     // frames to one super-frame
  uint32_t mtu_ = 0;  // the kernel does not look at it in super-frames
  PortLosses losses_;
};

}  // namespace weir
