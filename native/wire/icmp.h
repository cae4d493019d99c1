// ICMP (RFC 792, RFC 1812) and ICMPv6 (RFC 4443): what routers say of packets that they do not forward, and echo.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/types.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/packet.h"

namespace weir {

inline constexpr uint32_t kIcmpHeader = 8;
inline constexpr uint8_t kNeighbourSolicitation = 135;
inline constexpr uint8_t kNeighbourAdvertisement = 136;

enum class IcmpError : uint8_t { time_exceeded, no_route, host_unreachable, port_unreachable, too_big };

// The most that an error has in front of what it quotes, and of what it quotes: RFC 1812, 4.3.2.3, and RFC 4443, 2.4 (c) allow
// 576 and 1280 bytes in all.
inline constexpr uint32_t kIcmpErrorHeaders = kEthernetHeader + kVlanTag + kIpv6Header + kIcmpHeader;
inline constexpr uint32_t kMostQuoted = 548;

// Whether an error may be sent about an IP packet of which `present` bytes are there (RFC 1122, 3.2.2; RFC 4443, 2.4 (e)): not of
// ICMP errors, of what is no first fragment, or has a source that is none.
bool may_answer_with_error(const uint8_t* ip, uint32_t present);

// An error about the IP packet of which `present` bytes are at `ip`, from `own` to its source. Writes a whole frame to `out`,
// which has `room` bytes, kIcmpErrorHeaders at least; returns its length. `mtu`: of the link that was too small.
uint32_t build_icmp_error(uint8_t* out, uint32_t room, const LinkHeader& link, const IpAddress& own, const uint8_t* ip,
                          uint32_t present, IcmpError error, uint32_t mtu);

// Whether an IP packet with a right header is an echo request that is whole and right, from a single host's address.
bool is_echo_request(const uint8_t* ip, uint32_t present);
// Makes the answer of one, in place, as far as IP goes. False: it is none.
bool make_echo_reply(uint8_t* ip, uint32_t present);

// ICMP messages of a host or a router, of all of its threads: as many as Linux sends in a second, and at once
// (icmp_msgs_per_sec, icmp_msgs_burst).
class IcmpBudget {
 public:
  // False: it is used up.
  bool take(Time now) {
    Time used = used_.load(std::memory_order_relaxed);
    do {
      if (used - now >= kBurst) return false;
    } while (!used_.compare_exchange_weak(used, std::max(used, now) + kEach, std::memory_order_relaxed));
    return true;
  }

 private:
  static constexpr Time kEach = kSecond / 1000;
  static constexpr Time kBurst = 50 * kEach;

  std::atomic<Time> used_{0};  // up to when
};

}  // namespace weir
