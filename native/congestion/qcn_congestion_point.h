// The QCN congestion point: of one egress queue, which frames are sampled, and what their sources are told.
//
// Sources: Kabbani and Yasuda, "Data Center Quantized Congestion Notification (QCN): Implementation and Evaluation on NetFPGA"
// (section 2, equation 1 and table 1); IEEE 802.1Q (congestion point, from 802.1Qau); R. Pan, "QCN Pseudo Code", version 2.
//
// Every frame that joins the queue takes its bytes off a counter. The frame that brings the counter to 0 is sampled:
//     Q_off   = Q - Q_eq             Q: bytes in the queue, with this frame; Q_eq: cp_queue_set_point
//     Q_delta = Q - Q_old            Q_old: Q at the previous sample, 0 before the first
//     F_b     = -(Q_off + w Q_delta) w = 2^cp_weight
//     quantized = 0 if F_b >= 0, else floor(63 |F_b| / ((2 w + 1) Q_eq)), and 63 if that is more
// Then Q_old = Q, and the counter is set to the next period: that of table 1 for floor(quantized / 8),
//     150, 75, 50, 37.5, 30, 25, 21.5, 18.5 KB for cp_sample_base = 150 KB, else in proportion,
// times a factor that is uniform in [1 - jitter, 1 + jitter). Quantized 0: there is nothing to tell; else the source of the
// sampled frame gets a CNM.
//
// Readings:
//   - Quantisation is uniform over [0, (2 w + 1) Q_eq] and rounds down, so congestion below 1/63 of the range sends nothing; with
//     the defaults a step is 2,063 bytes (the papers say "quantized to 6 bits"). The pseudo code takes the most significant bits
//     of -F_b instead: a step is then a power of two, 2,048 bytes with the defaults, but 4,096 with Q_eq = 33 KB, where the
//     largest value is 40.
//   - Q_old is of the last sample, as in Shu et al. and in the pseudo code. The NetFPGA paper's text says "when the last feedback
//     message was generated", its section 3.2 sets Q_old whenever the counter expires, fed back or not.
//   - The sampled frame is the arriving one, as in section 3.2 of the NetFPGA paper and in 802.1Q; section 2 speaks of the frame
//     at the head of the queue.
//   - The counter is initialised anew at a sample (section 3.2): bytes beyond the end of a period do not shorten the next, and a
//     period is a minimum (802.1Q, cpSampleBase). Mean intervals are longer than table 1 by about half a frame.
//   - All periods are jittered, the first one too.
//
// Parameters: describe(), below. They have their MIB names (cp_queue_set_point is cpQSp), defaults are those of 802.1Q. w is
// 2^cp_weight, Q_eq cp_queue_set_point.
//
// It knows no time: queue and bytes are all it sees.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/random.h"

namespace weir {

struct QcnCongestionParameters {
  int64_t cp_queue_set_point = 26'000;
  int cp_weight = 1;
  uint32_t cp_sample_base = 150'000;
  double jitter = 0.15;
};

struct QcnFeedback {
  uint8_t quantized = 0;  // |F_b| in 1..63; 0: none is due
  int64_t offset = 0;     // Q_off, bytes
  int64_t delta = 0;      // Q_delta, bytes
};

void describe(auto& v, Of<QcnCongestionParameters> auto& p) {
  v.type("NativeCongestionPoint", "What congestion points of QCN run on.");
  v("queue_set_point", p.cp_queue_set_point, field::bytes("cpQSp.", 100, INT32_MAX));
  v("weight", p.cp_weight, field::within(-10, 10, "cpW.", "log2"));
  v("sample_base", p.cp_sample_base, field::bytes("cpSampleBase: longest sampling period.", 10'000));
  v("jitter", p.jitter, field::optional(field::below(field::fraction("Of each period."))));
}

// One per egress queue of a congestion notification priority.
class QcnCongestionPoint {
 public:
  // Must be called before all else. `shared` must outlive this object, and whatever it becomes must pass check(). Throws as
  // check() does.
  void configure(const QcnCongestionParameters* shared, Random random);

  // It goes on by these, under the same terms.
  void follow(const QcnCongestionParameters* shared) { parameters_ = shared; }

  // A frame of `bytes` joined the queue, which then holds `queue_bytes`, this frame among them. The feedback for its source, if
  // any is due.
  QcnFeedback on_enqueue(int64_t queue_bytes, uint32_t bytes) {
    bytes_left_ -= bytes;
    return bytes_left_ > 0 ? QcnFeedback{} : sample(queue_bytes);
  }

  // Frames sampled, with feedback or without.
  uint64_t samples() const { return samples_; }

 private:
  QcnFeedback sample(int64_t queue_bytes);
  int64_t period(uint8_t quantized);

  const QcnCongestionParameters* parameters_ = nullptr;
  Random random_{0};
  int64_t bytes_left_ = 0;  // bytes until the next sample
  int64_t queue_old_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace weir
