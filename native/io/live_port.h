// A port of any other backend that sends many frames at a time as live frames (io/live_transmit.h), and its own way those that
// these do not suit: few at a time, long ones, ones with work left to the interface (Offload), and all where the interface takes
// no XDP frames. On veth that is so while its peer has neither GRO on nor an XDP program, for it has no NAPI then. Frames leave
// in order, whichever way.
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
  // So many make that cost small.
  static constexpr size_t kBatch = 512;
  // If pages of a call's frames are not back at its end, as where another CPU takes them, the kernel keeps the pool that they are
  // of for a second, and looks through all pools when one goes: with thousands that is dearer than the frames. Pages do not come
  // round then, either. So the socket has the frames after them for so long, longer with each such call in a row, ...
  static constexpr Time kShortestPause = kMillisecond, kLongestPause = 100 * kMillisecond;
  // ... unless the interface's ring had no room so short a time ago: sockets lose what has none. Calls are rare then.
  static constexpr Time kFullFor = kMillisecond;
  static constexpr Time kLeftEvery = 100 * kMicrosecond;
  // When an interface that took no XDP frames is asked again.
  static constexpr Time kAskAgain = kSecond;

  // `inner` is of the same interface; `live` and `umem` are of the worker's packets, and outlive the port. Throws NativeError.
  LivePort(std::unique_ptr<PacketPort> inner, const PortOptions& options, LiveTransmit& live, Umem& umem, const PortClock& clock);
  ~LivePort() override { give_back(); }

  PortCapabilities capabilities() const override {
    PortCapabilities own = inner_->capabilities();
    if (!falls_back() && !paused()) own.batch = kBatch;
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
  enum class Way : uint8_t { socket, live, later };
  Way way(size_t suited) const;
  void learn(const LiveTransmit::Done& done, size_t asked);
  Time current() const { return clock_.read != nullptr ? clock_.read() : clock_.now; }
  bool paused() const { return clock_.now < paused_until_ && clock_.now >= full_until_; }
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
  Time full_until_ = INT64_MIN;      // its ring is taken to be full, or nearly so, until then
  Time pause_ = 0;                   // 0: pages of the last call's frames are back
  Time paused_until_ = INT64_MIN;    // if not, the socket has all until then, ...
  Time again_at_ = INT64_MIN;        // ... or, where the ring is full, they wait until then
  uint32_t longest_ = 0;             // bytes of a frame that the interface has taken so
  uint64_t live_frames_ = 0;
};

}  // namespace weir
