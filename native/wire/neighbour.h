// Messages about who has an IP address on a link: ARP (RFC 826), neighbour solicitation and advertisement (RFC 4861, RFC 2464).
#pragma once

#include <cstdint>

#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/packet.h"

namespace weir {

struct NeighbourMessage {
  bool asks = false;     // request or solicitation; else a reply or an advertisement
  uint64_t mac = 0;      // MAC address of `sender`; 0: it does not say
  IpAddress sender;      // address whose MAC address it tells; of an IPv6 answer its target
  IpAddress target;      // asks: for whom
  bool replaces = true;  // may take the place of what was known
};

// The longest that is built here.
inline constexpr uint32_t kNeighbourFrame = kEthernetHeader + kVlanTag + kIpv6Header + 32;

// Total: any frame that classify() filled `meta` from, of which `present` bytes are there. False: it is no such message, or fails
// a check of RFC 826, or RFC 4861, 7.1.
bool read_neighbour_message(const uint8_t* frame, uint32_t present, const PacketMeta& meta, NeighbourMessage& message);

// Asks who has `target`: everybody, or one who has had it (`link.destination_mac` other than 0). Writes a whole frame to `out`,
// which has room for kNeighbourFrame bytes; returns its length. `link`: source and tag.
uint32_t build_neighbour_question(uint8_t* out, LinkHeader link, const IpAddress& own, const IpAddress& target);
// Where the answer to a question goes that came from `source_mac`. 0: there is no such place.
uint64_t mac_of_asker(const NeighbourMessage& question, uint64_t source_mac);
// Tells `link.destination_mac`, which asked as `asker`, that `own` is at `link.source_mac`.
uint32_t build_neighbour_answer(uint8_t* out, const LinkHeader& link, const IpAddress& own, const IpAddress& asker);

}  // namespace weir
