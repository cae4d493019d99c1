// A tap: an interface of the kernel's whose cable ends here. Frames that its stack sends on it are read; frames that are
// transmitted are received by that stack. Frames carry an Offload towards the stack (IFF_VNET_HDR); from it they come finished.
// It is gone with the port.
//
// A read or write is a system call: for a few frames, those of control protocols.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "io/network_namespace.h"
#include "io/packet_port.h"
#include "io/port_options.h"

namespace weir {

class TapPort final : public PacketPort {
 public:
  // Makes the interface of `options` in its namespace, down. The calling thread is in its own network namespace again afterwards,
  // also when this throws. Throws NativeError: EPERM (no CAP_NET_ADMIN), EBUSY (there is one of that name), ENOENT (no
  // /dev/net/tun), INVALID_CONFIG (no name for an interface).
  TapPort(const PortOptions& options, const PortClock& clock);
  ~TapPort() override;

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override { lent_ -= count; }
  int wait_descriptor() const override { return gone_ ? -1 : tap_.get(); }
  // Frames that the stack does not take, as its interface is down, are refused.
  Transmitted transmit(std::span<const TxFrame> frames) override;
  PortLosses losses() override { return losses_; }
  // Gone: somebody has deleted the interface.
  PortState state() override { return gone_ ? PortState::gone : PortState::up; }
  // The stack is told on a thread of its own, of the latest if there are several: its lock may be taken, for seconds where many
  // interfaces come and go. Does not wait.
  void set_carrier(bool carrier) override;

 private:
  static constexpr size_t kSlots = 64;

  void notify();
  void tell();
  void tell_carrier(bool carrier) const;

  std::string name_;
  Descriptor tap_;
  Descriptor stack_;  // a socket of the stack's, to ask about the interface
  const PortClock& clock_;
  size_t slot_bytes_;
  std::vector<uint8_t> slots_;  // circular
  size_t next_ = 0;
  size_t lent_ = 0;
  bool gone_ = false;
  PortLosses losses_;
  std::atomic<bool> carrier_{true};
  std::atomic<bool> ending_{false};
  std::atomic<uint32_t> changes_{0};  // changes of the two
  std::jthread teller_;               // runs since the first; the last member: ends before what it uses
};

}  // namespace weir
