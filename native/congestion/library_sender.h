// A congestion control of the user's at work for one flow: hands events to the library (congestion/weir_cc.h, which is the manual
// page), and holds the flow to what it answers.
//
// Readings:
//   - The library lives in the scenario's time: on a wire at a time scale, times are divided by it and rates multiplied. A time
//     that it is told never goes back, and that of its timer is not before what it asked for.
//   - A timer that lies back when it is asked for is refused as an answer that is none. What an answer says beside that counts.
//   - Memory of a flow is set up with the flow, not while it sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "congestion/congestion_control.h"
#include "congestion/library.h"

namespace weir {

class LibrarySender : public CongestionControl {
 public:
  using Parameters = LibraryParameters;
  static constexpr const char* kName = "library";
  static constexpr uint8_t kHears = kHearsCnps | kHearsAcknowledgements | kHearsTrims;

  void configure(const LibraryParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_sent(Time now, uint32_t wire_bytes);
  void on_ack(const Ack& ack);
  void on_loss(const Loss& loss);
  void on_trimmed(const Trimmed& trimmed);
  void on_cnp(Time now);
  void advance(Time now);
  Time next_deadline() const { return timer_; }

  bool limited() const { return limited_; }
  Rate rate() const { return rate_; }
  uint32_t window() const { return window_; }
  ControllerState state() const { return {.target_rate = rate_}; }

 private:
  void tell(Time now, weir_cc_event event);
  void take(const weir_cc_answer& answer);
  uint64_t scenario_time(Time now) const { return static_cast<uint64_t>(static_cast<double>(now) / scale_); }

  const Library* library_ = nullptr;
  std::unique_ptr<std::max_align_t[]> memory_;
  weir_cc_answer answer_{};
  uint64_t now_ = 0;  // the scenario's time
  double scale_ = 1;
  uint64_t* refused_ = nullptr;
  Time timer_ = kNever;
  Rate line_rate_ = 0;
  Rate rate_ = 0;
  uint32_t most_ = kNoWindow;
  uint32_t window_ = kNoWindow;
  bool limited_ = false;
};

}  // namespace weir
