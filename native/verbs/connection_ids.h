// Ids and memberships in multicast groups that librdmacm in this process has at the daemons of its NICs, by the numbers that it
// knows them by. An id that has no address yet, or all of them, is at every NIC.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "verbs/connection_nics.h"

namespace weir {

struct ConnectionId {
  uint64_t key = 0;    // key of its channel
  uint64_t uid = 0;    // librdmacm's name of it; 0: not accepted yet
  uint32_t owner = 0;  // the id of a membership
  bool bound = false;
  bool told = false;                          // told that its NIC is gone
  std::array<uint32_t, kMostNics> numbers{};  // its number at each NIC; 0: it is not there

  size_t places() const {
    return static_cast<size_t>(std::count_if(numbers.begin(), numbers.end(), [](uint32_t n) { return n != 0; }));
  }
  // The first.
  size_t nic() const {
    return static_cast<size_t>(std::find_if(numbers.begin(), numbers.end(), [](uint32_t n) { return n != 0; }) - numbers.begin());
  }
  bool is_on(size_t nic) const { return numbers[nic] != 0 && places() == 1; }
};

class ConnectionIds {
 public:
  // Its number: with one NIC that of its daemon, so that whoever has not seen it made, as after fork, knows it all the same. 0:
  // there are as many as librdmacm can tell apart.
  uint32_t add(const ConnectionId& id) {
    if (connection_nics().size() == 1) return all_[id.numbers[0]] = id, id.numbers[0];
    if (all_.size() >= kMost) return 0;
    do {
      last_ = last_ % kMost + 1;
    } while (all_.contains(last_));
    all_[last_] = id;
    return last_;
  }
  // Null when it is not known.
  ConnectionId* find(uint32_t number) {
    const auto found = all_.find(number);
    return found == all_.end() ? nullptr : &found->second;
  }
  // Removes it with its memberships.
  void remove(uint32_t number) {
    std::erase_if(all_, [&](const auto& one) { return one.first == number || one.second.owner == number; });
  }
  void move(uint32_t number, uint64_t key) {
    for (auto& [other, id] : all_) {
      if (other == number || id.owner == number) id.key = key;
    }
  }
  // Ids of a channel on a NIC, which is gone, that have not been told so.
  uint32_t untold(uint64_t key, size_t nic) const {
    return static_cast<uint32_t>(
        std::count_if(all_.begin(), all_.end(), [&](const auto& one) { return to_tell(one.second, key, nic); }));
  }
  // One of them, which is told now; 0: none.
  uint32_t tell(uint64_t key, size_t nic) {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return to_tell(one.second, key, nic); });
    if (found == all_.end()) return 0;
    found->second.told = true;
    return found->first;
  }

 private:
  static constexpr uint32_t kMost = 65'535;
  static bool to_tell(const ConnectionId& id, uint64_t key, size_t nic) {
    return id.key == key && id.owner == 0 && id.uid != 0 && !id.told && id.is_on(nic);
  }

  std::map<uint32_t, ConnectionId> all_;
  uint32_t last_ = 0;
};

}  // namespace weir
