#include "switching/route_table.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace weir {
namespace {

uint32_t common_bits(const AddressBits& a, const AddressBits& b) {
  const uint64_t high = a.high ^ b.high;
  return static_cast<uint32_t>(high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(a.low ^ b.low));
}

}  // namespace

template <class T>
uint32_t PrefixTable::Rows<T>::take(uint32_t room) {
  std::vector<uint32_t>& list = free[static_cast<size_t>(std::countr_zero(room))];
  if (!list.empty()) {
    const uint32_t at = list.back();
    list.pop_back();
    return at;
  }
  const auto at = static_cast<uint32_t>(items.size());
  items.resize(items.size() + room);
  return at;
}

template <class T>
uint32_t PrefixTable::Rows<T>::insert(uint32_t at, uint32_t count, uint32_t place, const T& item) {
  const T added = item;  // a copy: it may lie in a row
  const uint32_t room = count == 0 ? 0 : std::bit_ceil(count);
  if (count == room) {
    const uint32_t moved = take(std::bit_ceil(count + 1));
    std::copy_n(items.begin() + at, count, items.begin() + moved);
    if (room > 0) free[static_cast<size_t>(std::countr_zero(room))].push_back(at);
    at = moved;
  }
  std::copy_backward(items.begin() + at + place, items.begin() + at + count, items.begin() + at + count + 1);
  items[at + place] = added;
  return at;
}

template <class T>
uint32_t PrefixTable::Rows<T>::erase(uint32_t at, uint32_t count, uint32_t place) {
  std::copy(items.begin() + at + place + 1, items.begin() + at + count, items.begin() + at + place);
  const uint32_t room = std::bit_ceil(count);
  const uint32_t left = count - 1;
  if (left > 0 && std::bit_ceil(left) == room) return at;
  uint32_t moved = 0;
  if (left > 0) {
    moved = take(std::bit_ceil(left));
    std::copy_n(items.begin() + at, left, items.begin() + moved);
  }
  free[static_cast<size_t>(std::countr_zero(room))].push_back(at);
  return moved;
}

uint32_t PrefixTable::node_of(const AddressBits& prefix, uint32_t length) const {
  const uint32_t depth = node_depth(length);
  uint32_t at = roots()[prefix.high >> (64 - kRootBits)].child;
  while (at != 0) {
    const Node& node = nodes_.items[at];
    if (node.depth > depth || !node.holds(prefix)) return 0;
    if (node.depth == depth) return at;
    const uint32_t chunk = prefix.chunk(node.depth);
    at = node.has_child(chunk) ? node.first_child + ones_below(node.children, chunk) : 0;
  }
  return 0;
}

// A node for the first `depth` bits of the prefix takes the place of one that it shares them with, and has it as its child.
void PrefixTable::split(uint32_t at, const AddressBits& prefix, uint32_t depth) {
  const uint32_t row = nodes_.insert(0, 0, 0, nodes_.items[at]);
  const uint32_t chunk = nodes_.items[row].bits.chunk(depth);
  nodes_.items[at] = {.children = uint64_t{1} << chunk, .first_child = row, .bits = prefix.first(depth), .depth = depth};
}

// Its only child takes the place of a node without prefixes.
void PrefixTable::join(uint32_t at) {
  const uint32_t row = nodes_.items[at].first_child;
  nodes_.items[at] = nodes_.items[row];
  nodes_.erase(row, 1, 0);
}

uint32_t PrefixTable::set(const AddressBits& prefix, uint32_t length, uint32_t value) {
  assert(length <= bits_ && value < kMostValues);
  if (length < kRootBits) return set_short(prefix, length, value);
  const uint32_t depth = node_depth(length);
  const Node made{.bits = prefix.first(depth), .depth = depth};
  Root& root = roots()[prefix.high >> (64 - kRootBits)];
  if (root.child == 0) root.child = nodes_.insert(0, 0, 0, made);
  uint32_t at = root.child;
  while (true) {
    const Node& node = nodes_.items[at];
    const uint32_t common = std::min({common_bits(node.bits, prefix), node.depth, depth});
    if (common < node.depth) split(at, prefix, node_depth(common));
    const Node& here = nodes_.items[at];
    if (here.depth == depth) break;
    const uint32_t chunk = prefix.chunk(here.depth);
    const uint32_t place = ones_below(here.children, chunk);
    if (!here.has_child(chunk)) {
      const auto count = static_cast<uint32_t>(std::popcount(here.children));
      const uint32_t row = nodes_.insert(here.first_child, count, place, made);
      nodes_.items[at].first_child = row;
      nodes_.items[at].children |= uint64_t{1} << chunk;
    }
    at = nodes_.items[at].first_child + place;
  }
  Node& node = nodes_.items[at];
  const uint32_t position = position_in_node(prefix.chunk(depth), length - depth);
  const uint32_t place = ones_below(node.prefixes, position);
  if ((node.prefixes >> position & 1) != 0) return std::exchange(values_.items[node.first_value + place], value);
  const auto count = static_cast<uint32_t>(std::popcount(node.prefixes));
  node.first_value = values_.insert(node.first_value, count, place, value);
  node.prefixes |= uint64_t{1} << position;
  ++size_;
  return kNone;
}

