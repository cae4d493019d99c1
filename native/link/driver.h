// Who drives a device in virtual time. Instead of asking the device what has left and when it wants to be called, it is told at
// once: a frame's departure is known as soon as the frame is picked, and links then need no event of their own.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "wire/packet.h"

namespace weir {

class Driver {
 public:
  // The frame's last bit will have left `port` at `at`; it is the driver's from now on.
  virtual void depart(uint16_t port, PacketId id, Time at) = 0;
  // The device wants its wake() called with these at `at`; `what` is a port of a switch, or whatever a NIC says.
  virtual void wake(uint32_t what, Time at) = 0;

 protected:
  ~Driver() = default;
};

}  // namespace weir
