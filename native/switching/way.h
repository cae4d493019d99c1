// The way of a frame, as a part of the switch sees it that has frames go on by it: nothing else of the switch, beside the state
// that all parts share (switch_state.h).
#pragma once

#include <cstdint>

#include "switching/switch_port.h"
#include "wire/packet.h"

namespace weir {

class TrafficManager;

class Way {
 public:
  explicit Way(TrafficManager& traffic) : traffic_(traffic) {}
  // The frame, which is charged to `in`, is to leave by port `to`.
  void emit(SwitchPort& in, uint16_t to, PacketId id) const;

 private:
  TrafficManager& traffic_;
};

}  // namespace weir
