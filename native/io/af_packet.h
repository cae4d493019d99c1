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
#include <string>
#include <vector>

#include "base/lazy_memory.h"
#include "base/ring.h"
#include "io/interface_port.h"
#include "io/packet_port.h"
#include "io/stamps.h"

namespace weir {

struct AfPacketOptions {
  std::string interface;
  int namespace_fd = -1;  // as in InterfaceName
  std::string namespace_path = {};
  std::string owner = {};        // as in InterfaceName
  bool receive = true;           // false: for transmitting only
  uint32_t slot_bytes = 2048;    // the longest frame that fits, tag included; longer ones are dropped and counted
  uint32_t receive_slots = 512;  // at least; the ring is rounded up to whole memory blocks
  bool promiscuous = false;
  // Only RoCEv2 (UDP port 4791), ICMP "destination unreachable" about RoCEv2, ARP, IPv6 neighbour discovery, MAC control frames
  // and congestion notification messages (wire/qcn.h) arrive, with or without a CN-TAG; the kernel drops the rest before it is
  // copied. For a NIC on an interface that the host's own stack uses too.
  bool roce_only = false;
  uint32_t echo_address = 0;  // with roce_only: pings for this IPv4 address (host order) arrive, too; 0: none
  bool echo_ipv6 = false;     // with roce_only: IPv6 pings arrive, too
  // Frames carry an Offload both ways (PACKET_VNET_HDR), and one longer than a slot is fetched in a second step, up to
  // kMaxSuperFrame: as many may wait as the socket's receive buffer holds, a handful where CAP_NET_ADMIN over the initial
  // user namespace is missing. Slots of kMaxSuperFrame do without.
  bool offloads = false;
};

class AfPacketPort final : public InterfacePort {
 public:
  // The calling thread is in its own network namespace again afterwards, also when this throws. Throws NativeError:
  // EPERM (no CAP_NET_RAW), ENODEV (no such interface), ENOMEM (ring), INVALID_CONFIG (options out of range), ...
  AfPacketPort(const AfPacketOptions& options, const PortClock& clock);
  ~AfPacketPort() override { shut(); }

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  // ENOBUFS is for later, as EAGAIN is, though it also stands for "no carrier" and "the peer dropped it", which need not end.
  Transmitted transmit(std::span<const TxFrame> frames) override;
  // Polls readable while the newest frame has not been released: release before sleeping on it.
  int wait_descriptor() const override { return socket_; }
  // Asks the kernel (two system calls), and clears a pending error of the socket, which would keep poll() awake after
  // the interface went down.
  PortLosses losses() override;
  PortState state() override;

  uint32_t receive_slots() const { return static_cast<uint32_t>(slots_.size()); }
  // Those of losses().transmit_errors that were longer than the interface's MTU allows (EMSGSIZE).
  uint64_t transmit_oversize() const { return oversize_; }

 private:
  static constexpr size_t kBatch = 64;
  static constexpr size_t kLongFrames = 64;  // that can be lent at a time

  void open(int interface_index, bool first) override;
  void map_ring(const AfPacketOptions& options);
  void close() override;
  // Fetches the frame of a slot that was too small for it; null if it is lost.
  const uint8_t* fetch(const tpacket2_hdr* slot);

  const AfPacketOptions options_;
  int socket_ = -1;
  uint8_t* ring_ = nullptr;
  size_t ring_bytes_ = 0;

  std::vector<tpacket2_hdr*> slots_;  // in the kernel's order
  size_t next_slot_ = 0;
  Ring<tpacket2_hdr*> lent_;  // with room for all slots: frames that the caller holds

  LazyMemory long_frames_;  // circular: kLongFrames of kMaxSuperFrame bytes
  Stamps stamps_;
  size_t long_next_ = 0;
  size_t long_count_ = 0;  // lent

  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, 2 * kBatch> vectors_{};  // offload header, frame
  std::array<std::array<uint8_t, kOffloadHeader>, kBatch> headers_{};
  PortLosses losses_;
  uint64_t oversize_ = 0;
};

}  // namespace weir
