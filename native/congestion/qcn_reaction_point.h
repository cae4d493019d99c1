// The QCN reaction point: the rate of one rate limiter, from congestion notification messages (CNMs), time and bytes.
//
// Sources: Kabbani and Yasuda, "Data Center Quantized Congestion Notification (QCN): Implementation and Evaluation on NetFPGA"
// (section 2), below [K]; Shu et al., "Analysing Convergence of Quantized Congestion Notification in Data Center Ethernet"
// (section II; the variants: V-B and VI), [S]; R. Pan, "QCN Pseudo Code", version 2, [P]; IEEE 802.1Q (from 802.1Qau), [Q].
//
// State: current rate CR, target rate TR; T and BC, the cycles of the timer and of the byte counter completed since the last cut.
// A limiter is either off (it sends at line rate and nothing runs) or limited. It starts with the first CNM, from the line rate;
// or with start() below the rate of release, where TR = CR = the initial rate: there is nothing to recover, so the first
// rpg_threshold cycles leave the rate where it is.
//
// Rate decrease, at each CNM with quantized feedback F_b in 1..63, in this order:
//     if T != 0 or BC != 0:  TR = CR, and the byte counter restarts      (else: extra fast recovery)
//     CR = max(CR (1 - G_d F_b), rpg_min_dec_fac CR, rpg_min_rate)
//     T = BC = 0; the timer restarts.
//
// Rate increase. Cycles last rpg_time_reset and rpg_byte_reset; after rpg_threshold (F) of them since the last cut, half as long.
// Each is jittered by a draw of its own, uniform in [1 - jitter, 1 + jitter). When a counter completes a cycle, the limiter's
// stage says what that does; with H = max(F, hyper_threshold), and T and BC as they were until then:
//     T <  F and BC <  F     fast recovery:       I = 0
//     T >= H and BC >= F     hyper increase:      I = i R_HAI, for the i-th time since the last cut
//     otherwise              additive increase:   I = R_AI
// The cycle is counted, the counter's next one begins, and then
//     if (T = 1 or BC = 1) and TR > 10 CR:  TR = TR / 8                  (target rate reduction)
//     else                                  TR = min(TR + I, line rate)
//     CR = (TR + CR) / 2
//
// Variants.
//   qcn     the above.
//   timer   QCN-T [S, VI]: the timer alone. T < F: fast recovery; T >= H: hyper increase; else additive increase.
//           Set rpg_time_reset = t (2.4 ms at 1 Gb/s) and hyper_threshold = 15 ms x 5 / t.
//   aimd    QCN-AIMD [S, equation 27]: the byte counter alone, without fast recovery; all cycles are full. TR = CR = CR + R_AI.
//           The byte counter restarts at a cut by the same rule.
//
// Release: when an increase brings CR to within 1/4096 of rpg_max_rate (or of the line rate), the limiter is off. CR closes half
//   the distance each time and would never arrive. Hardware arrives because its rates have a granularity; here the resolution is
//   relative to the line rate, because rates may be scaled down on the wire and a scaled run must release after the same number
//   of steps.
//
// Readings:
//   - TR is the rate before the cut ([S] equation 2, [P], and [K]'s definition of TR). [K] prints equation 2, the cut, before
//     equation 3, TR = CR; taken in that order there would be nothing to recover.
//   - Extra fast recovery follows [K]: "consecutive F_b messages (i.e. CR has not increased meanwhile)". [P] and [Q] ask for the
//     byte counter's stage alone; increases by the timer then do not lower TR, and with the timer alone TR would never fall.
//   - The timer restarts with every cut, the byte counter only where TR = CR is set ([K]).
//   - A counter is in AI once five of its cycles have completed, and what the limiter does follows from the states of both ([K]:
//   "FR
//     consists of 5 cycles", "after 5 cycles of FR have completed, the RP enters the AI phase", "in HAI if both ... are in AI";
//     [S], VI: "when the Byte Counter passes 5 cycles as well as the Timer is triggered for 5 times"). So the fifth cycle of a
//     counter still recovers ([S] equations 10 and 18), and what completes next, of either counter, increases. [S], II, has
//     "larger than 5", which is the same of the cycle that a counter is in. [P] compares both counters with > after counting: an
//     increase by one counter is then additive, or hyper, only when the other has completed six. ns3-rdma, whose states have the
//     names of [Q]'s, compares stage < rpgThreshold after counting: four cycles recover.
//   - The first cycle after those is half as long already ([S] equation 19, [P]).
//   - i counts hyper increases since the cut ([S]: "i is the times of HAI after the last rate decrease"; [K]: "the ith time that
//   a
//     cycle for either ... is completed"). In [P] and ns3-rdma it counts cycles of the slower counter, min(T, BC) - F, which at
//     high rates, where the timer's cycles are the longer ones by far, is much slower.
//   - Target rate reduction when the first cycle after a cut completes, before CR is averaged ([P]). [K] names no moment ("if TR
//   is
//     greater than CR by 10 times"). From then on CR is half of TR or more, so no later increase finds any; the cuts themselves,
//     each of several in a row, could.
//   - The byte counter starts anew with each cycle ([P]): bytes beyond the end of a cycle do not shorten the next one.
//   - All cycles are jittered, the timer's too ([K], section 3.2).
//
// Parameters, defaults of 802.1Q for 10 Gb/s. At 1 Gb/s both papers take 0.5 and 5 Mb/s; [K] takes 25 ms.
//   field (MIB name)                     paper   unit      default     meaning
//   variant                              -       -         qcn         as above
//   rpg_time_reset (rpgTimeReset)        -       ns        15 ms       cycle of the timer; 0: off
//   rpg_byte_reset (rpgByteReset)        -       bytes     150,000     cycle of the byte counter, wire bytes, up to 2^31; 0: off
//   rpg_threshold (rpgThreshold)         5       count     5           F, cycles of fast recovery
//   hyper_threshold                      -       count     5           cycles of the timer before hyper increase; below F: F
//   rpg_ai_rate (rpgAiRate)              R_AI    bit/s     5 M         additive increase (AI_INC)
//   rpg_hai_rate (rpgHaiRate)            R_HAI   bit/s     50 M        hyper increase (HAI_INC)
//   rpg_max_rate (rpgMaxRate)            -       bit/s     0           released when reached; 0: line rate
//   rpg_min_rate (rpgMinRate)            -       bit/s     5 M         floor of CR (never below 1 bit/s)
//   gd (rpgGd)                           G_d     fraction  1/128       of CR, per unit of F_b
//   rpg_min_dec_fac (rpgMinDecFac)       -       fraction  0.5         a cut leaves at least this part of CR
//   jitter                               15%     fraction  0.15        of each cycle; 0: none
//
// Time: every call takes the current time, which never goes back. advance() performs what fell due up to and including `now` at
// its exact time and in order, and every on_*() begins with it: however rarely it is polled, the trajectory is the same to the
// last bit. Both counters draw from one stream, in the order of events.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/types.h"
#include "congestion/congestion_control.h"

