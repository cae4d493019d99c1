// The congestion point: RED/ECN marking of packets by the length of an egress queue.
//
// Source: DCQCN, SIGCOMM 2015, section 3.1 figure 5 and equation (5), with q the queue length in bytes:
//
//   p(q) = 0                                     q <= Kmin
//          Pmax * (q - Kmin) / (Kmax - Kmin)     Kmin < q <= Kmax
//          1                                     q >  Kmax
//
// Kmin == Kmax gives DCTCP's cut-off: never up to K, always above it (Pmax then plays no part).
//
// Parameters: describe(), below. Defaults are the paper's (section 5.2), which marks on the instantaneous queue; RED's usual
// weight is 0.002.
//
// Averaged: q is RED's moving average (Floyd and Jacobson 1993, equation 1), avg += w * (q - avg) at each packet looked at.
// Their correction for idle time (m small packets that might have arrived) is left out: it needs a typical transmission
// time, and a shaped queue that was idle is brought down by its own next arrivals.
// Marks are independent draws, so there is no "count since the last mark" (RED's uniform spacing) either: equation (5) has none.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/random.h"

namespace weir {

struct RedParameters {
  uint64_t kmin = 5'000;
  uint64_t kmax = 200'000;
  double pmax = 0.01;
  bool averaged = false;
  double weight = 0.002;
};
void describe(auto& v, Of<RedParameters> auto& p) {
  v.type("NativeRed", "How a queue is marked.");
  v("kmin", p.kmin, field::bytes("Up to this queue nothing is marked."));
  v("kmax", p.kmax, field::bytes("Above this queue everything is."));
  v("pmax", p.pmax, field::fraction("Probability at kmax."));
  v("averaged", p.averaged, field::any("By the moving average of the queue."));
  v("weight", p.weight, field::above(field::fraction("Of a new length in that average.")));
  v.rule(p.kmin <= p.kmax, "kmin must not be above kmax");
}

// The marking probability for a queue of `queue_bytes`: equation (5).
inline double red_probability(const RedParameters& parameters, double queue_bytes) {
  const double kmin = static_cast<double>(parameters.kmin);
  const double kmax = static_cast<double>(parameters.kmax);
  if (queue_bytes > kmax) return 1;
  if (queue_bytes <= kmin) return 0;
  return parameters.pmax * (queue_bytes - kmin) / (kmax - kmin);
}

// One per marked egress queue, of parameters that pass check().
class RedMarker {
 public:
  RedMarker() = default;
  explicit RedMarker(const RedParameters& parameters) : parameters_(parameters) {}

  // Called once for each packet of the queue, ECN-capable or not (the average counts them all), with the bytes queued as
  // the caller defines them (ahead of the packet, at enqueue). True: set CE if the packet is ECN-capable.
  // Draws from `random` only where 0 < p < 1.
  bool mark(uint64_t queue_bytes, Random& random) {
    if (!parameters_.averaged && queue_bytes <= parameters_.kmin) return false;
    return draw(queue_bytes, random);
  }

  // The moving average in bytes; 0 unless averaged.
  double average() const { return average_; }

 private:
  bool draw(uint64_t queue_bytes, Random& random) {
    double length = static_cast<double>(queue_bytes);
    if (parameters_.averaged) {
      average_ += parameters_.weight * (length - average_);
      length = average_;
    }
    const double probability = red_probability(parameters_, length);
    if (probability <= 0) return false;
    return probability >= 1 || random.uniform() < probability;
  }

  RedParameters parameters_;
  double average_ = 0;
};

}  // namespace weir
