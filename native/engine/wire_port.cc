#include "engine/wire_port.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/native_error.h"
#include "wire/carried.h"

namespace weir {

WirePort::WirePort(std::unique_ptr<PacketPort> port, Rate rate, Time delay, size_t window)
    : port_(std::move(port)), link_(rate), delay_(delay), window_(std::bit_ceil(window)) {
  outgoing_.reserve(window);
}

void WirePort::settle() {
  PortLosses losses = port_->losses();
  if (leaving_ != nullptr) leaving_->count(losses);
  counters_.host_rx_overrun = losses.receive_overrun + lent_.host_rx_overrun;
  counters_.host_rx_truncated = losses.receive_truncated + lent_.host_rx_truncated;
  counters_.host_tx_errors = losses.transmit_errors + given_up_ + lent_.host_tx_errors;
  counters_.host_tx_dropped = losses.transmit_dropped + lent_.host_tx_dropped;
  counters_.rx_stamps_corrected = losses.stamps_corrected + lent_.rx_stamps_corrected;
  counters_.host_tx_live = losses.transmit_live;
  counters_.tx_super_frames = losses.super_frames_sent + lent_.tx_super_frames;
  counters_.rx_super_frames = losses.super_frames_received + lent_.rx_super_frames;
  counters_.faults_dropped = losses.faults_dropped;
  counters_.faults_duplicated = losses.faults_duplicated;
  counters_.faults_changed = losses.faults_changed;
  counters_.faults_delayed = losses.faults_delayed;
}

void WirePort::send_by_faults(PacketPool& pool, PacketId id) {
  PacketId twin = kNoPacket;
  if (leaving_->admit(pool, id, twin)) put(pool, id);
  if (twin != kNoPacket) put(pool, twin);
}

// The old interface's ring is about to go, with the frames in it whose time had not come.
void WirePort::abandon() {
  counters_.host_rx_abandoned += count_;
  port_->release(count_ + used_);
  count_ = used_ = 0;
  std::array<RxFrame, 64> burst;
  for (size_t got = port_->receive(burst); got > 0; got = port_->receive(burst)) {
    counters_.host_rx_abandoned += got;
    port_->release(got);
  }
}

WirePort::Changes WirePort::check(Time now) {
  settle();
  PortState state = port_->state();
  Changes changes;
  if (state == PortState::replaced) {
    abandon();
    try {
      port_->reopen();
      state = port_->state();
      changes.reopened = true;
    } catch (const NativeError&) {
      state = PortState::gone;  // tried again at the next check
    }
  }
  const bool up = state == PortState::up;
  changes.up = std::exchange(up_, up) != up;
  // An interface that is gone keeps the MTU that it had: what comes in its place is compared with that.
  const uint32_t mtu = port_->mtu();
  const PortQueues queues = port_->queues();
  changes.queues = std::exchange(queues_, queues) != queues;
  changes.mtu = mtu != 0 && std::exchange(mtu_, mtu) != mtu;
  const bool stalled = check_transmit(now), stuck = check_receive(now);
  const bool falls_back = up && port_->falls_back();
  changes.stall = std::exchange(transmit_stalled_, stalled) != stalled || std::exchange(receive_stuck_, stuck) != stuck ||
                  std::exchange(falls_back_, falls_back) != falls_back;
  checked_ = now;
  return changes;
}

bool WirePort::check_transmit(Time now) {
  const bool waits = !refused_.empty() && now - refused_.front() >= kStall;
  const bool lost = std::exchange(given_up_before_, given_up_) != given_up_;
  const bool stalled = up_ && (waits || lost);
  if (stalled && checked_ != kNever) counters_.tx_stall_duration += static_cast<uint64_t>(now - checked_);
  return stalled;
}

bool WirePort::check_receive(Time now) {
  const uint64_t overrun = counters_.host_rx_overrun;
  const bool lost = std::exchange(overrun_before_, overrun) != overrun;
  const bool took = std::exchange(taken_before_, taken_) != taken_;
  if (!up_ || took || (count_ == 0 && !lost) || checked_ == kNever) receiving_at_ = now;
  return now - receiving_at_ >= kSecond + delay_;
}

bool WirePort::poll(size_t burst) {
  if (!up_) return true;
  const size_t mask = window_.size() - 1;
  while (burst > 0 && count_ + used_ < window_.size()) {
    const size_t end = (first_ + count_) & mask;
    const size_t room = std::min({burst, window_.size() - count_ - used_, window_.size() - end});
    const size_t got = port_->receive(std::span(&window_[end], room));
    for (size_t i = 0; i < got; ++i) {
      RxFrame& frame = window_[end + i];
      newest_ = frame.stamp = arrival(frame);
      super_frames_ += frame.offload.gso != Gso::none;
    }
    count_ += got;
    received_ += got;
    burst -= got;
    if (got < room) return true;
  }
  return false;
}

Time WirePort::arrival(const RxFrame& frame) {
  if (link_.rate() == 0) return std::max(frame.stamp + delay_, newest_);
  Offload offload = frame.offload;
  const uint32_t tag = frame.vlan_stripped ? kVlanTag : 0;
  uint32_t bytes = wire_bytes(frame.length + tag);
  if (offload.gso != Gso::none && check_offload(frame.data, frame.length, offload)) {
    offload.header_length = static_cast<uint16_t>(offload.header_length + tag);
    bytes = carried_wire_bytes(frame.length + tag, offload);
  }
  // The stamp is of the last bit: the frame began its own length earlier, or when the link fell free.
  const Time own = static_cast<Time>(static_cast<uint64_t>(bytes) * 8 * kSecond / static_cast<uint64_t>(link_.rate()));
  return std::max(frame.stamp, link_.finish(frame.stamp - own, bytes)) + delay_;
}

void WirePort::give_back() {
  if (used_ > 0) port_->release(used_);
  used_ = 0;
  if (count_ == 0) first_ = 0;  // the same few places again and again stay in the caches
}

void WirePort::all_done() {
  outgoing_.clear();
  refused_.clear();
  unsent_bytes_ = 0;
}

// Counts the frames from `first` on that are discarded: all while the interface is not up, else those that waited for too long.
size_t WirePort::given_up(size_t first, Time now) {
  if (!up_) return outgoing_.size() - first;
  size_t count = 0;
  while (first + count < refused_.size() && now - refused_[first + count] >= kPatience) ++count;
  given_up_ += count;
  return count;
}

// The host has just refused the frame at `first`.
void WirePort::keep_from(size_t first, Time now) {
  if (first == outgoing_.size()) return all_done();
  const bool fresh = refused_.empty();
  for (size_t i = 0; i < first; ++i) unsent_bytes_ -= outgoing_[i].length;
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(first));
  refused_.erase(refused_.begin(), refused_.begin() + static_cast<std::ptrdiff_t>(std::min(first, refused_.size())));
  refused_.resize(outgoing_.size(), now);
  if (first > 0 || fresh) refusing_since_ = now;
  retry_at_ = now + retry_delay(now - refusing_since_);
}

}  // namespace weir
