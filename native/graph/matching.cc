#include "graph/matching.h"

#include <algorithm>
#include <utility>

namespace weir {

uint32_t Matching::meet(const Key& key, uint32_t own, bool message) {
  size_t place = home(key);
  while (slots_[place].key.rank != kNone && slots_[place].key != key) place = (place + 1) & (slots_.size() - 1);
  Slot& slot = slots_[place];
  if (slot.key.rank == kNone) {
    slot = {.key = key, .head = own, .tail = own, .messages = message};
    links_[own] = kNone;
    if (++used_ * 2 > slots_.size()) grow();
    return kNone;
  }
  if (slot.messages == message) {
    links_[own] = kNone;
    links_[std::exchange(slot.tail, own)] = own;
    return kNone;
  }
  const uint32_t first = slot.head;
  slot.head = links_[first];
  if (slot.head == kNone) remove(place);
  return first;
}

// Those behind it that could stand in its place move up, so that none is looked for in vain.
void Matching::remove(size_t place) {
  const size_t mask = slots_.size() - 1;
  --used_;
  for (size_t next = (place + 1) & mask; slots_[next].key.rank != kNone; next = (next + 1) & mask) {
    const size_t wanted = home(slots_[next].key);
    if (((next - wanted) & mask) < ((next - place) & mask)) continue;
    slots_[place] = slots_[next];
    place = next;
  }
  slots_[place] = {};
}

void Matching::grow() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const Slot& slot : before) {
    if (slot.key.rank == kNone) continue;
    size_t place = home(slot.key);
    while (slots_[place].key.rank != kNone) place = (place + 1) & (slots_.size() - 1);
    slots_[place] = slot;
  }
}

bool Matching::takes(uint32_t receive, uint32_t source, uint32_t message) const {
  const uint32_t peer = graph_.peer(receive), tag = graph_.tag(receive);
  return (peer == MessageGraph::kAny || peer == source) && (tag == MessageGraph::kAny || tag == graph_.tag(message));
}

uint32_t Matching::arrive_in_order(uint32_t rank, uint32_t source, uint32_t message) {
  InOrder& own = in_order_[rank];
  const auto found = std::ranges::find_if(own.receives, [&](uint32_t receive) { return takes(receive, source, message); });
  if (found == own.receives.end()) return own.messages.push_back({source, message}), kNone;
  const uint32_t receive = *found;
  own.receives.erase(found);
  return receive;
}

uint32_t Matching::post_in_order(uint32_t rank, uint32_t receive) {
  InOrder& own = in_order_[rank];
  const auto fits = [&](const InOrder::Message& one) { return takes(receive, one.source, one.message); };
  const auto found = std::ranges::find_if(own.messages, fits);
  if (found == own.messages.end()) return own.receives.push_back(receive), kNone;
  const uint32_t message = found->message;
  own.messages.erase(found);
  return message;
}

}  // namespace weir
