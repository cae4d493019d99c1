// NSCC at the sender, the network signalled congestion control of Ultra Ethernet: a window by marks and by the delay of queues,
// both of each packet.
//
// Source: Ultra Ethernet Specification 1.0, congestion management sublayer (CMS), NSCC; read by its authors' simulator,
// ultraethernet/uet-htsim (uec.cpp: initNsccParams, updateCwndOnAck_NSCC, updateCwndOnNack_NSCC and what they call).
//
//   a     = C R / (100 Gb/s 12 us), with C the line rate and R base_rtt: how much larger the network is than that which the
//           parameters are for
//   base  = the least round-trip time so far, also of what was trimmed, at most R;   maxwnd = max_window C base
//   delay = round-trip time - base of the newest packet that is acknowledged;   target = target R
//   avg  += delay_gain (delay - avg), of a delay above the target without a mark: delay_gain (base / 4 - avg)
//
//   at an acknowledgement of n packets, if no quick adaptation is at work:
//     not marked, delay < target    proportional increase   inc += alpha a n (target - delay) / 12 us; or, where there has been
//                                   no delay (below no_delay) for a whole window, fast increase: cwnd += fast_increase a n
//     not marked, delay >= target   fair increase           inc += fair_increase a n
//     marked,     delay < target    nothing: what is sprayed takes another way
//     marked,     delay >= target   multiplicative decrease, once in base, if avg > target:
//                                   cwnd *= max(1 - gamma (avg - target) / avg, 1 - max_decrease)
//   after adjust_packets packets, or R:   cwnd += inc / cwnd,  inc = 0;   once in R:   cwnd += eta a
//
//   quick adaptation: in each period of base + target, the packets that came through are counted. At its end, if one was trimmed
//     or lost, or the delay is above 4 targets, and fewer than maxwnd / 2^qa_gate came through: cwnd is as many as came, and what
//     was in flight then is ignored (marked acknowledgements, and what was trimmed) until as much has been heard of.
//   at a packet that was trimmed or lost: as a delay of R, marked; unless quick adaptation is at work, cwnd -= 1 packet
//   at a timeout: one packet less
//   always 1 <= cwnd <= maxwnd, where cwnd begins.
//
// With N flows on a port, each window grows by fair_increase a packets in a round-trip time as long as packets are not marked,
// and is cut once in one by how far the average delay is above the target where they are: the queue stands about where marking
// begins, and flows share it by the fair increase, the same for all.
//
// Readings:
//   - The window is in packets of the path MTU: the specification counts bytes, in steps of an MTU. a is worked out with bytes on
//     the link, as C is of a link in Weir.
//   - An RTT of packets that were sent twice is not known (Karn's rule): avg is taken for their delay.
//   - What was trimmed tells of the base alone, and its delay is R whatever it was, as in uet-htsim. What a switch has left of a
//     packet takes less time on the links behind it than the packet would have, so base may be lower by as much than that of any
//     whole packet. It passes the queue that the packet found full, which is why flows that never find that queue empty learn the
//     base by it.
//   - What is lost without having been trimmed is no more than one packet at a time (Loss).
//   - The receiver's penalty (rcv_cwnd_pen) is left out, and so is SLEEK: losses are found by trimming, by `reordering`, and by
//     the timer. Credits of receivers (RCCC) are another control.
//
// Parameters: describe(), below. Sources of the defaults: src/congestion/nscc.ts. All times are of the sender's own clock: a
// slower link's are longer by the same scale, and a is the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/describe.h"
#include "congestion/congestion_control.h"
#include "congestion/written.h"

