#include "link/neighbour_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weir {
namespace {

constexpr uint32_t kLookedAt = 64;  // entries looked at to make room

}  // namespace

NeighbourTable::NeighbourTable(uint32_t capacity)
    : buckets_(std::bit_ceil(capacity), kNone), capacity_(capacity), mask_(static_cast<uint32_t>(buckets_.size()) - 1) {}

// An entry that is known, and nobody has sent to, goes.
bool NeighbourTable::make_room() {
  for (uint32_t i = 0; i < kLookedAt; ++i) {
    if (++hand_ >= entries_.size()) hand_ = 0;
    const Entry& entry = entries_[hand_];
    if (entry.state != State::reachable || entry.used || entry.gateway) continue;
    remove(hand_);
    ++counts_.evicted;
    return true;
  }
  ++counts_.full;
  return false;
}

uint32_t NeighbourTable::add(uint8_t version, uint16_t interface, const AddressBits& address) {
  const uint32_t found = find(version, interface, address);
  if (found != kNone) return found;
  if (held_ >= capacity_ && !make_room()) return kNone;
  uint32_t at = static_cast<uint32_t>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  uint32_t& head = buckets_[bucket(interface, address)];
  Entry& entry = entries_[at];
  entry = {};
  entry.address = address;
  entry.interface = interface;
  entry.version = version;
  entry.state = State::incomplete;
  entry.chain = std::exchange(head, at);
  ++held_;
  ++incomplete_;
  return at;
}

void NeighbourTable::remove(uint32_t at) {
  Entry& entry = entries_[at];
  uint32_t* link = &buckets_[bucket(entry.interface, entry.address)];
  while (*link != at) link = &entries_[*link].chain;
  *link = entry.chain;
  if (entry.state == State::incomplete) --incomplete_;
  if (entry.state == State::permanent) --permanent_;
  entry = {};
  free_.push_back(at);
  --held_;
  ++removed_;
}

bool NeighbourTable::wait(PacketPool& pool, uint32_t at, PacketId id) {
  Entry& entry = entries_[at];
  if (entry.waits >= kMostWaitingForOne || waiting_ >= kMostWaiting) return false;
  entry.packets.push(pool, id);
  ++entry.waits;
  ++waiting_;
  return true;
}

PacketId NeighbourTable::take_waiting(PacketPool& pool, uint32_t at) {
  Entry& entry = entries_[at];
  if (entry.waits == 0) return kNoPacket;
  --entry.waits;
  --waiting_;
  return entry.packets.pop(pool);
}

void NeighbourTable::confirm(uint32_t at, Time now, uint64_t mac, uint16_t port) {
  Entry& entry = entries_[at];
  if (entry.state == State::permanent) return;
  if (entry.state == State::incomplete) --incomplete_;
  entry.state = State::reachable;
  entry.mac = mac;
  entry.port = port;
  entry.expires = now + kReachable;
  entry.asked = 0;
  entry.used = entry.gateway;
}

void NeighbourTable::expect(uint32_t at, Time now) {
  Entry& entry = entries_[at];
  if (!entry.known() && entry.used) return;
  entry.expires = std::max(entry.expires, now + 2 * kAskAgain);
  if (!entry.known()) entry.asked = 1;
}

void NeighbourTable::make_permanent(uint32_t at, uint64_t mac, uint16_t port) {
  Entry& entry = entries_[at];
  if (entry.state == State::incomplete) --incomplete_;
  if (entry.state != State::permanent) ++permanent_;
  entry.state = State::permanent;
  entry.mac = mac;
  entry.port = port;
}

void NeighbourTable::forget_answer(uint32_t at) {
  Entry& entry = entries_[at];
  if (entry.state != State::incomplete) ++incomplete_;
  entry.state = State::incomplete;
  entry.asked = 0;
}

void NeighbourTable::forget_permanent(uint32_t at) {
  Entry& entry = entries_[at];
  if (!entry.gateway) return remove(at);
  --permanent_;
  ++incomplete_;
  entry.state = State::incomplete;
}

}  // namespace weir
