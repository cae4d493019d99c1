// Telemetry that switches have written into a peer's packets, on its way back: the newest goes with the next acknowledgement.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "transport/counters.h"
#include "wire/telemetry.h"

namespace weir {

class TelemetryEcho {
 public:
  // Starts with nothing to echo. Without `on` there never is.
  void start(bool on) { echo_ = on ? std::make_unique<Echo>() : nullptr; }
  // kTelemetryHeader bytes.
  void take(const uint8_t* telemetry, TransportCounters& counters) {
    if (echo_ == nullptr) return;
    if (!telemetry_ok(telemetry)) return void(++counters.rx_telemetry_malformed);
    std::memcpy(echo_->bytes, telemetry, kTelemetryHeader);
    echo_->waits = true;
  }
  // Returns the bytes for an acknowledgement that leaves now; null: nothing is new. They are good until the next take().
  const uint8_t* next() { return echo_ != nullptr && std::exchange(echo_->waits, false) ? echo_->bytes : nullptr; }

 private:
  struct Echo {
    uint8_t bytes[kTelemetryHeader];
    bool waits = false;
  };
  std::unique_ptr<Echo> echo_;
};

}  // namespace weir
