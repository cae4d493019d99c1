// Swift at the sender: a window of packets in flight that holds the delay of packets at a target; below one packet, a rate.
//
// Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020 (algorithm
// 1; section 3.1: delays; section 3.5: the target). Broadcom's simulator csg-htsim (sim/swift.cpp) for values that the paper does
// not print.
//
//   target = base_target + hops hop_scaling + clamp(a / sqrt(cwnd) + b, 0, fs_range)
//            a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),    b = -a / sqrt(fs_max_cwnd)
//   at an acknowledgement of n packets with the delay d:
//     d < target:  cwnd += ai n / cwnd, or ai n where cwnd < 1
//     else, if the last decrease was a round-trip time ago or more:
//                  cwnd *= max(1 - beta (d - target) / d, 1 - max_mdf)
//   at a loss, likewise once in a round-trip time:   cwnd *= 1 - max_mdf
//   at a timeout: as at a loss; at the retx_reset_threshold-th in a row and after: cwnd = min_cwnd
//   always min_cwnd <= cwnd <= max_cwnd.
//   cwnd < 1: one packet in flight at most, and packets are rtt / cwnd apart.
//
// With N flows on a port the sum of windows holds what fits into the target: flows with small windows have a longer target and so
// take a part of those with larger ones ("flow scaling"). The delay settles where it is the target of its own C delay / N
// packets.
//
// Readings:
//   - The delay is the fabric's: from when the packet's first bit is on the sender's link to when its acknowledgement is here.
//     The paper takes off what the receiving host spends before it acknowledges, and has a second window for delays of hosts: a
//     NIC of Weir acknowledges at once, and has no such delay to tell of. Acknowledgements have the priority of their data:
//     queues of the way back count, too.
//   - hops is a parameter: the paper takes it from the TTL, which bridges leave alone.
//   - An RTT of packets that were sent twice is not known (Karn's rule): their acknowledgement changes nothing.
//   - A decrease is what makes the window smaller: one that is held off by the time of the last, or by min_cwnd, is none.
//   - The round-trip time is the newest one that is known; 0 before the first.
//   - The window grows with each acknowledgement, also where it is not what holds the sender back: algorithm 1 does not ask.
//
// Parameters: describe(), below. Sources of the defaults: src/congestion/swift.ts. All times are of the sender's own clock: a
// slower link's are longer by the same scale.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/describe.h"
#include "congestion/congestion_control.h"
#include "congestion/written.h"

namespace weir {

struct SwiftParameters {
  double ai = 1;
  double beta = 0.8;
  double max_mdf = 0.5;
  Time base_target = 20 * kMicrosecond;
  Time hop_scaling = 3'053;
  uint32_t hops = 1;
  Time fs_range = 100 * kMicrosecond;
  double fs_min_cwnd = 0.1;
  double fs_max_cwnd = 100;
  double min_cwnd = 0.01;
  double max_cwnd = 1'000;
  double initial_window = 10;
  uint32_t retx_reset_threshold = 5;
};

void describe(auto& v, Of<SwiftParameters> auto& p) {
  using field::above;
  using namespace written;
  v.type("NativeSwift", "What senders of Swift run on.");
  v.defaults();
  v("swift_ai", p.ai, real("ai: additive increase in a round-trip time.", "packets", 0, 1'000));
  v("swift_beta", p.beta, percent("beta: multiplicative decrease, times how far the delay is above the target."));
  v("swift_max_mdf", p.max_mdf, percent("One decrease takes this part of the window at most, and a loss this part."));
  v("swift_base_target", p.base_target,
    above(time("Target delay, there and back, without hops and flow scaling.", kMicrosecond, 10 * kSecond)));
  v("swift_hop_scaling", p.hop_scaling, time("Target delay of each hop.", 0, 10 * kSecond));
  v("swift_hops", p.hops,
    whole("Hops of a path, its switches: the paper takes them from the TTL, which bridges leave alone.", "count", 0, 64));
  v("swift_fs_range", p.fs_range,
    time("Flow scaling: what small windows add to the target at most; 0 switches it off.", 0, 10 * kSecond));
  v("swift_fs_min_cwnd", p.fs_min_cwnd, above(real("Window at which they do.", "packets", 0.001, 65'536)));
  v("swift_fs_max_cwnd", p.fs_max_cwnd, above(real("Window from which on they add nothing.", "packets", 0.001, 65'536)));
  v("swift_min_cwnd", p.min_cwnd,
    above(real("Lowest window; below 1 packets are paced a round-trip time over the window apart.", "packets", 0.001, 65'536)));
  v("swift_max_cwnd", p.max_cwnd, above(real("Highest window.", "packets", 0.001, 65'536)));
  v("swift_initial_cwnd", p.initial_window, above(real("Window at the start.", "packets", 0.001, 65'536)));
  v("swift_retx_reset_threshold", p.retx_reset_threshold,
    whole("Timeouts in a row after which the window is the lowest.", "count", 1, 1'000));
  v.rule(p.fs_min_cwnd < p.fs_max_cwnd, "swift_fs_min_cwnd must be below swift_fs_max_cwnd");
  v.rule(p.min_cwnd <= p.max_cwnd, "swift_min_cwnd must be at most swift_max_cwnd");
}

// One per sending queue pair of a reliable connection. Parameters that change meanwhile count from the next event on, those of
// flow scaling from the next start() on.
class SwiftSender : public CongestionControl {
 public:
  using Parameters = SwiftParameters;
  static constexpr const char* kName = "swift";
  static constexpr uint8_t kHears = kHearsAcknowledgements;

  void configure(const SwiftParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_sent(Time, uint32_t wire_bytes) { packet_bytes_ = std::max(packet_bytes_, wire_bytes); }
  void on_ack(const Ack& ack);
  void on_loss(const Loss& loss);

  // Paced, because less than one packet may be in flight.
  bool limited() const { return cwnd_ < 1 && rtt_ > 0; }
  // bit/s; a packet in rtt / cwnd.
  Rate rate() const;
  uint32_t window() const { return std::max(1u, static_cast<uint32_t>(cwnd_)); }
  // Full precision.
  double exact_window() const { return cwnd_; }
  // Delay, in ns, that a window of `cwnd` is to have.
  double target(double cwnd) const;
  ControllerState state() const { return {.window = cwnd_}; }

 private:
  bool may_decrease(Time now) const { return now - decreased_at_ >= rtt_; }
  void set(Time now, double cwnd);

  const SwiftParameters* parameters_ = nullptr;
  double line_rate_ = 0;
  double most_ = 1;
  double fs_alpha_ = 0;
  double fs_beta_ = 0;
  double cwnd_ = 1;
  Time rtt_ = 0;
  Time decreased_at_ = 0;
  uint32_t packet_bytes_ = 0;  // bytes of the longest sent so far, on the link
  uint32_t timeouts_ = 0;      // timeouts in a row
};

}  // namespace weir
