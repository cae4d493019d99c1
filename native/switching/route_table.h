// Longest-prefix match of IPv4 and IPv6 addresses, and groups of next hops that routes name.
//
// A prefix table is a direct index by the first kRootBits of an address, and below it a tree bitmap with a stride of 6 bits
// (Eatherton, Varghese, Dittia, "Tree bitmap: hardware/software IP lookups with incremental updates", SIGCOMM CCR 2004): a node
// says by bits which prefixes end in it and which children it has, and both lie next to each other. If only one way leads on,
// there is no node, and the next one says which bits it stands for. An IPv4 route of 24 bits costs the index, a node and its
// result; a change touches one node or two, or, for a prefix shorter than the index, the entries that it covers. An address that
// matches nothing costs no more. Nothing is allocated in a lookup.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/lazy_memory.h"
#include "wire/address_bits.h"

namespace weir {

// Prefixes of one IP version, each with a value.
class PrefixTable {
 public:
  static constexpr uint32_t kRootBits = 20;
  static constexpr uint32_t kMostValues = 1u << 26;
  static constexpr uint32_t kNone = UINT32_MAX;

  // `version`: 4 or 6. Takes 8 MiB of address space, of which what is touched costs memory.
  explicit PrefixTable(uint8_t version)
      : bits_(version == 6 ? 128 : 32), root_memory_((size_t{1} << kRootBits) * sizeof(Root), false) {}

  // A new route, or another value of one that is there. `length`: of the prefix, up to 32 or 128; bits behind it do not count.
  // `value`: below kMostValues. Returns the value before; kNone: it is new.
  uint32_t set(const AddressBits& prefix, uint32_t length, uint32_t value);
  // Returns the value that it had; kNone: there was no such route.
  uint32_t remove(const AddressBits& prefix, uint32_t length);
  // Returns the value of exactly that prefix, or kNone.
  uint32_t find(const AddressBits& prefix, uint32_t length) const;
  // Number of prefixes.
  size_t size() const { return size_; }

  // The value of the longest prefix of the address, or kNone.
  uint32_t lookup(const AddressBits& address) const {
    const Root& root = roots()[address.high >> (64 - kRootBits)];
    uint32_t best = kNone;
    uint32_t at = root.child;
    while (at != 0) {
      const Node& node = nodes_.items[at];
      if (!node.holds(address)) break;
      const uint32_t chunk = address.chunk(node.depth);
      const uint64_t match = node.prefixes & kOnPath[chunk];
      if (match != 0) best = node.first_value + ones_below(node.prefixes, 63 - static_cast<uint32_t>(std::countl_zero(match)));
      if (!node.has_child(chunk)) break;
      at = node.first_child + ones_below(node.children, chunk);
    }
    if (best != kNone) return values_.items[best];
    return root.cover != 0 ? root.cover & kValueMask : kNone;
  }
  void fetch(const AddressBits& address) const { __builtin_prefetch(&roots()[address.high >> (64 - kRootBits)]); }

 private:
  static constexpr uint32_t kStride = 6;
  static constexpr uint32_t kValueMask = kMostValues - 1;

  // Entry for each value of the first bits.
  struct Root {
    uint32_t child = 0;  // a node; 0: none
    uint32_t cover = 0;  // the longest shorter prefix: its length + 1 in the upper 6 bits, and its value; 0: none
  };
  // Node of addresses that begin with `depth` given bits, kRootBits or some strides more.
  struct Node {
    uint64_t prefixes = 0;  // those that are 0 to 5 bits longer: the one of length l and bits b is bit (1 << l) - 1 + b
    uint64_t children = 0;
    uint32_t first_value = 0;
    uint32_t first_child = 0;
    AddressBits bits;
    uint32_t depth = kRootBits;

    bool holds(const AddressBits& address) const {
      const uint64_t high = address.high ^ bits.high;
      return depth <= 64 ? high >> (64 - depth) == 0 : high == 0 && (address.low ^ bits.low) >> (128 - depth) == 0;
    }
    bool has_child(uint32_t chunk) const { return (children >> chunk & 1) != 0; }
  };

