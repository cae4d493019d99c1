// The buffer between a NIC's link and a host that takes data at its own pace: a slow receiver fills it, and then PFC is
// due. Frames are served in order at `drain` bits per second; occupancy is kept per priority.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/ring.h"
#include "base/types.h"

namespace weir {

struct ReceiveBufferParameters {
  int64_t size = 1'000'000;
  Rate drain = 0;
  int64_t xoff = 0;
  int64_t xon = 0;
};
void describe(auto& v, Of<ReceiveBufferParameters> auto& p) {
  v.type("NativeReceiveBuffer", "What a host that takes data at its own pace fills.");
  v("size", p.size, field::bytes("In all.", 0, 0x1p32));
  v("drain", p.drain, field::bps("At which the host takes data; 0: it keeps up, and nothing is held."));
  v("xoff", p.xoff, field::any("Of one priority, above which the peer is paused.", "bytes"));
  v("xon", p.xon, field::any("Of one priority, at or below which it is resumed.", "bytes"));
  v.rule(p.drain == 0 || p.xon <= p.xoff, "xon must not be above xoff");
}

class ReceiveBuffer {
 public:
  explicit ReceiveBuffer(const ReceiveBufferParameters& parameters)
      : parameters_(parameters), drain_(parameters.drain), held_(drain_ > 0 ? most() : 0) {}

  bool unlimited() const { return drain_ == 0; }
  // The host takes what comes from now on at that pace; 0: at its own.
  void slow(Rate drain) {
    drain_ = drain > 0 ? drain : parameters_.drain;
    if (drain_ > 0 && held_.empty() && held_.room() == 0) held_ = Ring<Held>(most());
  }
  // False when the frame does not fit.
  bool add(Time now, int priority, uint32_t bytes) {
    if (total_ + bytes > parameters_.size || held_.room() == 0) return false;
    busy_until_ = std::max(busy_until_, now) +
                  static_cast<Time>(static_cast<uint64_t>(bytes) * 8 * kSecond / static_cast<uint64_t>(drain_));
    held_.push({busy_until_, bytes, static_cast<uint8_t>(priority)});
    total_ += bytes;
    occupancy_[static_cast<size_t>(priority)] += bytes;
    return true;
  }
  // Lets the host take what it has finished with by `now`.
  void advance(Time now) {
    while (!held_.empty() && held_.front().done <= now) {
      const Held taken = held_.pop();
      total_ -= taken.bytes;
      occupancy_[taken.priority] -= taken.bytes;
    }
  }
  Time next_deadline() const { return held_.empty() ? kNever : held_.front().done; }
  bool above_xoff(int priority) const { return occupancy_[static_cast<size_t>(priority)] > parameters_.xoff; }
  bool below_xon(int priority) const { return occupancy_[static_cast<size_t>(priority)] <= parameters_.xon; }
  int64_t bytes() const { return total_; }

 private:
  struct Held {
    Time done = 0;
    uint32_t bytes = 0;
    uint8_t priority = 0;
  };
  // Number of frames that it holds at most.
  uint32_t most() const { return static_cast<uint32_t>(parameters_.size / kMinimumFrame + 1); }

  ReceiveBufferParameters parameters_;
  Rate drain_;
  Ring<Held> held_;
  Time busy_until_ = 0;
  int64_t total_ = 0;
  std::array<int64_t, kPriorities> occupancy_{};
};

}  // namespace weir
