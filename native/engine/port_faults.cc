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
  auto fresh = std::make_unique<ImpairmentPort>(worker_.clock_.of_ports());
  ImpairmentPort* port = nullptr;
  Rate rate = 0;
  worker_.between_turns([&] {
    WirePort* const wire = worker_.find_port(place);
    if (wire == nullptr) throw NativeError("NO_PORT", 0, "", "there is no such port", "");
    rate = wire->rate();
    const auto known = std::find(ports_.begin(), ports_.end(), dynamic_cast<ImpairmentPort*>(wire->holder().get()));
    if (known != ports_.end()) {
      port = *known;
    } else {
      port = fresh.get();
      fresh->come_around(std::move(wire->holder()), wire->lent());
      wire->holder() = std::move(fresh);
      ports_.push_back(port);
    }
    if (port->faults().active() >= Faults::kMost) {
      throw NativeError("NO_RESOURCES", 0, "", "the port has " + std::to_string(Faults::kMost) + " faults already", "end some");
    }
    port->faults().add(++last_, parameters, port->clock().now, rate);
    worker_.checked_ = 0;  // the state of the link is told at once
  });
  return last_;
}

bool PortFaults::end(uint32_t number) {
  bool found = false;
  worker_.between_turns([&] {
    for (ImpairmentPort* port : ports_) found = found || port->faults().end(number);
    worker_.checked_ = 0;  // the state of the link is told at once
  });
  return found;
}

std::vector<FaultState> PortFaults::states() {
  std::vector<FaultState> out;
  worker_.between_turns([&] {
    for (ImpairmentPort* port : ports_) {
      const auto states = port->faults().states();
      out.insert(out.end(), states.begin(), states.end());
    }
  });
  return out;
}

}  // namespace weir
