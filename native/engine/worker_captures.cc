// Captures of a worker's ports that come and go while it runs. The worker stands between two turns meanwhile, and for no longer
// than it takes to change some pointers: what is large is allocated and freed on the caller's thread.
#include <memory>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/worker.h"

namespace weir {

// Ports belong to their devices once those live; before that they stand in one row.
WirePort* Worker::find_port(const PortPlace& place) {
  if (const std::span<Device* const> devices = devices_.all(); !devices.empty()) {
    if (place.device >= devices.size() || place.port >= devices[place.device]->ports().size()) return nullptr;
    return &devices[place.device]->ports()[place.port];
  }
  const size_t switches = config_.switches.size();
  if (place.device >= switches + config_.nics.size()) return nullptr;
  const size_t count = place.device < switches ? config_.switches[place.device].ports.size() : 1;
  size_t first = 0;
  for (size_t device = 0; device < place.device; ++device) first += device < switches ? config_.switches[device].ports.size() : 1;
  if (place.port >= count || first + count > opened_.size()) return nullptr;
  WirePort* port = opened_[first + place.port].get();
  return port->holder() != nullptr ? port : nullptr;  // it is not there any more where a device could not be built
}

void Worker::attach(const std::shared_ptr<Capture>& capture, std::span<const PortPlace> places) {
  std::vector<std::unique_ptr<CapturePort>> ports;
  for (const PortPlace& place : places) {
    ports.push_back(std::make_unique<CapturePort>(nullptr, capture, place.tap, clock_.of_ports()));
  }
  std::vector<WirePort*> found;
  found.reserve(places.size());
  between_turns([&] {
    for (const PortPlace& place : places) {
      found.push_back(place.tap < capture->taps() ? find_port(place) : nullptr);
      if (found.back() == nullptr) throw NativeError("NO_PORT", 0, "", "there is no such port to capture", "");
    }
    for (size_t i = 0; i < found.size(); ++i) {
      captures_.push_back(ports[i].get());
      insert(found[i]->holder(), std::move(ports[i]));
    }
  });
}

void Worker::detach(const Capture& capture) {
  std::vector<std::unique_ptr<PacketPort>> removed;
  removed.reserve(capture.taps());
  const auto take_out = [&](WirePort& wire) {
    for (const CapturePort* port : captures_) {
      if (&port->capture() != &capture) continue;
      if (std::unique_ptr<PacketPort> one = remove(wire.holder(), port)) removed.push_back(std::move(one));
    }
  };
  between_turns([&] {
    for (Device* device : devices_.all()) {
      for (WirePort& wire : device->ports()) take_out(wire);
    }
    if (devices_.all().empty()) {
      for (const auto& wire : opened_) {
        if (wire->holder() != nullptr) take_out(*wire);
      }
    }
    std::erase_if(captures_, [&](const CapturePort* port) { return &port->capture() == &capture; });
  });
}

}  // namespace weir
