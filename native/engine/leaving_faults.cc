#include "engine/leaving_faults.h"

#include "wire/classify.h"

namespace weir {

bool LeavingFaults::admit(PacketPool& pool, PacketId id, PacketId& twin) {
  twin = kNoPacket;
  if (!faults_.any()) return true;
  Packet& packet = pool[id];
  PacketMeta meta;
  classify(pool.data(id), packet.length, meta);
  Impairment::Fate fate;
  fate.at = clock_.now;
  faults_.decide(pool.data(id), packet.length, meta, clock_.now, fate);
  const bool full = fate.reordered && held_.size() >= kMostHeld;
  counted_.faults_dropped += fate.lost || full;
  if (fate.lost || full) return lost_.push_back(id), false;
  // A frame that is not complete is neither trimmed nor refused.
  fate.refused &= !packet.offload.pending();
  fate.trimmed &= !packet.offload.pending();
  counted_.faults_changed += fate.refused || fate.marked || fate.trimmed || fate.corrupted;
  Packet changed;
  changed.length = packet.length;
  changed.meta = meta;
  spoil(pool.data(id), changed, fate);
  packet.length = changed.length;
  if (fate.duplicated) twin = pool.copy(id);
  counted_.faults_duplicated += twin != kNoPacket;
  if (!fate.reordered) return true;
  ++counted_.faults_delayed;
  held_.push_back({fate.at, sequence_++, id});
  std::push_heap(held_.begin(), held_.end(), later);
  return false;
}

PacketId LeavingFaults::take_due() {
  if (held_.empty() || held_.front().due > clock_.now) return kNoPacket;
  std::pop_heap(held_.begin(), held_.end(), later);
  const PacketId id = held_.back().id;
  held_.pop_back();
  return id;
}

PacketId LeavingFaults::take_lost() {
  if (lost_.empty()) return kNoPacket;
  const PacketId id = lost_.back();
  lost_.pop_back();
  return id;
}

void LeavingFaults::count(PortLosses& losses) const {
  losses.faults_dropped += counted_.faults_dropped;
  losses.faults_duplicated += counted_.faults_duplicated;
  losses.faults_changed += counted_.faults_changed;
  losses.faults_delayed += counted_.faults_delayed;
}

}  // namespace weir
