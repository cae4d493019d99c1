// A device's driver: the agenda of its worker on the wire (link/agenda.h), the fabric in a simulation. A device does not wait for
// anything itself: it tells at once when a frame that it picks will have left, and when it wants to be woken.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "wire/packet.h"

namespace weir {

class Driver {
 public:
  // The frame's last bit will have left `port` at `at`; it is the driver's from now on. A port's frames come in their order.
  virtual void depart(uint16_t port, PacketId id, Time at) = 0;
  // The device wants its wake(what, at) called, at `at` and not before; `what` is a port of a switch, or whatever a NIC says.
  // Replaces what it wanted for `what` before; kNever: nothing any more. A driver may still come for what was replaced, and the
  // device then has nothing to do.
  virtual void wake(uint32_t what, Time at) = 0;
  // Nothing happens up to then, that time included, but what the device does itself: it may do so at once.
  static constexpr Time kAnyMoment = INT64_MIN;
  virtual Time quiet_until() const { return kAnyMoment; }

 protected:
  ~Driver() = default;
};

}  // namespace weir
