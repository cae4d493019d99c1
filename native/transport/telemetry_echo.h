// What switches have written into a peer's packets, on its way back: the newest goes with the next acknowledgement.
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
  // With nothing to echo. Without `on` there never is.
  void start(bool on) {
    waits_ = false;
    bytes_ = on ? std::make_unique<uint8_t[]>(kTelemetryHeader) : nullptr;
  }
  // kTelemetryHeader bytes.
  void take(const uint8_t* telemetry, TransportCounters& counters) {
    if (bytes_ == nullptr) return;
    if (!telemetry_ok(telemetry)) return void(++counters.rx_telemetry_malformed);
    std::memcpy(bytes_.get(), telemetry, kTelemetryHeader);
    waits_ = true;
  }
  // For an acknowledgement that leaves now; null: nothing is new. Good until the next take().
  const uint8_t* next() { return std::exchange(waits_, false) ? bytes_.get() : nullptr; }

 private:
  bool waits_ = false;
  std::unique_ptr<uint8_t[]> bytes_;
};

}  // namespace weir
