// VLANs of a frame that is bridged: which one it is of, whether it may come in and leave, and its tag on the way out.
// Within the switch meta.vlan() is its VLAN, whether the bytes have a tag or not.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "switching/switch_state.h"
#include "switching/vlan_table.h"

namespace weir {

class Vlans {
 public:
  // `state` must outlive it.
  explicit Vlans(SwitchState& state);

  // The parameters have changed. Addresses that were learned in a VLAN are of no use in another.
  void configure();
  // Whether tags are looked at: where no port is in a VLAN, they pass as they come.
  bool heeded() const { return table_.heeded(); }
  // A frame has come in, or is to leave by `out`. False: it was dropped.
  bool enter(SwitchPort& in, PacketId id);
  bool leave(SwitchPort& in, const SwitchPort& out, PacketId id);
  // Whether frames of the VLAN may leave by the port.
  bool includes(uint16_t port, uint16_t vlan) const {
    return !table_.heeded() || table_.membership(port, vlan) != VlanTable::Membership::none;
  }

 private:
  SwitchState& state_;
  VlanTable table_;
  std::vector<std::optional<PortVlans>> ports_;  // settings that it is made of
};

}  // namespace weir
