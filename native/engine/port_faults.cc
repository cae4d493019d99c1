#include "engine/port_faults.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/native_error.h"
#include "engine/impairment_port.h"

namespace weir {

uint32_t PortFaults::add(const Worker::PortPlace& place, const FaultParameters& parameters) {
  check(parameters, "fault");
  // Memory is had while the worker runs.
  const PortClock& clock = worker_.clock_.of_ports();
  auto fresh = std::make_unique<ImpairmentPort>(clock);
  worker_.between_turns([&] {
    WirePort* const wire = worker_.find_port(place);
    if (wire == nullptr) throw NativeError("NO_PORT", 0, "", "there is no such port", "");
    Faults& faults = parameters.leaving ? wire->leaving(clock).faults() : around(*wire, fresh).faults();
    if (faults.active() >= Faults::kMost) {
      throw NativeError("NO_RESOURCES", 0, "", "the port has " + std::to_string(Faults::kMost) + " faults already", "end some");
    }
    if (std::find(faults_.begin(), faults_.end(), &faults) == faults_.end()) faults_.push_back(&faults);
    faults.add(++last_, parameters, clock.now);
    worker_.checked_ = 0;  // the state of the link is told at once
  });
  return last_;
}

// The port that makes faults of what comes in, which is `fresh` if there is none yet.
ImpairmentPort& PortFaults::around(WirePort& wire, std::unique_ptr<ImpairmentPort>& fresh) {
  const auto known = std::find(ports_.begin(), ports_.end(), dynamic_cast<ImpairmentPort*>(wire.holder().get()));
  if (known != ports_.end()) return **known;
  ImpairmentPort& port = *ports_.emplace_back(fresh.get());
  fresh->come_around(std::move(wire.holder()), wire.lent());
  wire.holder() = std::move(fresh);
  return port;
}

bool PortFaults::end(uint32_t number) {
  bool found = false;
  worker_.between_turns([&] {
    for (Faults* faults : faults_) found = found || faults->end(number);
    worker_.checked_ = 0;  // the state of the link is told at once
  });
  return found;
}

std::vector<FaultState> PortFaults::states() {
  std::vector<FaultState> out;
  worker_.between_turns([&] {
    for (const Faults* faults : faults_) {
      const auto states = faults->states();
      out.insert(out.end(), states.begin(), states.end());
    }
  });
  return out;
}

}  // namespace weir
