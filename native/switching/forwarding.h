// Chooses where a frame leaves the switch. Learning (with ageing and flooding) is for loop-free topologies; otherwise every
// destination has a static group of next hops, which load_balancing.h chooses among, an unknown destination is not forwarded, and
// a group only along the tree of ports that flood (SwitchParameters::Port).
//
// Nobody fills the table for others. A port may have a limit of addresses; at it, a new one takes the place of the port's own
// that was heard of least lately. If there is no room, it takes that of the port that has most of them, as in Open vSwitch
// (evict_mac_entry_fairly() in lib/mac-learning.c), and of nobody who has no more than its own port. Both look at the kProbes
// entries near the address' hash.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/fetch.h"
#include "base/random.h"
#include "base/types.h"
#include "wire/ethernet.h"
#include "wire/packet.h"

namespace weir {

class Forwarding {
 public:
  static constexpr int kUnknown = -1;  // learning: flood; static: groups alone, where ports flood
  // Entries looked at before giving up: bounds the cost of a lookup whatever addresses a stranger sends.
  static constexpr uint32_t kProbes = 16;

  // `capacity`: entries, rounded up to a power of two. `ageing`: ns after which a learned address is forgotten. `ports`: how many
  // there are.
  Forwarding(uint32_t capacity, bool learning, Time ageing, size_t ports = 0);

  void reconfigure(bool learning, Time ageing);
  // Most addresses that are learned at a port; 0: no limit. Learned addresses stay.
  void limit(uint16_t port, uint32_t most) { stations(port).most = most; }
  // Addresses that the table has of a port, some of which may have aged.
  uint32_t learned(uint16_t port) const { return port < stations_.size() ? stations_[port].count : 0; }
  // A static entry for every VLAN; not aged. Takes the place of a learned one where it must. Returns false when the table has no
  // room near the hash.
  bool add_static(uint64_t mac, std::span<const uint16_t> ports);
  // Static entries for a row of addresses: group_of[i] is the position of the group of `first_mac` + i, or kNoGroup. Found
  // before any other static entry, at the cost of one look. Once; clear_static() forgets it too.
  void add_static_range(uint64_t first_mac, std::vector<uint16_t> group_of, std::span<const std::vector<uint16_t>> groups);
  static constexpr uint16_t kNoGroup = 0xffff;  // groups number up to 2^15 - 1, ports too
  // Forgets static entries and pins; learned ones stay.
  void clear_static();
  void forget_learned();
  // Frames from `source` to `destination` leave by `port`, whatever the group says.
  bool pin(uint64_t source, uint64_t destination, uint16_t port);

  // Outcome for an address.
  struct Learned {
    enum class Outcome : uint8_t {
      stored,    // stored, or it need not be
      in_place,  // stored where one of port `forgotten` was
      limited,   // not stored: its port has as many as it may
      full       // not stored: there is no room, and no port has more addresses than its own
    };
    Outcome outcome = Outcome::stored;
    uint16_t forgotten = 0;
    explicit operator bool() const { return outcome <= Outcome::in_place; }
  };
  // Group addresses are not learned.
  Learned learn(Time now, const PacketMeta& meta, uint16_t port) {
    const uint64_t key = key_of(kLearned, meta.source_mac, meta.vlan());
    Entry& first = table_[slot_of(key)];
    if (first.key != key || first.first_port != port) return learn_anew(now, key, port);
    first.expires = now + ageing_;
    return {};
  }
  // Shards (switching/shard.h) tell each other what they learn: what is new, and what they told an eighth of the ageing time ago.
  bool is_news(Time now, const PacketMeta& meta, uint16_t port) const;
  void told(Time now, const PacketMeta& meta);
  // Learns an address that another shard saw at `at`. Nothing happens when it was seen here since then.
  Learned hear(Time now, Time at, uint64_t mac, uint16_t vlan, uint16_t port);
  // Egress port or kUnknown. Group addresses are unknown. `choose(ports)`: one of several next hops.
  template <class Choose>
  int lookup(Time now, const PacketMeta& meta, Choose choose) const {
    if (is_group(meta.destination_mac)) return kUnknown;
    if (configured_) {
      const NextHops hops = route(now, meta);
      if (hops.count == 1) return static_cast<int>(hops.first);
      if (hops.count > 1) return choose(std::span(ports_).subspan(hops.first, hops.count));
    }
    if (!learning_) return kUnknown;
    const Entry* entry = find(now, key_of(kLearned, meta.destination_mac, meta.vlan()));
    return entry != nullptr ? static_cast<int>(entry->first_port) : kUnknown;
  }
  bool learning() const { return learning_; }
  // A hint for the caches: a frame that is going to be looked up.
  WEIR_FETCHES void fetch(const PacketMeta& meta) const {
    const uint64_t place = meta.destination_mac - first_mac_;
    if (place < group_of_.size()) __builtin_prefetch(&group_of_[place]);
  }

