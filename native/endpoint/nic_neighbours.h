// The neighbours of a NIC: it finds the MAC addresses behind IP addresses of its link, by ARP (RFC 826) or by neighbour discovery
// (RFC 4861), and answers those that ask for its own, and pings. Entries are those of link/neighbour_table.h, with its times and
// limits; a NIC has nobody else's packets that wait.
//
//   hear(now, frame)    a frame that is for no queue pair
//   resolve(now, ...)   somebody wants to know an address
//   (followed)          some are looked for from the start, again and again, and whatever becomes of them is told
//   advance(now)        asks again, and gives up; next_deadline() says when
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "base/describe.h"
#include "base/types.h"
#include "link/neighbour_table.h"
#include "wire/icmp.h"
#include "wire/ip.h"
#include "wire/neighbour.h"
#include "wire/packet_pool.h"

namespace weir {

struct NicNeighbourParameters {
  struct Own {
    IpAddress address;
    bool answers = false;
  };
  struct Followed {
    IpAddress address;
    uint16_t own = 0;
  };
  std::vector<Own> addresses;
  std::vector<Followed> followed;
  uint16_t vlan = 0;
};
void describe(auto& v, Of<NicNeighbourParameters::Own> auto& own) {
  v.type("NativeOwnAddress", "An address of a NIC.");
  v("address", own.address, field::any("From which it asks for others."));
  v("answers", own.answers, field::any("The host's kernel does not have it: the NIC answers those that ask for it, and pings."));
}
void describe(auto& v, Of<NicNeighbourParameters::Followed> auto& p) {
  v.type("NativeFollowed", "An address of another that a NIC looks for from the start, and follows.");
  v("address", p.address, field::any("Its own, or that of the next hop to it."));
  v("own", p.own, field::any("The place of the NIC's address from which it asks."));
}
void describe(auto& v, Of<NicNeighbourParameters> auto& p) {
  v.type("NativeNeighbours", "How a NIC finds others on its link, and is found.");
  v("addresses", p.addresses, field::any("Its own."));
  v("followed", p.followed, field::optional(field::any("Records tell what becomes of them.")));
  v("vlan", p.vlan, field::optional(field::within(0, 4094, "802.1Q tag of its questions and answers; 0: none.")));
  for (const auto& each : p.followed) {
    const bool asks = each.own < p.addresses.size() && p.addresses[each.own].address.version == each.address.version;
    v.rule(asks, "others are asked for from an address of their IP version");
  }
}

#define WEIR_NIC_NEIGHBOUR_COUNTERS(X)                                                                                   \
  X(icmp_echo_replies, "packets", none, "Pings that the NIC has answered")                                               \
  X(icmp_echo_limited, "packets", none, "Pings that the NIC has not answered: more than 1000 in a second")               \
  X(neighbor_full, "events", none, "Hosts that asked for the NIC and were not learned: the table of neighbors was full") \
  X(neighbor_unsent, "events", none, "Questions and answers about neighbors, and answers to pings, that the host had no room for")

WEIR_DEFINE_COUNTERS(NicNeighbourCounters, WEIR_NIC_NEIGHBOUR_COUNTERS);

class NicNeighbours {
 public:
  // The MAC address that was found; 0: nobody answers; nothing: the NIC has ended.
  using Found = std::optional<uint64_t>;
  using Listener = std::function<void(Found)>;
  // The most addresses that are known.
  static constexpr uint32_t kMost = 4'096;

  struct Host {
    std::function<bool(PacketId)> send;  // owns a frame from then on, unless it says no
    // One that is followed has this MAC address, if it is another than before; 0: it does not answer.
    std::function<void(uint32_t place, uint64_t mac)> tell;
  };

  // `pool` outlives the NIC's neighbours.
  NicNeighbours(const NicNeighbourParameters& parameters, uint64_t mac, PacketPool& pool, Host host);
  ~NicNeighbours();
  NicNeighbours(const NicNeighbours&) = delete;
  NicNeighbours& operator=(const NicNeighbours&) = delete;

  // False: it is about no neighbour, and no ping that is answered. `meta` is as classify() has it, without a tag that `frame`
  // lacks.
  bool hear(Time now, const uint8_t* frame, uint32_t length, const PacketMeta& meta);
  // Tells `listener` once, at once if it is known. `own`: the place of the address from which is asked. Throws NativeError
  // INVALID_ADDRESS where that is none of this version, NO_RESOURCES.
  void resolve(Time now, uint32_t own, const IpAddress& address, Listener listener);
  // Its own addresses are others now. Others are asked for from one that is left; those that nobody can ask for are given up.
  void take_addresses(const std::vector<NicNeighbourParameters::Own>& addresses);
  void advance(Time now);
  Time next_deadline() const { return due_; }

  NicNeighbourCounters& counters() { return counters_; }
  const NeighbourTable& table() const { return table_; }

 private:
  const NicNeighbourParameters::Own* own(const IpAddress& address) const;
  void learn(Time now, const NeighbourMessage& message, const NicNeighbourParameters::Own* asked);
  void answer(const NeighbourMessage& message, const PacketMeta& meta);
  bool hear_ping(Time now, const uint8_t* frame, uint32_t length, const PacketMeta& meta);
  void ask(Time now, uint32_t at);
  void give_up(Time now, uint32_t at);
  void tell(uint32_t at, Found found);
  void tell_of(uint32_t place, uint64_t mac);
  PacketId make(uint32_t length);
  void send(PacketId id);
  void send(const uint8_t* bytes, uint32_t length);
  LinkHeader link_to(uint64_t mac) const;

  NicNeighbourParameters parameters_;
  uint64_t mac_;
  PacketPool& pool_;
  Host host_;
  NeighbourTable table_;
  struct Followed {
    uint32_t at;           // its entry
    uint64_t told = kNew;  // what was told last
  };
  static constexpr uint64_t kNew = UINT64_MAX;
  std::vector<Followed> followed_;
  std::map<uint32_t, std::vector<Listener>> listeners_;  // of entries that are asked for
  Time due_ = kNever;
  IcmpBudget pings_;
  NicNeighbourCounters counters_;
};

}  // namespace weir
