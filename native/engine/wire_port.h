// One end of a link on the wire: frames in with the time at which they arrived, frames out in batches.
//
// Frames that the host does not take stay here, and the device is to give no more while these are more than kMostUnsent: waiting
// frames belong into its queues, where they are counted. A frame that the host has not taken for kPatience is given up.
//
// Event time (docs/design/wire.md): a frame arrives at max(stamp, previous arrival + its bytes / link rate) + delay, because
// a burst that a late sender hands over at one instant did not cross the link in one instant. Frames are borrowed from
// the port until their time comes; nothing is copied to hold them back.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/types.h"
#include "engine/leaving_faults.h"
#include "io/packet_port.h"
#include "link/serializer.h"
#include "wire/packet_pool.h"

namespace weir {

#define WEIR_WIRE_PORT_COUNTERS(X)                                                                                         \
  X(host_rx_overrun, "packets", overrun, "Frames that the host lost: the receive ring was full because we were late")      \
  X(host_rx_truncated, "packets", overrun, "Frames that the host lost: longer than a slot of the receive ring")            \
  X(host_rx_abandoned, "packets", overrun, "Frames that the host lost: read or waiting when their interface was replaced") \
  X(host_tx_errors, "packets", refused, "Frames that the host refused to send: interface down, too long, no room for 1 s") \
  X(host_tx_dropped, "packets", thrown, "Frames sent that the host threw away then: the interface, or its peer, was down") \
  X(host_tx_live, "packets", none, "Frames sent as live frames (backend live), of all that were sent")                     \
  X(tx_stall_duration, "ns", none, "Time for which frames waited here because the host took none, or next to none")        \
  X(rx_stamps_corrected, "packets", none, "Frames whose time of arrival was not what the host said: its clock was set")    \
  X(tx_super_frames, "frames", none, "Super-frames that packets were joined to")                                           \
  X(rx_super_frames, "frames", none, "Super-frames that came whole")                                                       \
  X(faults_dropped, "packets", fault, "Frames dropped by faults that are made on purpose")                                 \
  X(faults_duplicated, "packets", duplicate, "Frames that faults have come in twice, and their pauses")                    \
  X(faults_changed, "packets", none, "Frames that faults have changed, marked, trimmed or refused")                        \
  X(faults_delayed, "packets", none, "Frames that faults have held back")

WEIR_DEFINE_COUNTERS(WirePortCounters, WEIR_WIRE_PORT_COUNTERS);

class WirePort {
 public:
  // Longest time that a frame may wait here, whatever the host says and does with others meanwhile: the maximum bridge transit
  // delay that IEEE 802.1Q recommends.
  static constexpr Time kPatience = kSecond;
  // Frames that wait as long as this are worth telling.
  static constexpr Time kStall = 250 * kMillisecond;

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
    ++taken_;
  }
  void give_back();

  // Whether the interface is there and running, as of the last check(). While it is not, nothing is read or sent.
  bool up() const { return up_; }
  // Counters of what the host did to the frames of this port, as of the last check() or settle().
  const WirePortCounters& counters() const { return counters_; }
  // Brings counters() up to date (system calls).
  void settle();
  // So many more were counted by programs with paths of their own, which counters() has, too.
  void count_lent(const WirePortCounters& more) { lent_.add(more); }

  // Changes from one look at the interface to the next.
  struct Changes {
    bool up = false;
    bool mtu = false;
    bool reopened = false;  // there is another descriptor to wait for
    bool stall = false;     // another answer of transmit_stalled(), receive_stuck() or falls_back()
    bool queues = false;
    bool any() const { return up || mtu || reopened || stall || queues; }
  };
  // Looks after the interface (system calls): opens it anew once it is back.
  Changes check(Time now);
  // Whether the host took nothing, or next to nothing, of what waits here, as of the last check().
  bool transmit_stalled() const { return transmit_stalled_; }
  // Whether frames have come for a second, beyond their delay, and none of them was taken, as of the last check(). It should not
  // happen.
  bool receive_stuck() const { return receive_stuck_; }
  // Whether frames leave by another way than the one asked for, as of the last check().
  bool falls_back() const { return falls_back_; }
  // The interface's longest IP packet, as of the last check(); 0: not known.
  uint32_t mtu() const { return mtu_; }
  // The port's AF_XDP sockets, as of the last check().
  const PortQueues& queues() const { return queues_; }