  static constexpr uint64_t kNobody = UINT64_MAX;  // key of an entry that is nobody's
  struct Entry {
    uint64_t key = kNobody;
    Time expires = 0;  // 0 = never used; kNever = static
    uint32_t first_port = 0;
    uint32_t ports = 0;  // how many next hops from first_port on, in ports_; learned entries have their port in first_port, and
                         // here when others were told
  };
  std::span<const Entry> entries() const { return table_; }
  std::span<const uint16_t> entry_ports(const Entry& entry) const;
  static bool is_learned(const Entry& entry) { return entry.key >> 60 == kLearned; }
  static bool is_pin(const Entry& entry) { return entry.key >> 61 != 0; }
  static uint64_t entry_mac(const Entry& entry) { return entry.key >> 12 & 0xffff'ffff'ffff; }
  static uint16_t entry_vlan(const Entry& entry) { return entry.key & 0xfff; }

 private:
  enum Kind : uint64_t { kLearned = 0, kStatic = 1, kPinned = 2 };
  // 48 bits of address, 12 of VLAN, 2 of kind: every kind of entry lives in one table.
  static uint64_t key_of(uint64_t kind, uint64_t mac, uint64_t vlan) { return kind << 60 | mac << 12 | vlan; }
  static uint64_t pin_key(uint64_t source, uint64_t destination);
  uint64_t slot_of(uint64_t key) const { return Random::mix(key) & mask_; }
  const Entry* find(Time now, uint64_t key) const {
    const uint64_t slot = slot_of(key);
    const Entry& first = table_[slot];
    if (first.key == key && first.expires > now) return &first;
    const Entry* entry = probe(key, slot);
    return entry != nullptr && entry->expires > now ? entry : nullptr;
  }
  const Entry* probe(uint64_t key, uint64_t slot) const;
  Entry* place_static(uint64_t key);
  Learned store(Time now, uint64_t key, uint16_t port, Time expires);
  void take(Entry& entry);
  void forget(Entry& entry);
  void sweep(Time now);
  uint32_t telling_period(Time now) const { return static_cast<uint32_t>(now >> telling_shift_); }
  Learned learn_anew(Time now, uint64_t key, uint16_t port);

  struct NextHops {
    uint32_t first = 0;  // place in ports_; of one the port itself
    uint32_t count = 0;  // 0: unknown
  };
  NextHops route(Time now, const PacketMeta& meta) const;
  static constexpr uint16_t kSinglePort = 0x8000;

  // Addresses that are learned at a port.
  struct Stations {
    uint32_t count = 0;
    uint32_t most = 0;
  };
  Stations& stations(uint16_t port) {
    if (port >= stations_.size()) stations_.resize(port + 1u);
    return stations_[port];
  }

  std::vector<Entry> table_;
  std::vector<Stations> stations_;
  size_t swept_ = 0;
  std::vector<uint16_t> ports_;
  uint64_t first_mac_ = 0;
  // Group of each address in the row from first_mac_ on; kSinglePort and the port, where it is one.
  std::vector<uint16_t> group_of_;
  std::vector<NextHops> groups_;
  uint64_t mask_;
  Time ageing_ = 0;
  int telling_shift_ = 0;  // learned addresses are told to other shards once in each period of 2^shift ns
  bool learning_ = false;
  bool pinned_ = false;
  bool static_ = false;
  bool configured_ = false;  // there is something besides learned addresses
};

}  // namespace weir