uint32_t PrefixTable::remove(const AddressBits& prefix, uint32_t length) {
  if (length < kRootBits) return remove_short(prefix, length);
  const uint32_t depth = node_depth(length);
  uint32_t parent = 0;
  Root& root = roots()[prefix.high >> (64 - kRootBits)];
  uint32_t at = root.child;
  while (at != 0 && nodes_.items[at].depth < depth && nodes_.items[at].holds(prefix)) {
    const Node& node = nodes_.items[at];
    const uint32_t chunk = prefix.chunk(node.depth);
    parent = at;
    at = node.has_child(chunk) ? node.first_child + ones_below(node.children, chunk) : 0;
  }
  if (at == 0 || nodes_.items[at].depth != depth || !nodes_.items[at].holds(prefix)) return kNone;
  Node& node = nodes_.items[at];
  const uint32_t position = position_in_node(prefix.chunk(depth), length - depth);
  if ((node.prefixes >> position & 1) == 0) return kNone;
  const uint32_t place = ones_below(node.prefixes, position);
  const uint32_t value = values_.items[node.first_value + place];
  node.first_value = values_.erase(node.first_value, static_cast<uint32_t>(std::popcount(node.prefixes)), place);
  node.prefixes &= ~(uint64_t{1} << position);
  --size_;
  if (node.prefixes != 0) return value;
  if (std::popcount(node.children) == 1) {
    join(at);
  } else if (node.children == 0 && parent == 0) {
    root.child = nodes_.erase(at, 1, 0);
  } else if (node.children == 0) {
    const uint32_t chunk = prefix.chunk(nodes_.items[parent].depth);
    const uint64_t children = nodes_.items[parent].children;
    const uint32_t row = nodes_.erase(nodes_.items[parent].first_child, static_cast<uint32_t>(std::popcount(children)),
                                      ones_below(children, chunk));
    nodes_.items[parent].first_child = row;
    nodes_.items[parent].children &= ~(uint64_t{1} << chunk);
    if (nodes_.items[parent].prefixes == 0 && std::popcount(nodes_.items[parent].children) == 1) join(parent);
  }
  return value;
}

uint32_t PrefixTable::find(const AddressBits& prefix, uint32_t length) const {
  if (length < kRootBits) {
    const auto found = short_.find(short_key(prefix, length));
    return found != short_.end() ? found->second : kNone;
  }
  const uint32_t at = node_of(prefix, length);
  if (at == 0) return kNone;
  const Node& node = nodes_.items[at];
  const uint32_t position = position_in_node(prefix.chunk(node.depth), length - node.depth);
  if ((node.prefixes >> position & 1) == 0) return kNone;
  return values_.items[node.first_value + ones_below(node.prefixes, position)];
}

// Entries within the prefix whose cover is not longer than `below` - 1 get another one.
void PrefixTable::cover(const AddressBits& prefix, uint32_t length, uint32_t below, uint32_t with) {
  Root* entry = roots() + (prefix.first(length).high >> (64 - kRootBits));
  Root* const end = entry + (size_t{1} << (kRootBits - length));
  for (; entry != end; ++entry) {
    if (entry->cover >> 26 <= below && entry->cover != with) entry->cover = with;
  }
}

uint32_t PrefixTable::set_short(const AddressBits& prefix, uint32_t length, uint32_t value) {
  const auto [entry, is_new] = short_.try_emplace(short_key(prefix, length), value);
  const uint32_t before = is_new ? kNone : std::exchange(entry->second, value);
  if (is_new) ++size_;
  if (before != value) cover(prefix, length, length + 1, (length + 1) << 26 | value);
  return before;
}

uint32_t PrefixTable::remove_short(const AddressBits& prefix, uint32_t length) {
  const auto entry = short_.find(short_key(prefix, length));
  if (entry == short_.end()) return kNone;
  const uint32_t value = entry->second;
  short_.erase(entry);
  --size_;
  uint32_t with = 0;
  for (uint32_t shorter = length; shorter-- > 0 && with == 0;) {
    const auto found = short_.find(short_key(prefix, shorter));
    if (found != short_.end()) with = (shorter + 1) << 26 | found->second;
  }
  cover(prefix, length, length + 1, with);
  return value;
}

uint64_t NextHopGroups::digest(std::span<const Way> ways) {
  uint64_t sum = ways.size();
  for (const Way& way : ways) sum = Random::mix(sum ^ (uint64_t{way.next_hop} << 32 | way.weight));
  return sum;
}

uint32_t NextHopGroups::hold(std::span<const Way> ways) {
  assert(!ways.empty() && ways.size() <= kMostWays);
  const uint64_t key = digest(ways);
  const auto [from, to] = by_digest_.equal_range(key);
  const auto same =
      std::find_if(from, to, [&](const auto& entry) { return std::ranges::equal(groups_[entry.second].ways, ways); });
  if (same != to) {
    ++groups_[same->second].holders;
    return same->second;
  }
  uint32_t number;
  if (free_.empty()) {
    number = static_cast<uint32_t>(groups_.size());
    groups_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Group& group = groups_[number];
  group.holders = 1;
  group.ways.assign(ways.begin(), ways.end());
  uint32_t unit = 0;
  for (const Way& way : ways) unit = std::gcd(unit, way.weight);
  for (const Way& way : ways) group.places.insert(group.places.end(), way.weight / unit, way.next_hop);
  by_digest_.emplace(key, number);
  ++held_;
  return number;
}

void NextHopGroups::release(uint32_t number) {
  Group& group = groups_[number];
  if (--group.holders > 0) return;
  const auto [from, to] = by_digest_.equal_range(digest(group.ways));
  by_digest_.erase(std::find_if(from, to, [&](const auto& entry) { return entry.second == number; }));
  group = {};
  free_.push_back(number);
  --held_;
}

}  // namespace weir
