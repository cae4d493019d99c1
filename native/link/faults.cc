#include "link/faults.h"

#include <algorithm>
#include <cstring>

#include "wire/ecn.h"
#include "wire/ethernet.h"
#include "wire/nak.h"

namespace weir {
namespace {

constexpr uint64_t kPurpose = 0x464c54;  // purpose of the random streams

bool is_at(const IpAddress& address, const uint8_t* bytes, uint8_t version) {
  return address.version == version && std::memcmp(address.bytes, bytes, ip_address_length(version)) == 0;
}

}  // namespace

void Faults::add(uint32_t number, const FaultParameters& parameters, Time now) {
  if (all_.size() >= kMost) std::erase_if(all_, [](const One& one) { return one.state.over && !one.pausing; });
  all_.push_back({parameters, {.number = number}, now + parameters.after, Random(parameters.seed, number, kPurpose)});
  One& one = all_.back();
  ++active_;
  if (parameters.kind != FaultParameters::Kind::pause) return;
  one.pauses.configure(parameters.rate);
  one.pausing = true;
  ++pausing_;
}

bool Faults::end(uint32_t number) {
  for (One& one : all_) {
    if (one.state.number != number || one.state.over) continue;
    finish(one);
    return true;
  }
  return false;
}

void Faults::finish(One& one) {
  one.state.over = true;
  --active_;
}

bool Faults::lasts(One& one, Time now) {
  if (one.state.over || now < one.began) return false;
  if (one.parameters.lasts == 0 || now - one.began < one.parameters.lasts) return true;
  finish(one);
  return false;
}

bool Faults::matches(const FaultParameters& p, const uint8_t* frame, const PacketMeta& meta) {
  const bool roce = meta.bth_offset != 0;
  if (!p.opcodes.empty() && (!roce || std::find(p.opcodes.begin(), p.opcodes.end(), meta.opcode) == p.opcodes.end()))
    return false;
  if (p.destination_qp && (!roce || meta.destination_qp != *p.destination_qp)) return false;
  if (p.udp_source_port && (!roce || meta.udp_source_port != *p.udp_source_port)) return false;
  if (!p.source && !p.destination) return true;
  if (meta.l3_offset == 0) return false;
  const uint8_t* source = frame + meta.l3_offset + ip_source_offset(meta.ip_version);
  if (p.source && !is_at(*p.source, source, meta.ip_version)) return false;
  return !p.destination || is_at(*p.destination, source + ip_address_length(meta.ip_version), meta.ip_version);
}

bool Faults::chooses(One& one) const {
  const FaultParameters& p = one.parameters;
  ++one.state.matched;
  if (one.state.matched % p.every != 0) return false;
  return p.share >= 1 || one.random.uniform() < p.share;
}

void Faults::decide(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Time now, Impairment::Fate& fate) {
  for (One& one : all_) {
    const FaultParameters& p = one.parameters;
    if (p.kind == FaultParameters::Kind::pause || !lasts(one, now)) continue;
    if (p.kind == FaultParameters::Kind::down) {
      fate.lost = fate.lost || one.down;
      continue;
    }
    if (fate.lost || !matches(p, frame, meta)) continue;
    const bool markable = meta.l3_offset != 0 && meta.ecn != kNotEct && meta.ecn != kCe;
    if (p.kind == FaultParameters::Kind::mark && !markable) continue;
    if (p.kind == FaultParameters::Kind::nak && !can_nak(meta, length)) continue;
    if (p.kind == FaultParameters::Kind::trim && !can_trim(meta, length, p.size)) continue;
    // Queue pairs 0 and 1 are management's.
    if (p.kind == FaultParameters::Kind::error && (meta.kind != FrameKind::roce || meta.destination_qp <= 1)) continue;
    if (!chooses(one)) continue;
    ++one.state.hits;
    switch (p.kind) {
      case FaultParameters::Kind::drop:
        fate.lost = true;
        break;
      case FaultParameters::Kind::delay:
        fate.at += p.delay;
        fate.reordered = true;
        break;
      case FaultParameters::Kind::duplicate:
        fate.duplicated = true;
        break;
      case FaultParameters::Kind::corrupt:
        fate.corrupted = true;
        fate.bit = one.random.next();
        break;
      case FaultParameters::Kind::mark:
        fate.marked = true;
        break;
      case FaultParameters::Kind::trim:
        fate.trimmed = true;
        fate.size = p.size;
        fate.dscp = p.dscp;
        break;
      case FaultParameters::Kind::nak:
        fate.refused = true;
        fate.syndrome = p.syndrome;
        break;
      case FaultParameters::Kind::error:
        fate.failure = p.status;
        break;
      case FaultParameters::Kind::slow:
        fate.slowed = p.rate;
        break;
      case FaultParameters::Kind::pause:
      case FaultParameters::Kind::down:
        break;
    }
    if (p.count > 0 && one.state.hits >= p.count) finish(one);
  }
}

void Faults::keep_pausing(One& one, Time now) {
  const bool lasting = lasts(one, now);
  for (int priority = 0; priority < kPriorities; ++priority) {
    if ((one.parameters.priorities >> priority & 1) == 0) continue;
    if (lasting && !one.pauses.stopped(priority)) one.pauses.stop(priority, now);
    if (one.state.over && one.pauses.stopped(priority)) one.pauses.resume(priority, now);
  }
  one.pauses.advance(now);
}

bool Faults::pause(Time now, Packet& packet) {
  for (One& one : all_) {
    if (pausing_ == 0) return false;
    if (!one.pausing) continue;
    keep_pausing(one, now);
    const bool owed = one.pauses.owed() != 0;
    if (owed) {
      one.pauses.make(now, kSourceOfPauses, packet);
      one.state.matched = one.state.hits += packet.pfc_xoff != 0;
    }
    if (one.state.over) {
      one.pausing = false;
      --pausing_;
    }
    if (owed) return true;
  }
  return false;
}

Time Faults::next_pause(Time now) const {
  Time next = kNever;
  if (pausing_ == 0) return next;
  for (const One& one : all_) {
    if (!one.pausing) continue;
    if (one.state.over) return now;
    next = std::min(next, one.pauses.stopped_mask() == 0 ? one.began : one.pauses.next_deadline());
    if (one.parameters.lasts > 0) next = std::min(next, one.began + one.parameters.lasts);
  }
  return next;
}

bool Faults::down(Time now) {
  bool any = false;
  for (One& one : all_) {
    const FaultParameters& p = one.parameters;
    if (p.kind != FaultParameters::Kind::down || !lasts(one, now)) continue;
    const bool down = p.up == 0 || (now - one.began) % p.period < p.period - p.up;
    if (down && !one.down) one.state.matched = ++one.state.hits;
    one.down = down;
    any |= down;
  }
  return any;
}

Time Faults::next_change(Time now) const {
  Time next = kNever;
  for (const One& one : all_) {
    const FaultParameters& p = one.parameters;
    if (p.kind != FaultParameters::Kind::down || one.state.over) continue;
    if (now < one.began) {
      next = std::min(next, one.began);
      continue;
    }
    if (p.lasts > 0) next = std::min(next, std::max(now + 1, one.began + p.lasts));
    if (p.up == 0) continue;
    const Time since = (now - one.began) % p.period, down = p.period - p.up;
    next = std::min(next, now - since + (since < down ? down : p.period));
  }
  return next;
}

void spoil(uint8_t* data, Packet& packet, const Impairment::Fate& fate) {
  if (fate.refused) make_nak(data, packet.length, packet.meta, fate.syndrome);
  if (fate.marked) {
    packet.meta.ecn = kCe;
    write_ecn(data, packet.meta);
  }
  // What it has become by another fault may be too short.
  if (fate.trimmed && can_trim(packet, fate.size)) trim(data, packet, fate.size, fate.dscp);
  packet.meta.failure = fate.failure;
  packet.slowed = fate.slowed;
  const bool tagged = packet.length >= kEthernetHeader && data[12] == 0x81 && data[13] == 0x00;
  const uint32_t header = kEthernetHeader + (tagged ? kVlanTag : 0);
  if (!fate.corrupted || packet.length <= header) return;
  const uint64_t bit = fate.bit % (uint64_t{packet.length - header} * 8);
  data[header + bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
}

std::vector<FaultState> Faults::states() const {
  std::vector<FaultState> out;
  for (const One& one : all_) out.push_back(one.state);
  return out;
}

}  // namespace weir
