// VLANs that each port belongs to, and the form of their frames there (IEEE 802.1Q, 6.9 and 8.6.2): a frame without a VLAN's tag
// is of the port's untagged VLAN, one of a VLAN that its port is no member of is not taken, and none leaves by a port outside its
// VLAN. vlans.h does it to frames.
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"

namespace weir {

inline constexpr uint16_t kLastVlan = 4094;

// VLANs of a port; it may have none, and all frames that come there are dropped then.
struct PortVlans {
  uint16_t untagged = 0;
  std::vector<uint16_t> tagged;
  bool operator==(const PortVlans&) const = default;
};
inline bool are_vlans(const PortVlans& p) {
  for (const uint16_t vlan : p.tagged) {
    if (vlan == 0 || vlan > kLastVlan || vlan == p.untagged) return false;
  }
  return true;
}
void describe(auto& v, Of<PortVlans> auto& p) {
  v.type("NativePortVlans", "VLANs of a port.");
  v("untagged", p.untagged, field::within(0, kLastVlan, "Of frames without a VLAN's tag; 0: none, such frames are dropped."));
  v("tagged", p.tagged, field::any("Those whose frames have their tag here."));
  v.rule(are_vlans(p), "tagged VLANs are 1 to 4094, and not the untagged one");
}

class VlanTable {
 public:
  enum class Membership : uint8_t { none, tagged, untagged };

  explicit VlanTable(size_t ports) : untagged_(ports) {}

  void clear() {
    heeded_ = false;
    row_of_.clear();
    table_.clear();
    untagged_.assign(untagged_.size(), 0);
  }
  void add(uint16_t port, const PortVlans& own) {
    heeded_ = true;
    row_of_.resize(kLastVlan + 2);
    untagged_[port] = own.untagged;
    if (own.untagged != 0) place(port, own.untagged) = Membership::untagged;
    for (const uint16_t vlan : own.tagged) place(port, vlan) = Membership::tagged;
  }
  // Whether tags are looked at: where no port was added, they pass as they come.
  bool heeded() const { return heeded_; }
  // VLAN of frames that come without one; 0: none.
  uint16_t untagged(uint16_t port) const { return untagged_[port]; }
  Membership membership(uint16_t port, uint16_t vlan) const {
    const uint16_t row = row_of_[vlan];
    return row == 0 ? Membership::none : table_[(row - 1u) * untagged_.size() + port];
  }

 private:
  Membership& place(uint16_t port, uint16_t vlan) {
    const size_t ports = untagged_.size();
    if (row_of_[vlan] == 0) {
      table_.resize(table_.size() + ports);
      row_of_[vlan] = static_cast<uint16_t>(table_.size() / ports);
    }
    return table_[(row_of_[vlan] - 1u) * ports + port];
  }

  bool heeded_ = false;
  std::vector<uint16_t> untagged_;  // untagged VLAN by port
  std::vector<uint16_t> row_of_;    // row by VLAN; 0: it has no member
  std::vector<Membership> table_;   // membership by row and port
};

}  // namespace weir
