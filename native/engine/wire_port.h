// One end of a link on the wire: frames in with the time at which they arrived, frames out in batches.
//
// Event time (design, section 2): a frame arrives at max(stamp, previous arrival + its bytes / link rate) + delay, because
// a burst that a late sender hands over at one instant did not cross the link in one instant. Frames are borrowed from
// the port until their time comes; nothing is copied to hold them back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/types.h"
#include "io/packet_port.h"
#include "pacing/serializer.h"
#include "wire/packet.h"

namespace weir {

#define WEIR_WIRE_PORT_COUNTERS(X)                                                                                \
  X(host_rx_overrun, "packets", "Frames that the host lost: the receive ring was full because we were late")      \
  X(host_rx_truncated, "packets", "Frames that the host lost: longer than a slot of the receive ring")            \
  X(host_rx_abandoned, "packets", "Frames that the host lost: read or waiting when their interface was replaced") \
  X(host_tx_errors, "packets", "Frames that the host refused to send: interface down, too long, no room for 100 ms")

WEIR_DEFINE_COUNTERS(WirePortCounters, WEIR_WIRE_PORT_COUNTERS);

class WirePort {
 public:
  // `window`: most frames held between being read and their arrival time; no less than the port's receive slots.
  WirePort(std::unique_ptr<PacketPort> port, Rate rate, Time delay, size_t window);

  // Reads what waits, up to `burst` frames and the room there is. Returns whether it has read all.
  bool poll(size_t burst = SIZE_MAX);
  // When the newest frame read so far arrived; 0 if none was.
  Time newest() const { return newest_; }
  // Whether what has been read and not yet taken fills half the room or more: the host falls behind, and will lose frames.
  bool crowded() const { return count_ >= window_.size() / 2; }
  // When the oldest frame arrives; kNever if none is here.
  Time next_arrival() const { return count_ > 0 ? window_[first_].stamp : kNever; }
  // The oldest frame; its stamp is when it arrives.
  const RxFrame& front() const { return window_[first_]; }
  // The frame that comes `ahead` behind it, if it has been read.
  const RxFrame* peek(size_t ahead) const { return ahead < count_ ? &window_[(first_ + ahead) & (window_.size() - 1)] : nullptr; }
  // Done with front(): its bytes go back to the port with the next give_back().
  void pop() {
    first_ = (first_ + 1) & (window_.size() - 1);
    --count_;
    ++used_;
  }
  void give_back();

  // Whether the interface is there and running, as of the last check(). While it is not, nothing is read or sent.
  bool up() const { return up_; }
  // What the host did to the frames of this port, as of the last check() or settle().
  const WirePortCounters& counters() const { return counters_; }
  // Brings counters() up to date (system calls).
  void settle();

  // What has changed from one look at the interface to the next.
  struct Changes {
    bool up = false;
    bool mtu = false;
    bool reopened = false;  // there is another descriptor to wait for
    bool any() const { return up || mtu || reopened; }
  };
  // Looks after the interface (system calls): opens it anew once it is back.
  Changes check();
  // The interface's longest IP packet, as of the last check(); 0: not known.
  uint32_t mtu() const { return mtu_; }

  // Owns `id` until it is sent. The frame's bytes are in the packet, complete.
  void send(PacketPool& pool, PacketId id) { outgoing_.push_back({pool.data(id), pool[id].length, pool[id].offload, id}); }
  // Hands what send() collected to the port, frees what was taken; the rest stays for the next turn. Returns how many frames
  // were discarded because the port is not up.
  size_t flush(PacketPool& pool);
  size_t unsent() const { return outgoing_.size(); }

  PacketPort& port() { return *port_; }
  // For wrappers that come and go between two turns.
  std::unique_ptr<PacketPort>& holder() { return port_; }
  Time next_deadline() const { return next_arrival() < port_->next_deadline() ? next_arrival() : port_->next_deadline(); }
  uint64_t received() const { return received_; }

 private:
  void abandon();
  Time arrival(const RxFrame& frame);

  std::unique_ptr<PacketPort> port_;
  Serializer link_;
  Time delay_;
  std::vector<RxFrame> window_;  // circular, a power of two; stamps are arrivals
  Time newest_ = 0;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t used_ = 0;
  uint64_t received_ = 0;
  bool up_ = true;
  uint32_t mtu_ = 0;
  WirePortCounters counters_;
  std::vector<TxFrame> outgoing_;
};

}  // namespace weir
