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
// Parameters: describe(), below. Defaults are the paper's (section 5.2); where it prints none, R_HAI is its authors' simulator's,
// the floor of R_C and the largest cut are the firmware's. Values of others and their sources: src/congestion/dcqcn.ts. A timer
// or byte counter of 0 is off. R_C never falls below 1 bit/s.
//
// Without clamp_tgt_rate a cut sets R_T = R_C only if the rate has increased since the last cut: 802.1Qau's rule
// rpByteStage != 0 ("extra fast recovery": consecutive cuts keep the rate to recover), here BC != 0, or, with
// clamp_tgt_rate_after_time_inc, also T != 0. The cut that starts the limiter always sets it.
//
// Time: every call takes the current time, which never goes back. advance() performs what fell due up to and including `now`
// at its exact time and in order (alpha, then cut, then rate timer when they coincide), and every on_*() begins with it:
// however rarely it is polled, the trajectory is the same to the last bit.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/types.h"
#include "congestion/rate_limiter.h"
#include "congestion/written.h"

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
  using namespace written;
  v.type("NativeDcqcn", "What reaction points of DCQCN run on.");
  v("form", p.form, field::any("slotted: cuts at rate_reduce_monitor_period, if CNPs came; paper: each CNP cuts."));
  v("rpg_time_reset", p.rpg_time_reset,
    mlx5("rp_time_reset", time("T: time between rate increases while no CNP comes.", kMicrosecond, 10 * kSecond)));
  v("rpg_byte_reset", p.rpg_byte_reset,
    mlx5("rp_byte_reset",
         size("B: bytes sent between rate increases while no CNP comes; 0 switches the byte counter off.", 0, 1e12)));
  v("rpg_threshold", p.rpg_threshold,
    mlx5("rp_threshold", whole("F: rate increases of one kind before fast recovery ends.", "count", 1, 31)));
  v("rpg_ai_rate", p.rpg_ai_rate, mlx5("rp_ai_rate", rate("R_AI: step of the target rate in additive increase.", 0)));
  v("rpg_hai_rate", p.rpg_hai_rate, mlx5("rp_hai_rate", rate("R_HAI: step of the target rate in hyper increase.", 0)));
  v("rpg_max_rate", p.rpg_max_rate, mlx5("rp_max_rate", rate("Highest rate of the limiter; 0 means port speed.", 0)));
  v("rpg_min_rate", p.rpg_min_rate, mlx5("rp_min_rate", rate("Lowest rate of the limiter.", 1'000)));
  v("rate_decrease_factor", p.rate_decrease_factor,
    as("rpg_gd",
       mlx5("rp_gd", whole("Cut: R_C <- R_C (1 - alpha 1024 / 2^rpg_gd); 11 is the paper's 1 - alpha / 2.", "log2", 10, 15)),
       field::fraction("R_C <- R_C (1 - rate_decrease_factor alpha): 1024 / 2^rpg_gd.")));
  v("rpg_min_dec_fac", p.rpg_min_dec_fac, mlx5("rp_min_dec_fac", percent("One cut leaves at least this part of the rate.")));
  v("g", p.g,
    field::above(as("dce_tcp_g",
                    mlx5("rp_dce_tcp_g", real("Filter of alpha: alpha <- (dce_tcp_g / 1024) alpha, plus 1 - dce_tcp_g / 1024 "
                                              "with CNP. The paper's g is 1 - dce_tcp_g / 1024: 1020 is g = 1/256.",
                                              "1/1024", 0, 1024)),
                    field::fraction("Gain of alpha: 1 - dce_tcp_g / 1024."))));
  v("dce_tcp_rtt", p.dce_tcp_rtt,
    field::above(
        mlx5("rp_dce_tcp_rtt", time("K: time after which alpha decays while no CNP comes.", kMicrosecond, 10 * kSecond))));
  v("rate_reduce_monitor_period", p.rate_reduce_monitor_period,
    mlx5("rp_rate_reduce_monitor_period", time("Time between two cuts at least; 0 means that every CNP cuts.", 0, 10 * kSecond)));
  v("initial_alpha_value", p.initial_alpha_value,
    as("initial_alpha_value", mlx5("rp_initial_alpha_value", real("alpha at the start; 1024 is 1.", "1/1024", 0, 1024)),
       field::fraction("alpha at the start.")));
  v("alpha_decays_at_line_rate", p.alpha_decays_at_line_rate,
    flag("alpha also decays while a flow sends at line rate, and nothing resets it; without, it starts anew with the first CNP "
         "after each time at line rate. Not an mlx5 name."));
  v("clamp_tgt_rate", p.clamp_tgt_rate,
    mlx5("rp_clamp_tgt_rate", flag("Every cut also sets the target rate to the rate before it.")));
  v("clamp_tgt_rate_after_time_inc", p.clamp_tgt_rate_after_time_inc,
    mlx5("rp_clamp_tgt_rate_ati", flag("The same, if the last increase was by time.")));
  v("rate_to_set_on_first_cnp", p.rate_to_set_on_first_cnp,
    mlx5("rp_rate_to_set_on_first_cnp", rate("Rate set at the first CNP; 0 means no override.", 0)));
  v("hyper_increase_scales", p.hyper_increase_scales,
    flag("Step i of hyper increase adds i R_HAI (QCN), not always R_HAI. Not an mlx5 name."));
  v("increase_restarts_counters", p.increase_restarts_counters,
    flag("A rate increase, by time or by bytes, restarts both counters: each counts since the previous increase. Not an mlx5 "
         "name."));
  v("stage_by_increases", p.stage_by_increases,
    flag("The number of increases since the last cut decides: F of fast recovery, F of additive increase, then hyper increase, "
         "whose step i is then the i-th increase of its kind. Without, each counter has to pass F by itself. Not an mlx5 name."));
  v("increase_raises_rate", p.increase_raises_rate,
    flag("Additive and hyper increase raise the current rate by their step, not the target rate with the current rate half the "
         "way behind. Not an mlx5 name."));
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
