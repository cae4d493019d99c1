// MAC addresses of IP addresses on links of a device, and the packets that wait for them. Everything is bounded: a
// stranger who asks or answers as a million hosts takes the places of those that nobody sends to, and packets to a million hosts
// that are not there take the waiting room alone, a few for each.
//
//   incomplete  it was asked for; packets wait. Three questions a second apart, then they are dropped
//   reachable   it has answered, or asked us. After kReachable it is asked again if it was sent to, else forgotten
//   permanent   by configuration
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "wire/address_bits.h"
#include "wire/packet_pool.h"

namespace weir {

enum class NeighbourState : uint8_t { unused, incomplete, reachable, permanent };
constexpr auto words_of(NeighbourState) { return std::array{"unused", "incomplete", "reachable", "permanent"}; }

class NeighbourTable {
 public:
  using State = NeighbourState;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr Time kAskAgain = kSecond;        // RFC 4861, RETRANS_TIMER
  static constexpr uint8_t kQuestions = 3;          // RFC 4861, MAX_MULTICAST_SOLICIT
  static constexpr Time kReachable = 30 * kSecond;  // RFC 4861, REACHABLE_TIME
  static constexpr uint32_t kMostIncomplete = 1'024;
  static constexpr uint32_t kMostWaiting = 512;  // packets, of all
  static constexpr uint32_t kMostWaitingForOne = 8;

  struct Entry {
    AddressBits address;
    uint64_t mac = 0;
    Time expires = 0;
    uint32_t chain = kNone;
    uint16_t interface = 0;
    uint16_t port = 0;
    uint8_t version = 4;
    State state = State::unused;
    bool used = false;     // sent to since it was heard of last
    bool gateway = false;  // a route's: it stays
    uint8_t asked = 0;     // questions without an answer
    uint8_t waits = 0;     // packets
    PacketQueue packets;

    bool known() const { return state >= State::reachable; }
  };
  struct Counts {
    uint64_t full = 0;     // not learned: there is no room
    uint64_t evicted = 0;  // forgotten to make room
  };

  // `capacity`: most entries.
  explicit NeighbourTable(uint32_t capacity);

  Entry& operator[](uint32_t at) { return entries_[at]; }
  const Entry& operator[](uint32_t at) const { return entries_[at]; }
  // kNone: it is not there.
  uint32_t find(uint8_t version, uint16_t interface, const AddressBits& address) const {
    for (uint32_t at = buckets_[bucket(interface, address)]; at != kNone; at = entries_[at].chain) {
      const Entry& entry = entries_[at];
      if (entry.address == address && entry.interface == interface && entry.version == version) return at;
    }
    return kNone;
  }
  // Returns that entry, or a new one that is incomplete; kNone: there is no room. Unused entries make room.
  uint32_t add(uint8_t version, uint16_t interface, const AddressBits& address);
  // The caller has taken the packets that waited there.
  void remove(uint32_t at);
  // True where the packet waits now, and the entry owns it.
  bool wait(PacketPool& pool, uint32_t at, PacketId id);
  // Returns the packet that has waited longest, or kNoPacket.
  PacketId take_waiting(PacketPool& pool, uint32_t at);
  // It is there: a new entry or one that is known. `at`: its place.
  void confirm(uint32_t at, Time now, uint64_t mac, uint16_t port);
  void make_permanent(uint32_t at, uint64_t mac, uint16_t port);
  // Somebody else asks for it: it stays until the answer has had its time, if nothing is sent to it here.
  void expect(uint32_t at, Time now);
  // It has not answered: it is incomplete again, and asked for by the next packet.
  void forget_answer(uint32_t at);
  // It is by configuration no more: one that nobody needs goes.
  void forget_permanent(uint32_t at);

  // None is a route's, until somebody says so.
  void forget_gateways() {
    for (Entry& entry : entries_) entry.gateway = false;
  }

  bool may_ask() const { return incomplete_ < kMostIncomplete; }
  uint32_t size() const { return held_; }
  uint32_t waiting() const { return waiting_; }
  // Number of entries that have gone so far: the place of each may be another's now.
  uint64_t removed() const { return removed_; }
  // Any that time changes.
  bool ages() const { return held_ > permanent_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Counts& counts() const { return counts_; }

 private:
  uint32_t bucket(uint16_t interface, const AddressBits& address) const {
    return static_cast<uint32_t>(Random::mix(address.high ^ (address.low + interface) * kOdd)) & mask_;
  }
  bool make_room();
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> buckets_;
  uint32_t capacity_;
  uint32_t mask_;
  uint32_t hand_ = 0;  // place where make_room() looks next
  uint32_t held_ = 0;
  uint32_t permanent_ = 0;
  uint32_t incomplete_ = 0;
  uint32_t waiting_ = 0;
  uint64_t removed_ = 0;
  Counts counts_;
};

}  // namespace weir
