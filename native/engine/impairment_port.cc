#include "engine/impairment_port.h"

#include <algorithm>
#include <cstring>

#include "link/pfc.h"
#include "wire/classify.h"
#include "wire/segmentation.h"

namespace weir {
namespace {

// Earlier than any other held frame: a changed frame takes its place in the stream at once.
constexpr Time kAtOnce = INT64_MIN;

// Frames that faults hold back or change at a time, and the longest of them: jumbo ones.
constexpr uint32_t kFaultyFrames = 8192;
constexpr uint32_t kLongestFrame = 10'240;

// Purpose of its random streams.
constexpr uint64_t kPurpose = 0x494d50'00;

ImpairmentParameters checked(const ImpairmentParameters& parameters) {
  check(parameters, "impairment");
  return parameters;
}

}  // namespace

ImpairmentPort::ImpairmentPort(std::unique_ptr<PacketPort> inner, const ImpairmentParameters& parameters,
                               const ImpairmentOptions& options, const PortClock& clock)
    : PortWrapper(std::move(inner)),
      clock_(clock),
      impairment_(checked(parameters), options.seed, options.component, kPurpose),
      impaired_(true),
      slot_bytes_(options.slot_bytes),
      bytes_(size_t{options.pool_frames} * options.slot_bytes, options.slot_bytes > 16 * 1024),
      frames_(options.pool_frames),
      lent_(kMaxLent) {
  free_slots_.reserve(options.pool_frames);
  for (uint32_t slot = options.pool_frames; slot > 0; --slot) free_slots_.push_back(slot - 1);
  held_.reserve(options.pool_frames);
}

ImpairmentPort::ImpairmentPort(const PortClock& clock)
    : PortWrapper(nullptr),
      clock_(clock),
      impairment_({}, 0, 0, kPurpose),
      impaired_(false),
      slot_bytes_(kLongestFrame),
      bytes_(size_t{kFaultyFrames} * kLongestFrame, true),
      frames_(kFaultyFrames),
      lent_(kMaxLent) {
  free_slots_.reserve(kFaultyFrames);
  for (uint32_t slot = kFaultyFrames; slot > 0; --slot) free_slots_.push_back(slot - 1);
  held_.reserve(kFaultyFrames);
}

PortLosses ImpairmentPort::losses() {
  PortLosses losses = inner_->losses();
  losses.faults_dropped += faulted_.faults_dropped;
  losses.faults_duplicated += faulted_.faults_duplicated;
  losses.faults_changed += faulted_.faults_changed;
  losses.faults_delayed += faulted_.faults_delayed;
  return losses;
}

PortState ImpairmentPort::state() {
  const PortState state = inner_->state();
  return state == PortState::up && faults_.down(clock_.now) ? PortState::down : state;
}

size_t ImpairmentPort::receive(std::span<RxFrame> frames) {
  if (faults_.any()) faults_.down(clock_.now);
  if (faults_.next_pause(clock_.now) <= clock_.now) take_pauses();
  const size_t room = std::min<size_t>(frames.size(), lent_.room());
  size_t count = 0;
  while (count < room) {
    if (fresh_next_ == fresh_count_) {
      fresh_next_ = 0;
      fresh_count_ = inner_->receive(fresh_);
      if (fresh_count_ == 0) break;
    }
    const RxFrame& frame = fresh_[fresh_next_];
    if (!held_.empty() && held_.front().due <= std::min(frame.stamp, clock_.now)) {
      frames[count++] = lend_held();
      continue;
    }
    ++fresh_next_;
    if (spoils() && frame.offload.gso != Gso::none && admit_cut(frame)) {
      consume_inner();
    } else if (!spoils() || admit(frame, false)) {
      frames[count++] = frame;
      lent_.push({kNoSlot, 1});
    } else {
      consume_inner();
    }
  }
  while (count < room && !held_.empty() && held_.front().due <= clock_.now) frames[count++] = lend_held();
  return count;
}

bool ImpairmentPort::admit_cut(const RxFrame& frame) {
  Offload offload = frame.offload;
  if (!check_offload(frame.data, frame.length, offload)) return false;
  RxFrame one = frame;
  one.offload = {};
  cut_.resize(kMaxSuperFrame);
  one.data = cut_.data();
  for (uint32_t i = 0; i < segment_count(frame.length, offload); ++i) {
    one.length = write_segment(frame.data, frame.length, offload, i, cut_.data());
    admit(one, true);
  }
  return true;
}

Impairment::Fate ImpairmentPort::decide(const RxFrame& frame, PacketMeta& meta) {
  Impairment::Fate fate = impairment_.decide(frame.stamp);
  counters_.lost += fate.lost;
  if (fate.lost || !faults_.any()) return fate;
  if (frame.vlan_stripped) {
    classify(frame.data, frame.length, meta, frame.vlan_tci);
  } else {
    classify(frame.data, frame.length, meta);
  }
  const Impairment::Fate own = fate;
  faults_.decide(frame.data, frame.length, meta, clock_.now, fate);
  faulted_.faults_dropped += fate.lost;
  if (fate.lost) return fate;
  faulted_.faults_duplicated += fate.duplicated && !own.duplicated;
  faulted_.faults_changed +=
      fate.marked || fate.trimmed || fate.refused || fate.failure != 0 || fate.slowed != 0 || (fate.corrupted && !own.corrupted);
  faulted_.faults_delayed += fate.at > own.at;
  return fate;
}

bool ImpairmentPort::admit(const RxFrame& frame, bool changed) {
  PacketMeta meta;
  const Impairment::Fate fate = decide(frame, meta);
  if (fate.lost) return false;
  const bool delayed = impairment_.delays();
  const Time due = delayed || fate.reordered ? fate.at : kAtOnce;
  const bool pass = !changed && !delayed && !fate.reordered && !fate.corrupted && !fate.marked && !fate.trimmed &&
                    !fate.refused && fate.failure == 0 && fate.slowed == 0;
  if (!pass) {
    const uint32_t slot = hold(frame, fate.at, due);
    if (slot != kNoSlot) {
      counters_.delayed += delayed;
      counters_.reordered += fate.reordered;
      counters_.corrupted += fate.corrupted;
      RxFrame& copy = frames_[slot];
      Packet packet;
      packet.length = copy.length;
      packet.meta = meta;
      spoil(bytes_.data() + size_t{slot} * slot_bytes_, packet, fate);
      copy.length = packet.length;
      copy.failure = packet.meta.failure;
      copy.slowed = packet.slowed;
    }
  }
  if (fate.duplicated) {
    counters_.duplicated += impaired_;
    hold(frame, fate.at, due);
  }
  return pass;
}

void ImpairmentPort::take_pauses() {
  Packet packet;
  while (faults_.pause(clock_.now, packet)) {
    std::array<uint8_t, kMinimumFrame> bytes{};
    const uint32_t length = build_flow_control(bytes.data(), packet);
    ++faulted_.faults_duplicated;
    hold({.data = bytes.data(), .length = length}, clock_.now, kAtOnce);
  }
}

uint32_t ImpairmentPort::hold(const RxFrame& frame, Time stamp, Time due) {
  if (free_slots_.empty() || frame.length > slot_bytes_) {
    ++(impaired_ ? counters_.overflow : faulted_.faults_dropped);
    return kNoSlot;
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  uint8_t* copy = bytes_.data() + size_t{slot} * slot_bytes_;
  std::memcpy(copy, frame.data, frame.length);
  frames_[slot] = frame;
  frames_[slot].data = copy;
  frames_[slot].packet = nullptr;
  frames_[slot].stamp = stamp;
  held_.push_back({due, sequence_++, slot});
  std::push_heap(held_.begin(), held_.end(), later);
  return slot;
}

RxFrame ImpairmentPort::lend_held() {
  std::pop_heap(held_.begin(), held_.end(), later);
  const uint32_t slot = held_.back().slot;
  held_.pop_back();
  lent_.push({slot, 0});
  return frames_[slot];
}

void ImpairmentPort::consume_inner() {
  // The inner port wants its frames back in order: with the last one lent on, if any is.
  if (lent_.empty()) {
    inner_->release(1);
  } else {
    ++lent_.back().inner;
  }
}

void ImpairmentPort::release(size_t count) {
  size_t inner = std::min(count, before_);
  before_ -= inner;
  count -= inner;
  for (count = std::min<size_t>(count, lent_.size()); count > 0; --count) {
    const Lent lent = lent_.pop();
    inner += lent.inner;
    if (lent.slot != kNoSlot) free_slots_.push_back(lent.slot);
  }
  if (inner > 0) inner_->release(inner);
}

Time ImpairmentPort::next_deadline() const {
  Time deadline = inner_->next_deadline();
  if (faults_.any()) deadline = std::min(deadline, faults_.next_change(clock_.now));
  deadline = std::min(deadline, std::max(faults_.next_pause(clock_.now), clock_.now));
  if (!held_.empty()) deadline = std::min(deadline, std::max(held_.front().due, clock_.now));
  return fresh_next_ < fresh_count_ ? std::min(deadline, clock_.now) : deadline;
}

}  // namespace weir
