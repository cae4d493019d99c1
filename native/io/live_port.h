// A port of any other backend that sends many frames at a time as live frames (io/live_transmit.h), and its own way what these do
// not suit: few at a time, long ones, what is left to the interface (Offload), and all where the interface takes no XDP frames.
// On veth that is so while its peer has neither GRO on nor an XDP program, for it has no NAPI then. Frames leave in order,
// whichever way.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "io/live_transmit.h"
#include "io/network_namespace.h"
#include "io/packet_port.h"
#include "io/port_options.h"
#include "io/umem.h"

namespace weir {

class LivePort final : public PortWrapper {
 public:
  // A call has a cost of its own: so many frames are cheaper this way than by a socket.
  static constexpr size_t kLeast = 16;
  // And so many make it small.
  static constexpr size_t kBatch = 512;
  // When an interface that took no XDP frames is asked again.
  static constexpr Time kAskAgain = kSecond;

  // `inner` is of the same interface; `live` and `umem` are of the worker's packets, and outlive the port. Throws NativeError.
  LivePort(std::unique_ptr<PacketPort> inner, const PortOptions& options, LiveTransmit& live, Umem& umem, const PortClock& clock);
  ~LivePort() override { give_back(); }

  PortCapabilities capabilities() const override {
    PortCapabilities own = inner_->capabilities();
    own.batch = kBatch;
    return own;
  }

  size_t receive(std::span<RxFrame> frames) override {
    give_back();
    return inner_->receive(frames);
  }
  Transmitted transmit(std::span<const TxFrame> frames) override;
  PortLosses losses() override;
  // Asks an interface that took no live frames again, if that is long ago; and with live_for_xdp for whom they would be.
  PortState state() override;
  bool falls_back() const override { return refused_ || !wanted_; }
  void reopen() override;

 private:
  void connect();
  void look();
  void test();
  size_t suited(std::span<const TxFrame> frames) const;
  void give_back();

  const PortOptions options_;
  LiveTransmit& live_;
  Umem& umem_;
  const PortClock& clock_;
  const uint32_t port_;
  std::vector<PacketId> sent_;       // packets whose frames are gone, until the next call
  const bool kept_;                  // `inner` frees what it sent, so this does, too
  std::optional<Descriptor> asked_;  // with live_for_xdp: a socket that answers for the interface's namespace
  bool wanted_ = true;               // there is somebody for whom live frames are
  bool refused_ = false;             // the interface takes no live frames, ...
  Time ask_at_ = 0;                  // ... and is asked again then
  uint32_t longest_ = 0;             // bytes of a frame that the interface has taken so
  uint64_t live_frames_ = 0;
};

}  // namespace weir