namespace weir {

struct QcnParameters {
  enum class Variant : uint8_t { qcn, timer, aimd };
  Variant variant = Variant::qcn;
  Time rpg_time_reset = 15 * kMillisecond;
  uint64_t rpg_byte_reset = 150'000;
  uint32_t rpg_threshold = 5;
  uint32_t hyper_threshold = 5;
  Rate rpg_ai_rate = 5'000'000;
  Rate rpg_hai_rate = 50'000'000;
  Rate rpg_max_rate = 0;
  Rate rpg_min_rate = 5'000'000;
  double gd = 1.0 / 128;
  double rpg_min_dec_fac = 0.5;
  double jitter = 0.15;
};

// Throws NativeError INVALID_CONFIG for a parameter outside its range (fractions 0..1, jitter below 1, periods and rates >= 0).
void check(const QcnParameters& parameters);

// One per rate limiter.
class QcnReactionPoint : public CongestionControl {
 public:
  using Parameters = QcnParameters;
  using Stage = IncreaseStage;
  static constexpr const char* kName = "qcn";
  static constexpr uint8_t kHears = kHearsCnms;

  // Release resolution: see above.
  static constexpr double kReleaseResolution = 1.0 / 4096;

  // The limiter is then off.
  void configure(const QcnParameters& shared, const FlowTerms& terms);

  // All state is dropped. Limited if `initial_rate` (bit/s) is below the rate of release.
  void start(Time now, Rate initial_rate);
  // A CNM for this reaction point arrived. One with a quantized feedback of 0 does nothing.
  void on_cnm(Time now, uint8_t quantized_feedback);
  // A frame of this limiter left; counted only while limited.
  void on_sent(Time now, uint32_t wire_bytes);
  // Catches up to `now`.
  void advance(Time now);

  // When rate() may change next if nothing is received or sent: call advance() then. kNever when off.
  Time next_deadline() const { return timer_at_; }

  // CR in bit/s, rounded down; the line rate when off.
  Rate rate() const { return static_cast<Rate>(current_rate_); }
  // TR in bit/s, rounded down.
  Rate target_rate() const { return static_cast<Rate>(target_rate_); }
  bool limited() const { return limited_; }
  // What the next cycle to be completed does (aimd: always additive increase).
  Stage stage() const;
  ControllerState state() const { return {.target_rate = target_rate(), .stage = stage()}; }
  // Full precision, for comparison.
  double exact_rate() const { return current_rate_; }
  double exact_target_rate() const { return target_rate_; }

 private:
  double release_rate() const;
  double floor_rate() const;
  uint32_t timer_threshold() const;
  void start_limiter(double initial_rate);
  void release();
  void start_timer(Time now);
  void start_byte_counter();
  int64_t cycle(double full, uint32_t completed);
  void increase(Stage in);

  // A cache line for each: a NIC has thousands.
  const QcnParameters* parameters_ = nullptr;
  Random random_{0};
  double line_rate_ = 0;
  double current_rate_ = 0;
  double target_rate_ = 0;
  Time timer_at_ = kNever;        // end of the timer's current cycle
  uint32_t bytes_left_ = 0;       // of the byte counter's current cycle
  uint32_t timer_cycles_ = 0;     // T
  uint32_t byte_cycles_ = 0;      // BC
  uint16_t hyper_increases_ = 0;  // since the last cut; stays at its largest value
  bool limited_ = false;
};

}  // namespace weir
