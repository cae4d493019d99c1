#include "endpoint/nic_neighbours.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/native_error.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

bool is_unspecified(const IpAddress& address) { return address == IpAddress{.version = address.version}; }

}  // namespace

NicNeighbours::NicNeighbours(const NicNeighbourParameters& parameters, uint64_t mac, PacketPool& pool, Host host)
    : parameters_(parameters),
      mac_(mac),
      pool_(pool),
      host_(std::move(host)),
      table_(kMost + static_cast<uint32_t>(parameters.followed.size())) {
  for (const auto& [address, from] : parameters_.followed) {
    if (own(address) != nullptr) {
      followed_.push_back({NeighbourTable::kNone});
      tell_of(static_cast<uint32_t>(followed_.size()) - 1, mac_);
      continue;
    }
    const uint32_t at = table_.add(address.version, 0, AddressBits::of(address));
    table_[at].gateway = table_[at].used = true;
    table_[at].port = from;
    followed_.push_back({at});
    due_ = 0;
  }
}

NicNeighbours::~NicNeighbours() {
  while (!listeners_.empty()) tell(listeners_.begin()->first, std::nullopt);
}

const NicNeighbourParameters::Own* NicNeighbours::own(const IpAddress& address) const {
  const auto& all = parameters_.addresses;
  const auto found = std::ranges::find(all, address, &NicNeighbourParameters::Own::address);
  return found == all.end() ? nullptr : &*found;
}

// Frames of the NIC's own MAC address are its own, or those of another that has it: nothing is learned of them.
bool NicNeighbours::hear(Time now, const uint8_t* frame, uint32_t length, const PacketMeta& meta) {
  if (meta.source_mac == mac_) return false;
  NeighbourMessage message;
  if (!read_neighbour_message(frame, length, meta, message)) return hear_ping(now, frame, length, meta);
  const NicNeighbourParameters::Own* const asked = message.asks ? own(message.target) : nullptr;
  learn(now, message, asked);
  if (asked != nullptr && asked->answers) answer(message, meta);
  return true;
}

// RFC 826, "Packet Reception", and RFC 4861, 7.2.3 and 7.2.5: what is known or looked for is brought up to date, what asks for us
// is learned.
void NicNeighbours::learn(Time now, const NeighbourMessage& message, const NicNeighbourParameters::Own* asked) {
  const IpAddress& sender = message.sender;
  const bool tells = message.mac != 0 && message.mac != mac_ && !is_group(message.mac);
  if (!tells || is_unspecified(sender) || own(sender) != nullptr) return;
  uint32_t at = table_.find(sender.version, 0, AddressBits::of(sender));
  if (at == NeighbourTable::kNone && asked != nullptr) {
    at = table_.add(sender.version, 0, AddressBits::of(sender));
    if (at == NeighbourTable::kNone) return void(++counters_.neighbor_full);
    table_[at].port = static_cast<uint16_t>(asked - parameters_.addresses.data());
  }
  if (at == NeighbourTable::kNone) return;
  const NeighbourTable::Entry& entry = table_[at];
  if (entry.known() && !message.replaces && entry.mac != message.mac) return;
  table_.confirm(at, now, message.mac, entry.port);
  due_ = std::min(due_, entry.expires);
  tell(at, message.mac);
}

void NicNeighbours::answer(const NeighbourMessage& message, const PacketMeta& meta) {
  const uint64_t asker = mac_of_asker(message, meta.source_mac);
  if (asker == 0) return;
  std::array<uint8_t, kNeighbourFrame> frame;
  send(frame.data(), build_neighbour_answer(frame.data(), link_to(asker), message.target, message.sender));
}

bool NicNeighbours::hear_ping(Time now, const uint8_t* frame, uint32_t length, const PacketMeta& meta) {
  if (meta.ip_version == 0 || meta.destination_mac != mac_ || is_group(meta.source_mac)) return false;
  const uint8_t* const ip = frame + meta.l3_offset;
  IpAddress to{.version = meta.ip_version};
  const uint32_t bytes = ip_address_length(to.version);
  std::memcpy(to.bytes, ip + ip_source_offset(to.version) + bytes, bytes);
  const NicNeighbourParameters::Own* const asked = own(to);
  if (asked == nullptr || !asked->answers || !is_echo_request(ip, length - meta.l3_offset)) return false;
  if (!pings_.take(now)) return ++counters_.icmp_echo_limited, true;
  const LinkHeader link = link_to(meta.source_mac);
  const uint32_t header = kEthernetHeader + (link.tagged ? kVlanTag : 0), total = ip_total_length(ip);
  const PacketId id = make(std::max(header + total, kMinimumFrame));
  if (id == kNoPacket) return true;
  uint8_t* const out = pool_.data(id);
  std::memset(out, 0, kMinimumFrame);
  store_ethernet(out, link, meta.ethertype);
  std::memcpy(out + header, ip, total);
  make_echo_reply(out + header, total);
  ++counters_.icmp_echo_replies;
  send(id);
  return true;
}