  // Owns `id` until it is sent. The frame's bytes are in the packet, complete.
  void send(PacketPool& pool, PacketId id) {
    if (leaving_ != nullptr) [[unlikely]]
      return send_by_faults(pool, id);
    put(pool, id);
  }
  // Hands what send() collected to the port, unless that has just refused some. `left` is told of each packet that the host has
  // now, `lost` of each that is discarded, with whether that is because the interface is not up; then they are freed.
  template <class Left, class Lost>
  void flush(PacketPool& pool, Time now, const Left& left, const Lost& lost) {
    if (leaving_ != nullptr) [[unlikely]] {
      for (PacketId id = leaving_->take_lost(); id != kNoPacket; id = leaving_->take_lost()) {
        left(id);
        pool.free(id);
      }
      for (PacketId id = leaving_->take_due(); id != kNoPacket; id = leaving_->take_due()) put(pool, id);
    }
    if (up_ && !refused_.empty() && now < retry_at_) return;
    size_t done = 0;
    const bool kept = port_->capabilities().keeps_packets;
    while (up_ && done < outgoing_.size()) {
      const Transmitted t = port_->transmit(std::span(outgoing_).subspan(done));
      for (size_t i = 0; i < t.sent; ++i) {
        const TxFrame& frame = outgoing_[done + i];
        left(frame.packet);
        if (!kept) pool.free(frame.packet);
      }
      done += t.sent;
      sent_ += t.sent;
      if (t.refused) {
        lost(outgoing_[done].packet, false);
        pool.free(outgoing_[done++].packet);
      } else if (t.sent == 0) {
        break;
      }
    }
    if (done == outgoing_.size()) return all_done();
    for (const size_t end = done + given_up(done, now); done < end; ++done) {
      lost(outgoing_[done].packet, !up_);
      pool.free(outgoing_[done].packet);
    }
    keep_from(done, now);
  }
  size_t unsent() const { return outgoing_.size() + (leaving_ != nullptr ? leaving_->waiting() : 0); }
  uint32_t unsent_bytes() const { return unsent_bytes_; }

  PacketPort& port() { return *port_; }
  // Frames that the port has lent and that have not gone back.
  size_t lent() const { return count_ + used_; }
  // Wrappers that come and go between two turns use this.
  std::unique_ptr<PacketPort>& holder() { return port_; }
  // Faults of what leaves, which there are from the first call on.
  LeavingFaults& leaving(const PortClock& clock) {
    if (leaving_ == nullptr) leaving_ = std::make_unique<LeavingFaults>(clock);
    return *leaving_;
  }
  Time next_deadline() const {
    const Time held = leaving_ != nullptr ? leaving_->next_deadline() : kNever;
    return std::min({next_arrival(), refused_.empty() ? kNever : retry_at_, port_->next_deadline(), held});
  }
  uint64_t received() const { return received_; }
  // Number of super-frames among those.
  uint64_t super_frames() const { return super_frames_; }

 private:
  void put(PacketPool& pool, PacketId id) {
    const Packet& packet = pool[id];
    TxFrame& frame = outgoing_.emplace_back();
    frame.data = pool.data(id);
    frame.length = packet.length;
    frame.offload = packet.offload;
    frame.packet = id;
    unsent_bytes_ += packet.length;
  }
  void send_by_faults(PacketPool& pool, PacketId id);
  void abandon();
  Time arrival(const RxFrame& frame);
  void all_done();
  size_t given_up(size_t first, Time now);
  void keep_from(size_t first, Time now);
  bool check_transmit(Time now);
  bool check_receive(Time now);

  std::unique_ptr<PacketPort> port_;
  std::unique_ptr<LeavingFaults> leaving_;  // null: there never were any
  Serializer link_;
  Time delay_;
  std::vector<RxFrame> window_;  // circular, a power of two; stamps are arrivals
  Time newest_ = 0;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t used_ = 0;
  uint64_t received_ = 0;
  uint64_t super_frames_ = 0;
  uint64_t taken_ = 0;
  bool up_ = true;
  uint32_t mtu_ = 0;
  PortQueues queues_;
  WirePortCounters counters_;
  WirePortCounters lent_;
  std::vector<TxFrame> outgoing_;
  uint32_t unsent_bytes_ = 0;
  uint64_t sent_ = 0;
  // The host has refused the first frames of outgoing_: each since then.
  std::vector<Time> refused_;
  Time refusing_since_ = 0;  // none of those was taken or given up since then ...
  Time retry_at_ = 0;        // ... and the host is asked again then
  uint64_t given_up_ = 0;

  // These are as of the last check().
  Time checked_ = kNever;
  uint64_t given_up_before_ = 0;
  uint64_t taken_before_ = 0;
  uint64_t overrun_before_ = 0;
  Time receiving_at_ = 0;  // when frames were last taken, or none had come
  bool transmit_stalled_ = false;
  bool receive_stuck_ = false;
  bool falls_back_ = false;
};

}  // namespace weir
