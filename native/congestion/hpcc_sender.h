// HPCC at the sender: a window, and a rate beside it, that hold the busiest link of the path at a part eta of its capacity, by
// what switches tell of themselves (INT, wire/telemetry.h).
//
// Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019 (algorithm 1; section 3.3: parameters; section 5.1:
// their values). The authors' simulator, alibaba-edu/High-Precision-Congestion-Control (rdma-hw.cc), for what the paper leaves
// open.
//
//   at an acknowledgement, with hop i of its telemetry L' and that of the acknowledgement before, L:
//     u     = max over i of  min(L'.queue, L.queue) / (B T) + (L'.sent - L.sent) / (L'.time - L.time) / B
//     tau   = min(L'.time - L.time of that hop, T)
//     U     = (1 - tau/T) U + tau/T u
//     U >= eta, or inc_stage >= max_stage:  W = W_c eta / U + W_AI      and inc_stage = 0
//     else:                                 W = W_c + W_AI              and inc_stage += 1
//     once in a round-trip time, when a packet is acknowledged that was sent after the last time:
//       W_c = W, with the new inc_stage
//     rate  = W / T
//
// With N flows on a port, all of one T, the link is at U = eta + N W_AI / (B T) where they come to rest: below 1 no queue stands,
// and above the queue is (U - 1) B T. So N times W_AI should be less than (1 - eta) B T, as section 3.3 has it.
//
// Readings:
//   - W is bytes on the link, with FCS, preamble and gap, as B is of a link in Weir, and what switches count as sent.
//   - W_c begins at T times the rate that the flow begins with, the line rate or `initial_rate`, and W stays between one byte
//     and T times the line rate: the paper says so of the first window; the authors' code bounds the rate.
//   - U begins at 1, as in the authors' code; the first acknowledgement of a flow is only kept, and so is one whose path has
//     another number of hops. The paper's path ID is not in the header: where a path changes to another as long, one reading
//     is wrong.
//   - A port cannot send faster than its link: (L'.sent - L.sent) / (L'.time - L.time) counts as B at most. So such a
//     wrong reading does no more than a link in full use.
//   - Counters of a hop wrap. After a pause in which they might have, the next acknowledgement is only kept.
//   - The window is in bytes, as many packets as it takes to hold it are in flight, at least one: less than a packet is what the
//     rate is for. A loss changes nothing: the paper has none, by PFC.
//   - Acknowledgements are of each packet, but what waits for the link back goes as one: it has the newest telemetry.
//   - A hop is of the queue of the packet's priority; other priorities count in what the port has sent.
//
// Parameters: describe(), below. Sources of the defaults: src/congestion/hpcc.ts. T and all times in telemetry are of the wall's
// clock, and rates those of the wire: a slower link's are longer and lower by the same scale, and U is the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/describe.h"
#include "congestion/congestion_control.h"
#include "congestion/written.h"

namespace weir {

struct HpccParameters {
  double eta = 0.95;
  uint32_t max_stage = 5;
  int64_t additive_increase = 80;
  Time base_rtt = 13 * kMicrosecond;
};

void describe(auto& v, Of<HpccParameters> auto& p) {
  using field::above;
  using namespace written;
  v.type("NativeHpcc", "What senders of HPCC run on.");
  v.defaults();
  v("hpcc_eta", p.eta, above(percent("eta: part of the busiest link of a path that is to be in use; above 0.")));
  v("hpcc_max_stage", p.max_stage, whole("maxStage: round-trip times of additive increase alone, at most.", "count", 0, 1'000));
  v("hpcc_w_ai", p.additive_increase,
    checked(1, 1 << 20,
            size("W_AI: additive increase of the window. All flows of a port together should have less than (1 - eta) of rate "
                 "times `hpcc_base_rtt`.",
                 1, 1 << 20)));
  v("hpcc_base_rtt", p.base_rtt,
    above(time("T: base round-trip time of the network, a little more than the longest without queues.", kMicrosecond,
               10 * kSecond)));
}

// One per sending queue pair of a reliable connection. Parameters that change meanwhile count from the next event on.
class HpccSender : public CongestionControl {
 public:
  using Parameters = HpccParameters;
  static constexpr const char* kName = "hpcc";
  static constexpr uint8_t kHears = kHearsAcknowledgements | kHearsTelemetry;

  void configure(const HpccParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_sent(Time, uint32_t wire_bytes) { packet_bytes_ = std::max(packet_bytes_, wire_bytes); }
  void on_ack(const Ack& ack);

  bool limited() const { return window_ < most(); }
  Rate rate() const {
    return static_cast<Rate>(std::min(window_ * 8e9 / static_cast<double>(parameters_->base_rtt), line_rate_));
  }
  uint32_t window() const {
    return packet_bytes_ == 0 ? kNoWindow : static_cast<uint32_t>((window_ + packet_bytes_ - 1) / packet_bytes_);
  }
  // bytes on the link; full precision.
  double exact_window() const { return window_; }
  // U.
  double utilisation() const { return utilisation_; }
  ControllerState state() const { return {.window = packet_bytes_ == 0 ? 0 : window_ / packet_bytes_}; }

 private:
  bool measure(const Ack& ack);
  double most() const { return line_rate_ * static_cast<double>(parameters_->base_rtt) / 8e9; }

  const HpccParameters* parameters_ = nullptr;
  double line_rate_ = 0;
  double window_ = 0;     // W
  double reference_ = 0;  // W_c
  double utilisation_ = 1;
  std::unique_ptr<Telemetry> last_;  // L
  Time heard_at_ = 0;                // when it came
  uint32_t acknowledged_ = 0;        // packets; wraps
  uint32_t updates_at_ = 0;          // W_c is updated when more than so many are
  uint32_t packet_bytes_ = 0;        // bytes of the longest sent so far, on the link
  uint32_t stage_ = 0;
};

}  // namespace weir
