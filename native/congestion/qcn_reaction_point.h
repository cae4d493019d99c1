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
// Rate increase. Cycles last rpg_time_reset and rpg_byte_reset; after rpg_threshold (F) of them since the last cut, ai_cycle of
// that: half as long, unless a scenario asks what another T_AI would do ([S], V-B1), which is then that of both counters.
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
// Release as in rate_limiter.h.
//
// Readings:
//   - TR is the rate before the cut ([S] equation 2, [P], and [K]'s definition of TR). [K] prints equation 2, the cut, before
//     equation 3, TR = CR; taken in that order there would be nothing to recover.
//   - Extra fast recovery follows [K]: "consecutive F_b messages (i.e. CR has not increased meanwhile)". [P] and [Q] ask for the
//     byte counter's stage alone; increases by the timer then do not lower TR, and with the timer alone TR would never fall.
//   - The timer restarts with every cut, the byte counter only where TR = CR is set ([K]).
//   - A counter is in AI once five of its cycles have completed, and what the limiter does follows from the states of both ([K]:
//     "FR consists of 5 cycles", "after 5 cycles of FR have completed, the RP enters the AI phase", "in HAI if both ... are in
//     AI"; [S], VI: "when the Byte Counter passes 5 cycles as well as the Timer is triggered for 5 times"). So the fifth cycle of
//     a counter still recovers ([S] equations 10 and 18), and what completes next, of either counter, increases. [S], II, has
//     "larger than 5", which is the same of the cycle that a counter is in. [P] compares both counters with > after counting: an
//     increase by one counter is then additive, or hyper, only when the other has completed six. ns3-rdma, whose states have the
//     names of [Q]'s, compares stage < rpgThreshold after counting: four cycles recover.
//   - The first cycle after those is the shorter one already ([S] equation 19, [P]).
//   - i counts hyper increases since the cut ([S]: "i is the times of HAI after the last rate decrease"; [K]: "the ith time that
//     a cycle for either ... is completed"). In [P] and ns3-rdma it counts cycles of the slower counter, min(T, BC) - F, which at
//     high rates, where the timer's cycles are the longer ones by far, is much slower.
//   - Target rate reduction when the first cycle after a cut completes, before CR is averaged ([P]). [K] names no moment ("if TR
//     is greater than CR by 10 times"). From then on CR is half of TR or more, so no later increase finds any; the cuts
//     themselves, each of several in a row, could.
//   - The byte counter starts anew with each cycle ([P]): bytes beyond the end of a cycle do not shorten the next one.
//   - All cycles are jittered, the timer's too ([K], section 3.2).
//
// Parameters: describe(), below, by the names of IEEE8021-CN-MIB (802.1Q clause 17.7.13) without the prefix ieee8021Cn. Defaults
// are those of 802.1Q for 10 Gb/s. At 1 Gb/s both papers take 0.5 and 5 Mb/s for the increases; [K] takes 25 ms. CR never falls
// below 1 bit/s.
//
// Time: every call takes the current time, which never goes back. advance() performs what fell due up to and including `now` at
// its exact time and in order, and every on_*() begins with it: however rarely it is polled, the trajectory is the same to the
// last bit. Both counters draw from one stream, in the order of events.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/random.h"
#include "base/types.h"
#include "congestion/rate_limiter.h"
#include "congestion/written.h"

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
  double ai_cycle = 0.5;
};

constexpr auto words_of(QcnParameters::Variant) { return std::array{"qcn", "timer", "aimd"}; }
void describe(auto& v, Of<QcnParameters> auto& p) {
  using namespace written;
  v.type("NativeQcn", "What reaction points of QCN run on.");
  v("variant", p.variant, field::any("timer: QCN-T, aimd: QCN-AIMD."));
  v("rpgTimeReset", p.rpg_time_reset,
    time("Timer: time between rate increases in fast recovery while no CNM comes; afterwards rpgAiCycle of it.", kMicrosecond,
         100 * kSecond, "ms"));
  v("rpgByteReset", p.rpg_byte_reset,
    checked(
        0, 0x1p31,
        size(
            "Byte counter: bytes sent between rate increases in fast recovery while no CNM comes; afterwards rpgAiCycle of them.",
            1'000, 1e12)));
  v("rpgAiCycle", p.ai_cycle,
    field::above(percent(
        "A cycle of timer and byte counter after fast recovery, as a part of one in it; the standard halves. Not in the MIB.",
        0.01)));
  v("rpgThreshold", p.rpg_threshold, whole("Cycles of the byte counter or the timer before fast recovery ends.", "count", 1, 31));
  v("hyperThreshold", p.hyper_threshold, field::any("Cycles of the timer before hyper increase; below rpgThreshold: that."));
  v("rpgAiRate", p.rpg_ai_rate, rate("R_AI: step of the target rate in active increase.", 0));
  v("rpgHaiRate", p.rpg_hai_rate, rate("R_HAI: step i of the target rate in hyper-active increase is i times this.", 0));
  v("rpgMaxRate", p.rpg_max_rate, rate("Highest rate of the limiter; 0 means port speed.", 0));
  v("rpgMinRate", p.rpg_min_rate, rate("Lowest rate of the limiter.", 1'000));
  v("gd", p.gd,
    as("rpgGd", whole("Cut: CR <- CR (1 - |F_b| / 2^rpgGd), with |F_b| from 1 to 63.", "log2", 1, 15),
       field::fraction("G_d: part of the rate that a cut takes, per unit of F_b: 2^-rpgGd.")));
  v("rpgMinDecFac", p.rpg_min_dec_fac, percent("One cut leaves at least this part of the rate."));
  v("jitter", p.jitter, field::optional(field::below(field::fraction("Of each cycle."))));
}

// One per rate limiter.
class QcnReactionPoint : public RateLimiter<QcnParameters> {
 public:
  static constexpr const char* kName = "qcn";
  static constexpr uint8_t kHears = kHearsCnms;

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

  // Stage that decides what the next completed cycle does (aimd: always additive increase).
  Stage stage() const;
  ControllerState state() const { return {.target_rate = target_rate(), .stage = stage()}; }

 private:
  uint32_t timer_threshold() const;
  void start_limiter(double initial_rate);
  void release();
  void start_timer(Time now);
  void start_byte_counter();
  int64_t cycle(double full, uint32_t completed);
  void increase(Stage in);

  // A cache line for each, what it derives from included: a NIC has thousands.
  uint16_t hyper_increases_ = 0;  // hyper increases since the last cut; stays at its largest value
  uint32_t bytes_left_ = 0;       // bytes left of the byte counter's current cycle
  uint32_t timer_cycles_ = 0;     // T
  uint32_t byte_cycles_ = 0;      // BC
  Time timer_at_ = kNever;        // end of the timer's current cycle
  Random random_{0};
};

}  // namespace weir
