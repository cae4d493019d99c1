// TIMELY at the sender: a rate from how round-trip times change; and the form of it that has a fixed point ("patched TIMELY").
//
// Sources: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015 (section 3.1: what an RTT is;
// section 4, algorithm 1); Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016 (section 4:
// the fluid model, theorem 3: no fixed point; section 4.3, algorithm 2: patched TIMELY, theorem 5: its fixed point); the code
// that TIMELY's authors published (timely-code-snippet.cc), for what algorithm 1 leaves open.
//
//   at a completion event with the round-trip time rtt:
//     rtt_diff = (1 - alpha) rtt_diff + alpha (rtt - previous rtt),    gradient = rtt_diff / min_rtt
//     rtt < t_low:   rate += delta
//     rtt > t_high:  rate *= 1 - beta (1 - t_high / rtt)
//     in between, TIMELY:
//       gradient <= 0:  rate += N delta     N = hai_step at the hai_threshold-th gradient below 0 in a row and after; else 1
//       gradient > 0:   rate *= 1 - beta gradient
//     in between, patched:
//       w = 0 up to a gradient of -1/4, 1 from 1/4 on, 2 gradient + 1/2 in between;    e = (rtt - t_low) / t_low
//       rate = (1 - w) delta + rate (1 - beta w e)
//
// Fixed point: TIMELY has none that is unique. Where the gradient is 0 the queue may have any length between the thresholds, and
// rates of any proportions stay as they are. Patched, N flows on a link of C end at C / N each, and at
//     rtt = t_low (1 + N delta / (beta C)),
// which is the paper's q* = q' + N delta q' / (beta C) if all of the RTT but the queue is neglected, as its model does.
//
// Readings:
//   - The RTT is that of a packet: from when its first bit is on the sender's link to when its acknowledgement has arrived,
//     without the time that the packet takes on that link (section 3.1, with a packet in the place of a segment: packets are
//     paced by themselves, and each is acknowledged). Nothing is learnt of packets that were sent twice. Acknowledgements have
//     the priority of their data, so that queues of the way back count, too: the paper has them on a priority of their own.
//   - A completion event comes when `segment` bytes, as they are on the link, have been acknowledged since the last one, and not
//     before min_rtt has passed: as in the fluid model, whose time between two updates is max(segment / rate, min_rtt). (The
//     authors' code has one at each acknowledgement, and scales steps by the time since the last one.) So the faster of two flows
//     has more of all steps, and may take most of a link; with a segment of 0 all have as many.
//   - The first RTT is its own predecessor: gradient 0. So does the authors' code.
//   - Gradients below 0 are counted whatever the RTT is, as in the authors' code; there by the RTTs' own difference, here by the
//     smoothed one, which algorithm 1 says.
//   - No update takes more than half of the rate (the authors' code): algorithm 1 alone makes it negative at gradients above
//   1/beta.
//   - Losses change nothing: no source says what they should.
//
// In packets it keeps to its rate as all others do; the paper's NIC sends segments at line rate and waits between them.
//
// Parameters: describe(), below. Values and their sources: src/congestion/timely.ts. All times are of the sender's own clock: a
// slower link's are longer by the same scale.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "congestion/congestion_control.h"
#include "congestion/written.h"

namespace weir {

struct TimelyParameters {
  bool patched = false;
  double alpha = 0.875;
  double beta = 0.8;
  Rate delta = 10'000'000;
  Time t_low = 50 * kMicrosecond;
  Time t_high = 500 * kMicrosecond;
  Time min_rtt = 20 * kMicrosecond;
  uint32_t hai_threshold = 5;
  uint32_t hai_step = 5;
  uint64_t segment = 16'384;
  Rate min_rate = 10'000'000;
};

void describe(auto& v, Of<TimelyParameters> auto& p) {
  using field::above;
  using namespace written;
  v.type("NativeTimely", "What senders of TIMELY run on.");
  v("patched", p.patched, field::any("As \"ECN or Delay\" (CoNEXT 2016) has it, with a fixed point."));
  v("timely_alpha", p.alpha, above(percent("alpha: weight of the newest difference of two RTTs in the gradient; above 0.")));
  v("timely_beta", p.beta, percent("beta: multiplicative decrease."));
  v("timely_delta", p.delta, rate("delta: additive increase.", 0));
  v("timely_t_low", p.t_low,
    above(time("T_low: below it every RTT raises the rate; of `timely-patched` also the RTT at which decrease begins.",
               kMicrosecond, 10 * kSecond)));
  v("timely_t_high", p.t_high, above(time("T_high: above it every RTT lowers the rate.", kMicrosecond, 10 * kSecond)));
  v("timely_min_rtt", p.min_rtt,
    above(time("RTT that gradients are divided by, and time between two updates of the rate at least.", kMicrosecond,
               10 * kSecond)));
  v("timely_hai_threshold", p.hai_threshold,
    whole("Gradients below 0 in a row from which on an increase is `timely_hai_step` times delta (hyper-active increase).",
          "count", 1, 1'000));
  v("timely_hai_step", p.hai_step, whole("N: such an increase, in deltas.", "count", 1, 1'000));
  v("timely_segment", p.segment,
    size("Bytes of frames that are acknowledged between two updates at least; 0: as many as one acknowledgement says.", 0, 1e9));
  v("timely_min_rate", p.min_rate, rate("Lowest rate.", 1'000));
  v.rule(p.t_low <= p.t_high, "timely_t_low must be at most timely_t_high");
}

// One per sending queue pair of a reliable connection. Parameters that change meanwhile count from the next event on.
class TimelySender : public CongestionControl {
 public:
  using Parameters = TimelyParameters;
  static constexpr const char* kName = "timely";
  static constexpr uint8_t kHears = kHearsAcknowledgements;

  void configure(const TimelyParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_sent(Time, uint32_t wire_bytes) {
    if (wire_bytes > packet_bytes_) packet_bytes_ = wire_bytes;
  }
  void on_ack(const Ack& ack);

  bool limited() const { return rate_ < line_rate_; }
  // bit/s, rounded down.
  Rate rate() const { return static_cast<Rate>(rate_); }
  // Full precision, for comparison.
  double exact_rate() const { return rate_; }
  // rtt_diff / min_rtt.
  double gradient() const { return rtt_diff_ / static_cast<double>(parameters_->min_rtt); }
  // It has one rate only.
  ControllerState state() const { return {.target_rate = rate()}; }

 private:
  double updated(double rtt, double gradient) const;

  const TimelyParameters* parameters_ = nullptr;
  double line_rate_ = 0;
  double rate_ = 0;
  double rtt_diff_ = 0;        // ns
  double previous_rtt_ = -1;   // ns; below 0: none so far
  Time updated_at_ = 0;        // time of the last update, or of the start
  uint64_t completed_ = 0;     // bytes acknowledged since then
  uint32_t packet_bytes_ = 0;  // bytes of the longest sent so far, on the link
  uint32_t falling_ = 0;       // gradients below 0 in a row
};

}  // namespace weir
