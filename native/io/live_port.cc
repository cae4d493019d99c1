#include "io/live_port.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/native_error.h"
#include "base/types.h"
#include "io/kernel_socket.h"
#include "io/peer_program.h"

namespace weir {

LivePort::LivePort(std::unique_ptr<PacketPort> inner, const PortOptions& options, LiveTransmit& live, Umem& umem,
                   const PortClock& clock)
    : PortWrapper(std::move(inner)),
      options_(options),
      live_(live),
      umem_(umem),
      clock_(clock),
      port_(live.add_port()),
      kept_(inner_->capabilities().keeps_packets) {
  sent_.reserve(LiveTransmit::kMost);
  connect();
}

void LivePort::connect() {
  const auto inside = [this] {
    const unsigned index = ::if_nametoindex(options_.interface.c_str());
    if (index == 0) throw NativeError::from_errno("if_nametoindex", "cannot open " + options_.interface, "");
    live_.connect(port_, static_cast<int>(index));
    if (options_.live_for_xdp) asked_.emplace(open_socket(AF_INET, SOCK_DGRAM, 0, ""));
  };
  if (options_.namespace_path.empty()) {
    in_namespace(options_.namespace_fd, inside);
  } else {
    in_namespace(options_.namespace_path, inside);
  }
  longest_ = 0;
  wanted_ = !options_.live_for_xdp;
  if (wanted_) {
    test();
  } else {
    look();
  }
}

// Whether there is an XDP program at the other end, or no longer.
void LivePort::look() {
  const bool before = std::exchange(wanted_, peer_runs_xdp(asked_->get(), options_.interface));
  if (wanted_ && !before) test();
}

PortState LivePort::state() {
  const PortState state = inner_->state();
  if (state != PortState::up) return state;
  if (options_.live_for_xdp) look();
  if (wanted_ && refused_ && clock_.now >= ask_at_) test();
  return state;
}

// Sends a frame that nobody reads and no bridge passes on.
void LivePort::test() {
  constexpr auto kFrame =
      std::to_array<uint8_t>({0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e,                // nearest bridge
                              0x02, 0x57, 0x45, 0x00, 0x00, 0x00, 0x88, 0xb5});  // local experimental EtherType 1 (IEEE 802)
  const PacketId id = umem_.pool().allocate();
  if (id == kNoPacket) return;
  uint8_t* data = umem_.pool().data(id);
  std::fill_n(data, kMinimumFrame, uint8_t{0});
  std::ranges::copy(kFrame, data);
  const TxFrame frame{.data = data, .length = kMinimumFrame, .packet = id};
  const LiveTransmit::Done done = live_.run(port_, {&frame, 1});
  umem_.pool().free(id);
  refused_ = done.refused;
  ask_at_ = clock_.now + kAskAgain;
}

void LivePort::reopen() {
  give_back();
  inner_->reopen();
  connect();
}

void LivePort::give_back() {
  for (const PacketId id : sent_) umem_.pool().free(id);
  sent_.clear();
}

// Returns how many of the first ones can be live frames.
size_t LivePort::suited(std::span<const TxFrame> frames) const {
  size_t count = 0;
  const size_t most = std::min<size_t>(frames.size(), LiveTransmit::kMost);
  while (count < most && frames[count].length <= LiveTransmit::kLongest && umem_.holds(frames[count].packet) &&
         !frames[count].offload.pending()) {
    ++count;
  }
  return count;
}

LivePort::Way LivePort::way(size_t suited) const {
  if (suited == 0 || !inner_->passed_on()) return Way::socket;
  const bool usual = pause_ == 0 && full_until_ == INT64_MIN;
  const Time now = usual ? 0 : current();
  if (!usual && now < full_until_) return now < again_at_ ? Way::later : Way::live;
  return suited < kLeast || (!usual && now < paused_until_) ? Way::socket : Way::live;
}

// Learns from the outcome of a call for so many frames.
void LivePort::learn(const LiveTransmit::Done& done, size_t asked) {
  const bool full = done.sent < asked && !done.refused;
  pause_ = done.left_pages ? std::clamp(2 * pause_, kShortestPause, kLongestPause) : 0;
  if (full || done.left_pages) {
    const Time now = current();
    if (full) full_until_ = now + kFullFor;
    paused_until_ = now + pause_;
    again_at_ = done.left_pages ? now + kLeftEvery : now;
  } else if (full_until_ <= clock_.now) {
    full_until_ = INT64_MIN;
  }
}

Transmitted LivePort::transmit(std::span<const TxFrame> frames) {
  give_back();
  Transmitted done;
  while (done.sent < frames.size() && sent_.size() + LiveTransmit::kMost <= sent_.capacity()) {
    const auto rest = frames.subspan(done.sent);
    const size_t count = falls_back() ? 0 : suited(rest);
    const Way by = way(count);
    if (by == Way::socket) {
      const Transmitted inner = inner_->transmit(rest);
      return {done.sent + inner.sent, inner.refused};
    }
    if (by == Way::later) break;
    const LiveTransmit::Done live = live_.run(port_, rest.first(count));
    learn(live, count);
    for (const TxFrame& frame : rest.first(live.sent)) {
      if (kept_) sent_.push_back(frame.packet);
      longest_ = std::max(longest_, frame.length);
    }
    done.sent += live.sent;
    live_frames_ += live.sent;
    if (live.sent == count) continue;
    if (live.refused) {
      refused_ = true;
      ask_at_ = clock_.now + kAskAgain;
      continue;
    }
    // Its ring is full, or the frame is longer than the other end of the link takes: a socket finds out.
    const TxFrame& next = rest[live.sent];
    if (next.length <= longest_) break;
    const Transmitted inner = inner_->transmit({&next, 1});
    return {done.sent + inner.sent, inner.refused};
  }
  return done;
}

PortLosses LivePort::losses() {
  PortLosses losses = inner_->losses();
  losses.transmit_live = live_frames_;
  return losses;
}

}  // namespace weir
