#include "switching/forwarding.h"

#include <bit>
#include <utility>

namespace weir {
namespace {

// When an entry expires that was used, and is over: 0 would cut the probe chains of others.
constexpr Time kOver = 1;

}  // namespace

// A pin is keyed by a digest of both addresses: 60 bits, so that a clash among a fabric's pairs does not happen.
uint64_t Forwarding::pin_key(uint64_t source, uint64_t destination) {
  return key_of(kPinned, 0, 0) | Random::mix(Random::mix(source) ^ destination) >> 4;
}

Forwarding::Forwarding(uint32_t capacity, bool learning, Time ageing, size_t ports)
    : table_(std::bit_ceil(capacity < kProbes ? kProbes : capacity)), stations_(ports), mask_(table_.size() - 1) {
  reconfigure(learning, ageing);
}

void Forwarding::reconfigure(bool learning, Time ageing) {
  learning_ = learning;
  ageing_ = ageing;
  telling_shift_ = std::bit_width(static_cast<uint64_t>(ageing) / 8 + 1) - 1;
}

// The address' entry, which may have aged.
const Forwarding::Entry* Forwarding::probe(uint64_t key, uint64_t slot) const {
  for (uint32_t i = 0; i < kProbes; ++i, slot = (slot + 1) & mask_) {
    const Entry& entry = table_[slot];
    if (entry.expires == 0) return nullptr;
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

// Places that clear_static() and sweep() have left are free; else some learned address has to go.
Forwarding::Entry* Forwarding::place_static(uint64_t key) {
  uint64_t slot = slot_of(key);
  Entry* free = nullptr;
  Entry* learned = nullptr;
  for (uint32_t i = 0; i < kProbes; ++i, slot = (slot + 1) & mask_) {
    Entry& entry = table_[slot];
    if (entry.expires != 0 && entry.key == key) return &entry;
    if (entry.expires <= kOver && free == nullptr) free = &entry;
    if (entry.expires > kOver && is_learned(entry)) learned = &entry;
    if (entry.expires == 0) break;
  }
  if (free == nullptr && learned != nullptr) take(*learned);
  return free != nullptr ? free : learned;
}

// The entry is about to be another's.
void Forwarding::take(Entry& entry) {
  if (entry.expires > kOver && is_learned(entry)) --stations(static_cast<uint16_t>(entry.first_port)).count;
}

// Aged entries cease to count for their ports, some with each new address: with an eighth of the table's worth of them, all.
void Forwarding::sweep(Time now) {
  for (int i = 0; i < 8; ++i) {
    Entry& entry = table_[swept_++ & mask_];
    if (entry.expires > now || entry.expires <= kOver || !is_learned(entry)) continue;
    forget(entry);
  }
}

void Forwarding::forget(Entry& entry) {
  take(entry);
  entry.expires = kOver;
  entry.key = kNobody;
}

void Forwarding::forget_learned() {
  for (Entry& entry : table_) {
    if (entry.expires > kOver && is_learned(entry)) forget(entry);
  }
}

Forwarding::Learned Forwarding::store(Time now, uint64_t key, uint16_t port, Time expires) {
  sweep(now);
  Stations& own = stations(port);
  const bool limited = own.most > 0 && own.count >= own.most;
  Entry* free = nullptr;
  Entry* oldest = nullptr;  // oldest of this port
  Entry* victim = nullptr;  // the oldest of the port that has most
  bool chain = true;        // the address may be here: it is not behind an entry that was never used
  const auto held = [this](const Entry& entry) { return stations_[entry.first_port].count; };
  uint64_t slot = slot_of(key);
  for (uint32_t i = 0; i < kProbes; ++i, slot = (slot + 1) & mask_) {
    Entry& entry = table_[slot];
    if (chain && entry.expires > kOver && entry.key == key) {
      if (entry.first_port != port) {
        if (limited) return {Learned::Outcome::limited};
        take(entry);
        ++own.count;
      }
      entry = {key, expires, port, 0};
      return {};
    }
    if (entry.expires <= now) {
      if (free == nullptr) free = &entry;
      chain = chain && entry.expires != 0;
      continue;
    }
    if (!is_learned(entry)) continue;
    if (entry.first_port == port && (oldest == nullptr || entry.expires < oldest->expires)) oldest = &entry;
    if (victim == nullptr || held(entry) > held(*victim) || (held(entry) == held(*victim) && entry.expires < victim->expires)) {
      victim = &entry;
    }
  }
  if (limited) {
    if (oldest == nullptr) return {Learned::Outcome::limited};
    victim = oldest;
  } else if (free != nullptr) {
    victim = nullptr;
  } else if (victim == nullptr || (victim->first_port != port && held(*victim) <= own.count)) {
    return {Learned::Outcome::full};
  }
  Learned learned;
  if (victim != nullptr) {
    learned = {Learned::Outcome::in_place, static_cast<uint16_t>(victim->first_port)};
    forget(*victim);
  }
  Entry& place = free != nullptr ? *free : *victim;
  take(place);
  ++own.count;
  place = {key, expires, port, 0};
  return learned;
}

bool Forwarding::add_static(uint64_t mac, std::span<const uint16_t> ports) {
  const uint64_t key = key_of(kStatic, mac, 0);
  Entry* entry = ports.empty() ? nullptr : place_static(key);
  if (entry == nullptr) return false;
  *entry = {key, kNever, static_cast<uint32_t>(ports_.size()), static_cast<uint32_t>(ports.size())};
  ports_.insert(ports_.end(), ports.begin(), ports.end());
  static_ = configured_ = true;
  return true;
}

void Forwarding::add_static_range(uint64_t first_mac, std::vector<uint16_t> group_of,
                                  std::span<const std::vector<uint16_t>> groups) {
  configured_ = true;
  first_mac_ = first_mac;
  group_of_ = std::move(group_of);
  groups_.clear();
  for (const std::vector<uint16_t>& group : groups) {
    groups_.push_back({static_cast<uint32_t>(ports_.size()), static_cast<uint32_t>(group.size())});
    ports_.insert(ports_.end(), group.begin(), group.end());
  }
  for (uint16_t& group : group_of_) {
    if (group != kNoGroup && groups[group].size() == 1) group = static_cast<uint16_t>(kSinglePort | groups[group][0]);
  }
}

void Forwarding::clear_static() {
  for (Entry& entry : table_) {
    if (entry.expires == kNever) entry.expires = kOver;
  }
  ports_.clear();
  group_of_.clear();
  groups_.clear();
  static_ = pinned_ = configured_ = false;
}

std::span<const uint16_t> Forwarding::entry_ports(const Entry& entry) const {
  return std::span(ports_).subspan(entry.first_port, entry.ports);
}

bool Forwarding::pin(uint64_t source, uint64_t destination, uint16_t port) {
  const uint64_t key = pin_key(source, destination);
  Entry* entry = place_static(key);
  if (entry == nullptr) return false;
  *entry = {key, kNever, port, 0};
  pinned_ = configured_ = true;
  return true;
}

// Learns an address that is not the first that its hash leads to, or not as it was.
Forwarding::Learned Forwarding::learn_anew(Time now, uint64_t key, uint16_t port) {
  const Entry* entry = probe(key, slot_of(key));
  if (entry != nullptr && entry->first_port == port) {
    table_[static_cast<size_t>(entry - table_.data())].expires = now + ageing_;
    return {};
  }
  if (is_group(key >> 12)) return {};
  return store(now, key, port, now + ageing_);
}

bool Forwarding::is_news(Time now, const PacketMeta& meta, uint16_t port) const {
  if (is_group(meta.source_mac)) return false;
  const Entry* entry = find(now, key_of(kLearned, meta.source_mac, meta.vlan()));
  return entry == nullptr || entry->first_port != port || entry->ports != telling_period(now);
}

void Forwarding::told(Time now, const PacketMeta& meta) {
  const Entry* entry = find(now, key_of(kLearned, meta.source_mac, meta.vlan()));
  if (entry != nullptr) table_[static_cast<size_t>(entry - table_.data())].ports = telling_period(now);
}

Forwarding::Learned Forwarding::hear(Time now, Time at, uint64_t mac, uint16_t vlan, uint16_t port) {
  const uint64_t key = key_of(kLearned, mac, vlan);
  const Entry* entry = find(now, key);
  if (entry != nullptr && entry->expires > at + ageing_) return {};
  return store(now, key, port, at + ageing_);
}

Forwarding::NextHops Forwarding::route(Time now, const PacketMeta& meta) const {
  if (pinned_) {
    const Entry* entry = find(now, pin_key(meta.source_mac, meta.destination_mac));
    if (entry != nullptr) return {entry->first_port, 1};
  }
  const uint64_t place = meta.destination_mac - first_mac_;
  if (place < group_of_.size() && group_of_[place] != kNoGroup) {
    const uint16_t group = group_of_[place];
    if ((group & kSinglePort) != 0) return {static_cast<uint32_t>(group & ~kSinglePort), 1};
    return groups_[group];
  }
  if (static_) {
    const Entry* entry = find(now, key_of(kStatic, meta.destination_mac, 0));
    if (entry != nullptr) return {entry->ports == 1 ? ports_[entry->first_port] : entry->first_port, entry->ports};
  }
  return {};
}

}  // namespace weir