  // Rows of up to 64 items that grow and shrink; each has room for a power of two of them. Place 0 is nobody's.
  template <class T>
  struct Rows {
    std::vector<T> items{1};
    std::array<std::vector<uint32_t>, 7> free;

    uint32_t take(uint32_t room);
    // A row of `count` items at `at` gets one more in `place`, or loses it. Returns where the row is now; 0: there is none.
    uint32_t insert(uint32_t at, uint32_t count, uint32_t place, const T& item);
    uint32_t erase(uint32_t at, uint32_t count, uint32_t place);
  };

  // Counts the ones that `bits` has below `position`. x86-64 does not promise the instruction for it.
  static uint32_t ones_below(uint64_t bits, uint32_t position) {
    uint64_t x = bits & ((uint64_t{1} << position) - 1);
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<uint32_t>(x * 0x0101010101010101 >> 56);
  }
  // The bits of a node's prefixes that begin with none to five bits of a chunk.
  static constexpr std::array<uint64_t, 64> kOnPath = [] {
    std::array<uint64_t, 64> masks{};
    for (uint32_t chunk = 0; chunk < 64; ++chunk) {
      for (uint32_t length = 0; length < kStride; ++length) {
        masks[chunk] |= uint64_t{1} << ((1u << length) - 1 + (chunk >> (kStride - length)));
      }
    }
    return masks;
  }();
  static uint32_t position_in_node(uint32_t chunk, uint32_t length) { return (1u << length) - 1 + (chunk >> (kStride - length)); }
  static uint64_t short_key(const AddressBits& prefix, uint32_t length) { return prefix.first(length).high | length; }

  Root* roots() { return reinterpret_cast<Root*>(root_memory_.data()); }
  const Root* roots() const { return reinterpret_cast<const Root*>(root_memory_.data()); }
  // The depth of the node in which a prefix of that length ends.
  static uint32_t node_depth(uint32_t length) { return length - (length - kRootBits) % kStride; }
  // The node in which a prefix of that length ends, or 0.
  uint32_t node_of(const AddressBits& prefix, uint32_t length) const;
  void split(uint32_t at, const AddressBits& prefix, uint32_t depth);
  void join(uint32_t at);
  uint32_t set_short(const AddressBits& prefix, uint32_t length, uint32_t value);
  uint32_t remove_short(const AddressBits& prefix, uint32_t length);
  void cover(const AddressBits& prefix, uint32_t length, uint32_t below, uint32_t with);

  uint32_t bits_;
  size_t size_ = 0;
  LazyMemory root_memory_;
  Rows<Node> nodes_;
  Rows<uint32_t> values_;
  std::unordered_map<uint64_t, uint32_t> short_;  // prefixes shorter than the index, by short_key()
};

// Sets of next hops, which routes share. A frame takes one of a group's places; a next hop has as many of them as its weight
// says, so that who chooses evenly among places (load_balancing.h) chooses by weight.
class NextHopGroups {
 public:
  static constexpr size_t kMostWays = 64;
  static constexpr uint32_t kMostWeight = 255;
  struct Way {
    uint32_t next_hop = 0;  // a number of the caller's
    uint32_t weight = 1;
    auto operator<=>(const Way&) const = default;
  };

  // A group of 1 to kMostWays ways with weights of 1 to kMostWeight: the one that is there, or a new one; its number. Once for
  // each release().
  uint32_t hold(std::span<const Way> ways);
  void release(uint32_t group);

  size_t size() const { return held_; }
  std::span<const Way> ways(uint32_t group) const { return groups_[group].ways; }
  // The next hop of each place; one place at least.
  std::span<const uint32_t> places(uint32_t group) const { return groups_[group].places; }

 private:
  struct Group {
    std::vector<uint32_t> places;
    std::vector<Way> ways;
    uint32_t holders = 0;
  };
  static uint64_t digest(std::span<const Way> ways);

  std::vector<Group> groups_;
  std::vector<uint32_t> free_;
  std::unordered_multimap<uint64_t, uint32_t> by_digest_;
  size_t held_ = 0;
};

}  // namespace weir
