// Queue pairs and the multicast groups that they have joined (IBTA volume 1, 10.5). Groups are IP addresses, as RoCEv2 has them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

#include "wire/ip.h"

namespace weir {

class MulticastGroups {
 public:
  static constexpr size_t kMost = 4096;
  // Queue pairs of one group: each gets a copy of what is sent to it.
  static constexpr size_t kMostMembers = 256;

  bool empty() const { return groups_.empty(); }
  // False when there is no room. A member joins once.
  bool attach(const IpAddress& group, uint32_t qpn) {
    if (is_member(group, qpn)) return true;
    const Key key = key_of(group.version, group.bytes);
    if (groups_.size() >= kMost && !groups_.contains(key)) return false;
    std::vector<uint32_t>& members = groups_[key];
    if (members.size() >= kMostMembers) return false;
    members.push_back(qpn);
    return true;
  }
  // False when it is no member.
  bool detach(const IpAddress& group, uint32_t qpn) {
    if (!is_member(group, qpn)) return false;
    const auto found = groups_.find(key_of(group.version, group.bytes));
    std::erase(found->second, qpn);
    if (found->second.empty()) groups_.erase(found);
    return true;
  }
  // The queue pair is no more.
  void forget(uint32_t qpn) {
    for (auto group = groups_.begin(); group != groups_.end();) {
      std::erase(group->second, qpn);
      group = group->second.empty() ? groups_.erase(group) : std::next(group);
    }
  }
  // Null when nobody has joined. `address` as in the packet.
  const std::vector<uint32_t>* members(uint8_t ip_version, const uint8_t* address) const {
    const auto found = groups_.find(key_of(ip_version, address));
    return found == groups_.end() ? nullptr : &found->second;
  }

 private:
  using Key = std::array<uint8_t, 17>;

  static Key key_of(uint8_t ip_version, const uint8_t* address) {
    Key key{ip_version};
    std::memcpy(key.data() + 1, address, ip_address_length(ip_version));
    return key;
  }
  bool is_member(const IpAddress& group, uint32_t qpn) const {
    const std::vector<uint32_t>* all = members(group.version, group.bytes);
    return all != nullptr && std::find(all->begin(), all->end(), qpn) != all->end();
  }

  std::map<Key, std::vector<uint32_t>> groups_;
};

}  // namespace weir