void NicNeighbours::resolve(Time now, uint32_t own, const IpAddress& address, Listener listener) {
  if (own >= parameters_.addresses.size() || parameters_.addresses[own].address.version != address.version) {
    throw NativeError("INVALID_ADDRESS", 0, "", "the NIC has no such address to ask from", "give it one of that IP version");
  }
  uint32_t at = table_.find(address.version, 0, AddressBits::of(address));
  if (at == NeighbourTable::kNone && table_.may_ask()) at = table_.add(address.version, 0, AddressBits::of(address));
  if (at == NeighbourTable::kNone) {
    throw NativeError("NO_RESOURCES", 0, "", "too many addresses are looked for at once", "try again in some seconds");
  }
  NeighbourTable::Entry& entry = table_[at];
  entry.used = true;
  if (entry.known()) return listener(entry.mac);
  listeners_[at].push_back(std::move(listener));
  if (entry.asked > 0) return;
  entry.port = static_cast<uint16_t>(own);
  ask(now, at);
}

void NicNeighbours::take_addresses(const std::vector<NicNeighbourParameters::Own>& addresses) {
  const std::vector<NicNeighbourParameters::Own> before = std::exchange(parameters_.addresses, addresses);
  for (uint32_t at = 0; at < table_.entries().size(); ++at) {
    NeighbourTable::Entry& entry = table_[at];
    if (entry.state == NeighbourState::unused) continue;
    const auto same = [&](const auto& own) { return entry.port < before.size() && own.address == before[entry.port].address; };
    const auto fits = [&](const auto& own) { return own.address.version == entry.version; };
    auto from = std::ranges::find_if(addresses, same);
    if (from == addresses.end()) from = std::ranges::find_if(addresses, fits);
    entry.port = static_cast<uint16_t>(from - addresses.begin());
    IpAddress target{.version = entry.version};
    entry.address.store(entry.version, target.bytes);
    if (entry.gateway || (from != addresses.end() && own(target) == nullptr)) continue;
    tell(at, 0);
    table_.remove(at);
  }
}

// One that has had the address is asked first, then all.
void NicNeighbours::ask(Time now, uint32_t at) {
  NeighbourTable::Entry& entry = table_[at];
  ++entry.asked;
  entry.expires = now + NeighbourTable::kAskAgain;
  due_ = std::min(due_, entry.expires);
  if (entry.port >= parameters_.addresses.size()) return;
  IpAddress target{.version = entry.version};
  entry.address.store(entry.version, target.bytes);
  const LinkHeader link = link_to(entry.known() && entry.asked == 1 ? entry.mac : 0);
  std::array<uint8_t, kNeighbourFrame> frame;
  send(frame.data(), build_neighbour_question(frame.data(), link, parameters_.addresses[entry.port].address, target));
}

void NicNeighbours::advance(Time now) {
  if (now < due_) return;
  due_ = kNever;
  for (uint32_t at = 0; at < table_.entries().size(); ++at) {
    const NeighbourTable::Entry& entry = table_[at];
    if (entry.state == NeighbourState::unused) continue;
    if (entry.expires > now) {
      due_ = std::min(due_, entry.expires);
    } else if (entry.used && entry.asked < NeighbourTable::kQuestions) {
      ask(now, at);
    } else {
      give_up(now, at);
    }
  }
}

// One that is followed is asked anew.
void NicNeighbours::give_up(Time now, uint32_t at) {
  tell(at, 0);
  if (!table_[at].gateway) return table_.remove(at);
  table_.forget_answer(at);
  table_[at].expires = now + NeighbourTable::kAskAgain;
  due_ = std::min(due_, table_[at].expires);
}

void NicNeighbours::tell(uint32_t at, Found found) {
  for (uint32_t place = 0; found && table_[at].gateway && place < followed_.size(); ++place) {
    if (followed_[place].at == at) tell_of(place, *found);
  }
  const auto waiting = listeners_.extract(at);
  if (waiting.empty()) return;
  for (const Listener& listener : waiting.mapped()) listener(found);
}

void NicNeighbours::tell_of(uint32_t place, uint64_t mac) {
  if (std::exchange(followed_[place].told, mac) != mac) host_.tell(place, mac);
}

LinkHeader NicNeighbours::link_to(uint64_t mac) const {
  return {.destination_mac = mac, .source_mac = mac_, .tagged = parameters_.vlan != 0, .vlan_tci = parameters_.vlan};
}

PacketId NicNeighbours::make(uint32_t length) {
  const PacketId id = pool_.allocate(length);
  if (id == kNoPacket) return ++counters_.neighbor_unsent, id;
  pool_[id].reset();
  pool_[id].ingress_port = kNoIngress;
  pool_[id].length = length;
  return id;
}

void NicNeighbours::send(PacketId id) {
  if (host_.send(id)) return;
  ++counters_.neighbor_unsent;
  pool_.free(id);
}

void NicNeighbours::send(const uint8_t* bytes, uint32_t length) {
  const PacketId id = make(length);
  if (id == kNoPacket) return;
  std::memcpy(pool_.data(id), bytes, length);
  send(id);
}

}  // namespace weir
