// News of a reliable connection that answers have brought since congestion control asked last: it becomes a Heard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/transport.h"
#include "wire/telemetry.h"

namespace weir {

class HeardNews {
 public:
  // Starts without news; `telemetry`: take_telemetry() may come.
  void start(bool telemetry) {
    *this = HeardNews();
    if (telemetry) telemetry_ = std::make_unique<Telemetry>();
  }
  // Must come before the news of an answer, or of a timer. `wanted`: as Ack has it.
  void listen(Time now, bool marked, uint32_t wanted) {
    at_ = now;
    marked_ = marked;
    wanted_ = wanted;
  }
  // Takes the telemetry that the next answer echoes (kTelemetryHeader bytes).
  void take_telemetry(const uint8_t* telemetry, TransportCounters& counters) {
    if (telemetry_ == nullptr) return;
    has_telemetry_ = load_telemetry(telemetry, *telemetry_);
    if (!has_telemetry_) return void(++counters.rx_telemetry_malformed);
    ++counters.rx_telemetry;
    if (telemetry_->hops == 0) ++counters.rx_telemetry_unwritten;
    if (telemetry_->overflowed > 0) ++counters.rx_telemetry_overflowed;
  }
  // Packets of which nothing had been told before, the latest of them sent at `sent`; `again`: it was not the first time.
  void arrived(uint32_t packets, Time sent, bool again) {
    sent_ = packets_ == 0 ? sent : std::max(sent_, sent);
    packets_ += packets;
    repeated_ |= again;
  }
  void lost() { lost_ = true; }
  void timed_out() { timed_out_ = true; }

  bool any() const { return packets_ > 0 || lost_ || timed_out_; }
  bool marked() const { return marked_; }
  Time at() const { return at_; }
  // `in_flight`: as Ack has it. Trimmed packets are not its affair.
  void take(Heard& heard, uint32_t in_flight) {
    heard.ack = {.packets = std::exchange(packets_, 0),
                 .marked = marked_,
                 .in_flight = in_flight,
                 .wanted = wanted_,
                 .arrived = at_,
                 .sent = std::exchange(repeated_, false) ? kNever : sent_,
                 .telemetry = std::exchange(has_telemetry_, false) ? telemetry_.get() : nullptr};
    heard.lost = std::exchange(lost_, false);
    heard.timed_out = std::exchange(timed_out_, false);
  }

 private:
  Time sent_ = kNever;    // when the newest of those that have arrived was sent
  uint32_t packets_ = 0;  // packets that have arrived
  uint32_t wanted_ = 0;
  Time at_ = 0;
  bool repeated_ = false;  // one of those was sent more than once
  bool marked_ = false;
  bool lost_ = false;
  bool timed_out_ = false;
  bool has_telemetry_ = false;
  std::unique_ptr<Telemetry> telemetry_;
};

}  // namespace weir
