// The interface of congestion control: the events and answers that all algorithms have in common. An algorithm is a
// file pair beside this one: a class that derives from CongestionControl and has the events that it answers to, and its
// parameters. It is offered once it is listed in controller.h.
//
// It lives without clock and I/O: each event takes the time, which never goes back, and begins with catching up to it.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/types.h"
#include "wire/telemetry.h"

namespace weir {

// Sources from which an algorithm hears of congestion, by bit.
enum Hears : uint8_t {
  kHearsNothing = 0,
  kHearsCnps = 1 << 0,              // CNPs, which receivers of marked packets send (congestion/dcqcn_notification_point.h)
  kHearsCnms = 1 << 1,              // CNMs of switches, which are about flows of several queue pairs (endpoint/flow_table.h)
  kHearsAcknowledgements = 1 << 2,  // on_ack() and on_loss(): of each packet by itself, with the echo of its mark
  kHearsTelemetry = 1 << 3,         // Ack::telemetry; with kHearsAcknowledgements
  kHearsTrims = 1 << 4              // on_trimmed(); with kHearsAcknowledgements, without it such packets are told by on_loss()
};

// An acknowledgement's word of packets that it acknowledges for the first time.
struct Ack {
  uint32_t packets = 0;    // number of them; 1 or more
  bool marked = false;     // they met congestion
  uint32_t in_flight = 0;  // packets sent and not acknowledged, behind it
  uint32_t wanted = 0;     // packets that would have been in flight before it if no window had held them back
  Time arrived = 0;        // when it came, by its own stamp; not before `sent`
  Time sent = kNever;      // when the newest of them was sent; kNever: one of them was sent more than once (Karn's rule)
  // Hops that switches wrote into the newest packet that has come; null: nothing readable. Valid for the time of the call.
  const Telemetry* telemetry = nullptr;
};

// Packets were lost: answers came out of order, or none came.
struct Loss {
  uint32_t in_flight = 0;  // packets sent and not acknowledged
  bool timeout = false;    // found by the timer alone
  Time at = 0;
};

// Switches cut packets to their headers, and their receiver has told of it (QueueAttributes::trim_naks): they are sent again.
struct Trimmed {
  uint32_t packets = 0;    // 1 or more
  uint32_t in_flight = 0;  // packets sent that are neither with the peer nor known to be lost: these are not among them
  Time at = 0;             // when it was heard of; not before `sent`
  Time sent = kNever;      // when the newest of them that were sent but once was sent; kNever: none was (Karn's rule)
};

// A flow's terms, whatever controls it.
struct FlowTerms {
  Rate line_rate = 0;            // bit/s, > 0
  uint32_t window = UINT32_MAX;  // packets that its transport lets be in flight at most, 1 or more
  uint32_t packet_bytes = 0;     // bytes of a packet of the path MTU on the link
  Random random{0};              // a stream of its own
  uint64_t* refused = nullptr;   // counts answers that were none; null: nobody does
};

// Stage of an algorithm of DCQCN's and QCN's kind on its way back up.
enum class IncreaseStage : uint8_t { fast_recovery, additive_increase, hyper_increase };

// State for samples and for those that look at a flow.
struct ControllerState {
  Rate target_rate = 0;     // bit/s; of those that have one
  double alpha = 0;         // part of the rate that a cut would take now; of those that have one
  bool alpha_runs = false;  // it is at work: it decays, or awaits its next period
  IncreaseStage stage = IncreaseStage::fast_recovery;
  double window = 0;  // packets; of those that have one
};

// No congestion control: what an algorithm is that has nothing to say.
class CongestionControl {
 public:
  struct Parameters {};
  static constexpr const char* kName = "none";
  static constexpr uint8_t kHears = kHearsNothing;
  static constexpr uint32_t kNoWindow = UINT32_MAX;

  // Must be called before all else. `shared` must outlive this object, and whatever it becomes must pass check(). Throws as
  // check() does.
  void configure(const Parameters&, const FlowTerms&) {}
  // The flow begins to send; all state is dropped. `initial_rate` (bit/s) is for those that have a rate.
  void start(Time, Rate) {}
  // A packet of the flow left.
  void on_sent(Time, uint32_t) {}
  void on_ack(const Ack&) {}
  void on_loss(const Loss&) {}
  void on_trimmed(const Trimmed&) {}
  void on_cnp(Time) {}
  // Quantized feedback, 0 to 63.
  void on_cnm(Time, uint8_t) {}
  // Catches up.
  void advance(Time) {}
  // When rate() may change next if nothing is sent or heard; kNever: not before.
  Time next_deadline() const { return kNever; }

  // Whether it holds the flow to rate(), bit/s; if not, the line rate is all there is.
  bool limited() const { return false; }
  Rate rate() const { return 0; }
  // Packets that may be in flight; kNoWindow: the transport's own window is all there is.
  uint32_t window() const { return kNoWindow; }
  // When what it has heard of will lower the rate; kNever: it has done so, or has heard of nothing.
  Time cut_at() const { return kNever; }
  ControllerState state() const { return {}; }
};

}  // namespace weir
