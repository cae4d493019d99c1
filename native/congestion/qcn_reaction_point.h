// The QCN reaction point: the rate of one rate limiter, from congestion notification messages (CNMs), time and bytes.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/types.h"

namespace weir {

struct QcnParameters {
  enum class Variant : uint8_t { qcn, timer, aimd };
  Variant variant = Variant::qcn;
  Time rpg_time_reset = 15 * kMillisecond;
  uint64_t rpg_byte_reset = 150'000;
  uint32_t rpg_threshold = 5;
  uint32_t hyper_threshold = 5;
  enum class HyperScale : uint8_t { increases, cycles };
  HyperScale hyper_scale = HyperScale::increases;
  Rate rpg_ai_rate = 5'000'000;
  Rate rpg_hai_rate = 50'000'000;
  Rate rpg_max_rate = 0;
  Rate rpg_min_rate = 5'000'000;
  double gd = 1.0 / 128;
  double rpg_min_dec_fac = 0.5;
  double jitter = 0.15;
};

// One per rate limiter.
class QcnReactionPoint {
 public:
  enum class Stage : uint8_t { fast_recovery, additive_increase, hyper_increase };

  // Release resolution: see above.
  static constexpr double kReleaseResolution = 1.0 / 4096;

  // To be called before all else; the limiter is then off. `shared` must outlive this object; `line_rate` > 0. Throws NativeError
  // INVALID_CONFIG for a parameter outside its range.
  void configure(const QcnParameters* shared, Rate line_rate, Random random);

  // All state is dropped. Limited if `initial_rate` (bit/s) is below the rate of release.
  void start(Time now, Rate initial_rate);
  // A CNM for this reaction point arrived, with a quantized feedback of 1..63; 0 does nothing.
  void on_cnm(Time now, uint8_t quantized_feedback);
  // A frame of this limiter left; counted only while limited.
  void on_sent(Time now, uint32_t wire_bytes);
  // Catches up to `now`.
  void advance(Time now);

  // When rate() may change next if nothing is received or sent: call advance() then. kNever when unlimited.
  Time next_deadline() const { return timer_at_; }

  // CR in bit/s, rounded down; the line rate when unlimited.
  Rate rate() const { return static_cast<Rate>(current_rate_); }
  // TR in bit/s, rounded down.
  Rate target_rate() const { return static_cast<Rate>(target_rate_); }
  bool limited() const { return limited_; }
  // The stage of the last increase since the last cut; fast recovery when there was none.
  Stage stage() const;
  // Full precision, for comparison.
  double exact_rate() const { return current_rate_; }
  double exact_target_rate() const { return target_rate_; }

 private:
  double release_rate() const;
  double floor_rate() const;
  void start_limiter(double initial_rate);
  void release();
  void start_timer(Time now);
  void start_byte_counter();
  void increase();
  double jitter();

  const QcnParameters* parameters_ = nullptr;
  Random random_{0};
  double line_rate_ = 0;
  double current_rate_ = 0;
  double target_rate_ = 0;
  Time timer_at_ = kNever;        // end of the timer's current cycle
  uint32_t bytes_left_ = 0;       // of the byte counter's current cycle
  uint32_t timer_cycles_ = 0;     // T
  uint32_t byte_cycles_ = 0;      // BC
  uint16_t hyper_increases_ = 0;  // since the last cut
  bool limited_ = false;
};

}  // namespace weir
