// The DCQCN reaction point: the sending rate of one queue pair, from congestion notification packets (CNPs), time and bytes.
//
// Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 (section 3.1, figure 7), which takes
// rate increase from QCN (IEEE 802.1Qau); for Form::slotted, Mellanox, "Understanding DC-QCN Algorithm for RoCE".
//
// State: current rate R_C, target rate R_T, alpha; T and BC, the expirations of the rate timer and of the byte counter since
// the last cut. A queue pair is either unlimited (it sends at line rate and nothing runs) or limited.
//
// The limiter starts with the first CNP of an unlimited queue pair, from the line rate; or with start() below the rate of
// release, where R_T = R_C = the initial rate: there is nothing to recover, so the first F expirations leave the rate where it
// is.
//
// Alpha is initial_alpha_value at start(), and alpha_decays_at_line_rate says what it does while the queue pair is unlimited.
// True, as section 3.1 has it: what it does when limited; no CNP, no matter at what rate, lets it decay, and neither a release
// nor a new limiter touches it. False, as mlx5 has it ("when receiving the first CNP for a flow"): there is no alpha at line
// rate, and every limiter starts with initial_alpha_value.
//
// Rate decrease, equation (1). Form::paper, at each CNP, in this order:
//     R_T   = R_C                                     (subject to the clamp rules below)
//     R_C   = max(R_C (1 - alpha rate_decrease_factor), rpg_min_dec_fac R_C, rpg_min_rate)
//     alpha = (1 - g) alpha + g                       (after the cut, as equation (1) lists it; ns3-rdma does it before)
//     T = BC = 0; byte counter, rate timer and alpha timer restart.
//   Alpha, equation (2): alpha = (1 - g) alpha at each dce_tcp_rtt (K) without a CNP.
//   Form::slotted, two free-running trains of slots that start with alpha: with start(), or with each limiter. A CNP only sets a
//   bit in each; several in one slot count once; one that arrives on a boundary belongs to the slot that begins there.
//     end of a slot of dce_tcp_rtt:                 alpha = (1 - g) alpha + g [a CNP arrived]
//     end of a slot of rate_reduce_monitor_period:  if a CNP arrived, R_T and R_C as above, T = BC = 0, byte counter and rate
//                                                   timer restart. The first cut thus comes one slot after the first CNP.
//
// Rate increase, equations (3) and (4), both forms. Each rpg_time_reset since the last restart T += 1, each rpg_byte_reset bytes
// BC += 1, and then, for the counter that expired:
//     max(T, BC) <= F    fast recovery:                          R_C = (R_T + R_C) / 2
//     min(T, BC) >  F    hyper increase:     R_T += i R_HAI,     R_C = (R_T + R_C) / 2,   i = min(T, BC) - F or 1
//     otherwise          additive increase:  R_T += R_AI,        R_C = (R_T + R_C) / 2
//   Counters do not restart each other, and R_C follows R_T, in both forms: as in QCN. R_T never exceeds the line rate.
//   Mellanox's overview, which calls its account simplified, has other rules; each is an option of its own, for either form:
//     increase_restarts_counters   an increase comes a period or some bytes "since previous rate increase": whichever counter
//                                  expires, both restart. Bytes of the packet that the increase came with count for the next one.
//     stage_by_increases           "after the number of rate increase events in a phase passed predefined threshold, the logic
//                                  moves to the next phase": with n = T + BC, n <= F is fast recovery, n <= 2F additive, and
//                                  beyond hyper increase, whose i is the position among the increases of its phase, n - 2F.
//     increase_raises_rate         "the rate is increased by a constant value": R_C += R_AI or R_HAI in the place of (4), and R_T
//                                  is at least R_C. A constant does not scale, so hyper_increase_scales is refused beside it.
//   T and BC count on under all of them: clamp_tgt_rate asks which of the two there was.
//   Reading of figure 7: the text asks for "F = 5 successive iterations" of fast recovery, so the counter is incremented first
//   and the F-th expiration still recovers. ns3-rdma tests stage < F after incrementing (F - 1 steps) and hyper at both >= F;
//   HPCC's ns-3 does F steps, but has only the timer, whose expirations after F + 1 alone are hyper: stage_by_increases with its
//   F of 1; else with R_HAI = R_AI the two agree.
//
// Release as in rate_limiter.h: the queue pair becomes unlimited. A cut that is due (slotted) holds it back.
//
// Parameters. TypeScript converts mlx5's units; "paper" is section 5.2, and the default here. [n] notes below.
//   field (mlx5 name)              paper  unit      paper    mlx5 firmware   meaning
//   form                           -      -         paper    slotted         as above
//   rpg_time_reset                 T      ns        55 us    300 us          period of the rate timer; 0: off
//   rpg_byte_reset                 B      bytes     10 MB    32767           period of the byte counter, wire bytes; 0: off
//   rpg_threshold                  F      count     5        1               expirations of fast recovery
//   rpg_ai_rate                    R_AI   bit/s     40 M     5 M             additive increase
//   rpg_hai_rate                   R_HAI  bit/s     - [1]    50 M            hyper increase
//   hyper_increase_scales          -      bool      true     false           i = min(T, BC) - F (QCN), else i = 1
//   increase_restarts_counters, stage_by_increases, increase_raises_rate: false in both columns, see above
//   rpg_max_rate                   -      bit/s     0        0               released when reached; 0: line rate
//   rpg_min_rate                   -      bit/s     - [1]    1 M             floor of R_C (never below 1 bit/s)
//   rpg_min_dec_fac                -      fraction  - [1]    0.5             a cut leaves at least this part of R_C
//   rate_decrease_factor (rpg_gd)  1/2    fraction  0.5      0.5             2^(10 - rpg_gd); rpg_gd 11 is 1/2
//   g (dce_tcp_g)                  g      fraction  1/256    5/1024          gain of alpha; mlx5 states 1024 (1 - g)
//   dce_tcp_rtt                    K      ns        55 us    1 us            alpha timer (paper) or slot (slotted)
//   rate_reduce_monitor_period     -      ns        - [2]    4 us            slot in which CNPs cut once (slotted only)
//   initial_alpha_value            -      fraction  1        1023/1024       alpha at the start, see above
//   alpha_decays_at_line_rate      -      bool      true     false           see above
//   clamp_tgt_rate                 -      bool      true     false           every cut sets R_T = R_C
//   clamp_tgt_rate_after_time_inc  -      bool      - [2]    true            see below; only without clamp_tgt_rate
//   rate_to_set_on_first_cnp       -      bit/s     0        0               R_C that the first CNP starts from; 0: line rate
//   [1] not in the paper: 200 Mb/s (its authors' ns3-rdma), 1 Mb/s and 0.5 (firmware).   [2] plays no part in that column.
//
//   Without clamp_tgt_rate a cut sets R_T = R_C only if the rate has increased since the last cut: 802.1Qau's rule
//   rpByteStage != 0 ("extra fast recovery": consecutive cuts keep the rate to recover), here BC != 0, or, with
//   clamp_tgt_rate_after_time_inc, also T != 0. The cut that starts the limiter always sets it.
//
// Time: every call takes the current time, which never goes back. advance() performs what fell due up to and including `now`
// at its exact time and in order (alpha, then cut, then rate timer when they coincide), and every on_*() begins with it:
// however rarely it is polled, the trajectory is the same to the last bit.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/types.h"
#include "congestion/rate_limiter.h"