namespace weir {

struct NsccParameters {
  Time base_rtt = 12 * kMicrosecond;
  double target = 0.75;
  double alpha = 4;
  double fair_increase = 5;
  double eta = 0.15;
  double fast_increase = 0.25;
  Time no_delay = kMicrosecond;
  double gamma = 0.8;
  double max_decrease = 0.5;
  double delay_gain = 0.0125;
  uint32_t adjust_packets = 8;
  uint32_t qa_gate = 3;
  double max_window = 1.5;
  Time reference_rtt = 12 * kMicrosecond;
};

void describe(auto& v, Of<NsccParameters> auto& p) {
  using field::above;
  using namespace written;
  v.type("NativeNscc", "What senders of NSCC run on.");
  v.defaults();
  v("nscc_base_rtt", p.base_rtt,
    above(time("The longest round-trip time of the network without queues. Windows begin at `nscc_max_window` times what it "
               "holds, and all increases grow with that.",
               kMicrosecond, 10 * kSecond)));
  v("nscc_target", p.target, above(real("Delay of queues that is aimed at, in `nscc_base_rtt`.", "base RTTs", 0.01, 100)));
  v("nscc_alpha", p.alpha,
    real("alpha: proportional increase of a window in a round-trip time, of a delay 12 us below the target.", "packets", 0,
         1'000));
  v("nscc_fi", p.fair_increase,
    real("fi: fair increase of a window in a round-trip time, where the delay is above the target and nothing is marked.",
         "packets", 0, 1'000));
  v("nscc_eta", p.eta, real("eta: increase in `nscc_base_rtt`, whatever is heard.", "packets", 0, 1'000));
  v("nscc_fi_scale", p.fast_increase,
    real("fi_scale: fast increase after a window without delay, for each packet that is acknowledged.", "packets", 0, 100));
  v("nscc_no_delay", p.no_delay, time("A shorter delay of queues is none.", 0, 10 * kSecond));
  v("nscc_gamma", p.gamma, percent("gamma: multiplicative decrease, times how far the average delay is above the target."));
  v("nscc_max_md", p.max_decrease, percent("One decrease takes this part of the window at most."));
  v("nscc_delay_alpha", p.delay_gain, above(percent("Gain of the average delay; above 0.")));
  v("nscc_adjust_packets", p.adjust_packets,
    whole("Acknowledged packets between two adjustments of the window.", "packets", 1, 65'536));
  v("nscc_qa_gate", p.qa_gate,
    checked(
        0, 31,
        whole("Quick adaptation: where less than 2^-nscc_qa_gate of the largest window came through, the window is what came.",
              "log2", 0, 31)));
  v("nscc_max_window", p.max_window, above(real("Largest window, in what the round-trip time holds.", "BDP", 0.01, 100)));
  v("reference_rtt", p.reference_rtt, above(field::ns("Of the network that the increases are for: 12 us, with 100 Gb/s.")));
}

// One per sending queue pair of a reliable connection. Parameters that change meanwhile count from the next event on.
class NsccSender : public CongestionControl {
 public:
  using Parameters = NsccParameters;
  static constexpr const char* kName = "nscc";
  static constexpr uint8_t kHears = kHearsAcknowledgements | kHearsTrims;

  void configure(const NsccParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_ack(const Ack& ack);
  void on_loss(const Loss& loss);
  void on_trimmed(const Trimmed& trimmed);

  uint32_t window() const { return static_cast<uint32_t>(cwnd_); }
  // Full precision.
  double exact_window() const { return cwnd_; }
  double most() const {
    const double packets = parameters_->max_window * line_ * static_cast<double>(base_) / (8.0 * packet_bytes_);
    return std::clamp(packets, 1.0, static_cast<double>(transport_window_));
  }
  Time average_delay() const { return static_cast<Time>(average_delay_); }
  ControllerState state() const { return {.window = cwnd_}; }

 private:
  double target() const { return parameters_->target * static_cast<double>(parameters_->base_rtt); }
  double scale() const;
  void learn(Time rtt) { base_ = std::min(base_, rtt); }
  void bound() { cwnd_ = std::clamp(cwnd_, 1.0, most()); }
  void average(double delay, bool marked);
  void increase(double packets, double delay);
  void decrease(Time now);
  void adjust(Time now);
  bool adapts(Time now, uint32_t in_flight, bool lost, bool marked, double delay);
  void give_up(Time now, uint32_t packets, uint32_t in_flight);

  const NsccParameters* parameters_ = nullptr;
  double line_ = 0;  // bits per ns
  double cwnd_ = 1;
  Time base_ = 0;
  double average_delay_ = 0;
  double increase_ = 0;        // inc, times the window
  Time period_ends_ = kNever;  // kNever: none has begun
  Time adjusted_at_ = 0;
  Time decreased_at_ = 0;
  uint32_t packet_bytes_ = 0;  // bytes of a packet on the link
  uint32_t transport_window_ = 1;
  uint32_t undelayed_ = 0;   // packets acknowledged in a row without delay
  uint32_t unadjusted_ = 0;  // packets since the last adjustment
  uint32_t came_ = 0;        // packets in this period
  uint32_t ignores_ = 0;     // packets to be heard of while quick adaptation is at work, and of which has been
  uint32_t ignored_ = 0;
  bool grows_fast_ = false;
  bool adapts_next_ = false;  // a packet was trimmed or lost
};

}  // namespace weir