namespace weir {

struct DcqcnParameters {
  enum class Form : uint8_t { paper, slotted };
  Form form = Form::paper;
  Time rpg_time_reset = 55 * kMicrosecond;
  uint64_t rpg_byte_reset = 10'000'000;
  uint32_t rpg_threshold = 5;
  Rate rpg_ai_rate = 40'000'000;
  Rate rpg_hai_rate = 200'000'000;
  bool hyper_increase_scales = true;
  bool increase_restarts_counters = false;
  bool stage_by_increases = false;
  bool increase_raises_rate = false;
  Rate rpg_max_rate = 0;
  Rate rpg_min_rate = 1'000'000;
  double rpg_min_dec_fac = 0.5;
  double rate_decrease_factor = 0.5;
  double g = 1.0 / 256;
  Time dce_tcp_rtt = 55 * kMicrosecond;
  Time rate_reduce_monitor_period = 50 * kMicrosecond;
  double initial_alpha_value = 1;
  bool alpha_decays_at_line_rate = true;
  bool clamp_tgt_rate = true;
  bool clamp_tgt_rate_after_time_inc = false;
  Rate rate_to_set_on_first_cnp = 0;
};

constexpr auto words_of(DcqcnParameters::Form) { return std::array{"paper", "slotted"}; }
void describe(auto& v, Of<DcqcnParameters> auto& p) {
  v.type("NativeDcqcn", "What reaction points of DCQCN run on.");
  v("form", p.form, field::any("slotted: cuts at rate_reduce_monitor_period, if CNPs came; paper: each CNP cuts."));
  v("rpg_time_reset", p.rpg_time_reset, field::ns("T: between increases by time; 0: no timer."));
  v("rpg_byte_reset", p.rpg_byte_reset, field::bytes("B: between increases by bytes; 0: no byte counter."));
  v("rpg_threshold", p.rpg_threshold, field::any("F: increases of one kind before fast recovery ends."));
  v("rpg_ai_rate", p.rpg_ai_rate, field::bps("R_AI: step of additive increase."));
  v("rpg_hai_rate", p.rpg_hai_rate, field::bps("R_HAI: step of hyper increase."));
  v("hyper_increase_scales", p.hyper_increase_scales, field::any("Step i of hyper increase adds i R_HAI (QCN), not R_HAI."));
  v("increase_restarts_counters", p.increase_restarts_counters, field::any("An increase restarts timer and byte counter."));
  v("stage_by_increases", p.stage_by_increases, field::any("F increases recover, the next F are additive, then hyper."));
  v("increase_raises_rate", p.increase_raises_rate, field::any("Beyond recovery the current rate rises by a constant."));
  v("rpg_max_rate", p.rpg_max_rate, field::bps("Released when reached; 0: line rate."));
  v("rpg_min_rate", p.rpg_min_rate, field::bps("Floor of the current rate."));
  v("rpg_min_dec_fac", p.rpg_min_dec_fac, field::fraction("A cut leaves at least this part of the rate."));
  v("rate_decrease_factor", p.rate_decrease_factor, field::fraction("R_C <- R_C (1 - rate_decrease_factor alpha); rpg_gd."));
  v("g", p.g, field::above(field::fraction("Gain of alpha; dce_tcp_g.")));
  v("dce_tcp_rtt", p.dce_tcp_rtt, field::above(field::ns("K: between decays of alpha.")));
  v("rate_reduce_monitor_period", p.rate_reduce_monitor_period, field::any("Between two cuts; 0: every CNP cuts.", "ns"));
  v("initial_alpha_value", p.initial_alpha_value, field::fraction("alpha at the start."));
  v("alpha_decays_at_line_rate", p.alpha_decays_at_line_rate, field::any("False: each limiter starts with the initial alpha."));
  v("clamp_tgt_rate", p.clamp_tgt_rate, field::any("Every cut sets the target rate to the rate before it."));
  v("clamp_tgt_rate_after_time_inc", p.clamp_tgt_rate_after_time_inc, field::any("So does one after an increase by time."));
  v("rate_to_set_on_first_cnp", p.rate_to_set_on_first_cnp, field::bps("0: no override."));
  v.rule(p.form == DcqcnParameters::Form::paper || p.rate_reduce_monitor_period > 0,
         "rate_reduce_monitor_period must be above 0");
  v.rule(!(p.increase_raises_rate && p.hyper_increase_scales), "increase_raises_rate needs hyper_increase_scales to be false");
}

// One per sending queue pair.
class DcqcnReactionPoint : public RateLimiter<DcqcnParameters> {
 public:
  static constexpr const char* kName = "dcqcn";
  static constexpr uint8_t kHears = kHearsCnps;

  // An alpha that decays below this is 0, and alpha's timer stops until the next CNP: catching up after any idle time costs at
  // most ln(1e9) / g steps. A cut at such an alpha would take off less than 1e-9 of the rate.
  static constexpr double kAlphaEpsilon = 1e-9;

  // The queue pair is then unlimited, and its alpha waits for start() or a CNP.
  void configure(const DcqcnParameters& shared, const FlowTerms& terms);

  // A new message stream begins: all state is dropped. Limited if `initial_rate` (bit/s) is below the rate of release.
  void start(Time now, Rate initial_rate);
  // A CNP for this queue pair arrived.
  void on_cnp(Time now);
  // A packet of this queue pair left; counted only while limited.
  void on_sent(Time now, uint32_t wire_bytes);
  // Catches up to `now`.
  void advance(Time now);

  // When rate() may change next if nothing is received or sent: call advance() then. kNever when unlimited. Alpha's own timer
  // is left out: alpha matters only at a cut, and is caught up by then.
  Time next_deadline() const;

  // Value as of the last call that took a time; initial_alpha_value when unlimited, unless it decays there.
  double alpha() const { return limited_ || parameters_->alpha_decays_at_line_rate ? alpha_ : parameters_->initial_alpha_value; }
  // When the CNPs that have come cut the rate (slotted); kNever if none has come since the last cut.
  Time cut_at() const { return cut_at_; }
  ControllerState state() const { return {target_rate(), alpha(), limited_ || parameters_->alpha_decays_at_line_rate, stage()}; }
  // The stage of the last increase since the last cut; fast recovery when there was none.
  Stage stage() const;

 private:
  void start_limiter(Time now, double initial_rate);
  void release();
  void start_alpha(Time now);
  void restart_increase(Time now);
  void start_rate_timer(Time now);
  void cut(Time now);
  void increase();
  double hyper_step() const;
  void end_alpha_period();
  Time slot_end(Time period, Time now) const;

  double alpha_ = 0;
  Time started_ = kNever;  // when alpha started, origin of the slots; kNever before that
  Time rate_timer_at_ = kNever;
  Time alpha_at_ = kNever;          // end of the current alpha period; kNever while alpha stays 0
  Time cut_at_ = kNever;            // slotted: end of the reduce slot in which a CNP arrived
  uint64_t byte_count_ = 0;         // bytes since the byte counter last expired or was reset
  uint32_t timer_expirations_ = 0;  // T
  uint32_t byte_expirations_ = 0;   // BC
  bool cnp_in_alpha_slot_ = false;
};

}  // namespace weir
