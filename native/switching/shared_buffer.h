// The switch's shared packet memory: it says whether a frame may still come in, and when an ingress must be paused.
//
// Accounting follows section 4 of the DCQCN paper (Zhu et al., SIGCOMM 2015) for a Broadcom Trident II kind of switch.
// Every frame is charged twice: to its ingress (port, priority) for PFC, and to its egress queue for marking.
//   t_PFC = beta (B - P n t_flight - s) / P      dynamic; B total, P priorities, n ports, t_flight headroom, s occupied
//   t_PFC = threshold                            static (the paper's upper bound is (B - P n t_flight) / (P n))
// An ingress above t_PFC is paused and may fill its headroom; it is resumed at t_PFC - xon_offset (2 MTU) or below.
// Readings taken: s is everything occupied, headroom included ("the sum of packets pending on all egress queues"); bytes
// leave the headroom first, as in HPCC's switch-mmu.cc and in hardware; with PFC off nothing is reserved for headroom. The
// formula reserves headroom for lossy priorities too, which have no use for it: there it is the egress queue's guaranteed
// minimum, so that CNPs still pass when lossless traffic has filled the rest.
//
// A port may have thresholds and headroom of its own (PortBuffer): then P n t_flight is P times the sum of the ports' headroom,
// and beta is that of the ingress, lossy_alpha that of the egress. One lossy priority may have queues of a fixed length instead
// (FixedQueue), as far as there is memory.
//
// Each frame also takes a packet of the memory, however short it is, as in hardware it takes a cell. Queues share
// them as they share bytes: a lossy queue may have alpha times the free ones, an ingress is paused above its share, and at the
// end there is none. With frames that are as long as the memory was made for, bytes are always the first to run out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fetch.h"
#include "base/types.h"
#include "switching/buffer_limits.h"
#include "switching/buffer_parameters.h"

namespace weir {

// queue_limit: an egress queue may have a limit of its own, which the switch looks after.
enum class Admission : uint8_t { admitted, headroom_full, lossy_threshold, buffer_full, queue_limit, pfc_storm };

// Bytes of one shard's frames (switching/shard.h) that are charged to the shared buffer, wherever they are.
struct Occupancy {
  int64_t occupied = 0;
  int64_t in_headroom = 0;  // part of those
};

class SharedBuffer {
 public:
  // Parameters that pass check(). `lossless`: bit mask of priorities under PFC. `packets`: how many frames queues may hold.
  SharedBuffer(const BufferParameters& parameters, int ports, uint8_t lossless, uint32_t packets = UINT32_MAX);

  // Charged frames stay; new limits hold from now on. `own` has what ports have instead, by port.
  void reconfigure(const BufferParameters& parameters, uint8_t lossless, const std::vector<std::optional<PortBuffer>>& own = {},
                   FixedQueue fixed = {});

  // A hint for the caches.
  WEIR_FETCHES void fetch(int port, int priority) const { __builtin_prefetch(&at(port, priority), 1); }

  // Charges the frame if it may enter: to its ingress, then to its egress queue.
  Admission admit(int ingress, int egress, int priority, uint32_t length) {
    Admission admission = charge_ingress(ingress, priority, length);
    if (admission != Admission::admitted) return admission;
    admission = admit_egress(egress, priority, length);
    if (admission == Admission::admitted) {
      raise_watermark(occupied_);
    } else {
      release_ingress(ingress, priority, length);
    }
    return admission;
  }
  // Takes the charge of an admitted frame back.
  void release(int ingress, int egress, int priority, uint32_t length) {
    release_ingress(ingress, priority, length);
    release_egress(egress, priority, length);
  }
  // The two halves, where ingress and egress are of different shards. A lossy frame may always come in, and counts as occupied
  // from then on; whether it may stay is said at its egress.
  Admission admit_ingress(int ingress, int priority, uint32_t length) {
    const Admission admission = charge_ingress(ingress, priority, length);
    if (admission == Admission::admitted) raise_watermark(occupied_);
    return admission;
  }
  // The frame is among what is occupied already.
  Admission admit_egress(int egress, int priority, uint32_t length) {
    Usage& out = at(egress, priority);
    const int64_t bytes = length;
    if (!lossless(priority)) {
      const BufferLimits& limits = limits_of(egress);
      if (out.egress + bytes > lossy_minimum(limits, priority)) {
        if (above_lossy_threshold(limits, priority, out.egress + bytes, bytes)) return Admission::lossy_threshold;
        if (!room(0)) return Admission::buffer_full;
      }
      if (above_lossy_frames(limits, priority, out.egress_frames + 1)) return Admission::lossy_threshold;
    }
    out.egress += bytes;
    ++out.egress_frames;
    return Admission::admitted;
  }
  void release_ingress(int ingress, int priority, uint32_t length) {
    Usage& in = at(ingress, priority);
    const int64_t bytes = length;
    const int64_t from_headroom = std::min(in.headroom, bytes);
    in.headroom -= from_headroom;
    in_headroom_ -= from_headroom;
    in.ingress -= bytes;
    occupied_ -= bytes;
    --in.ingress_frames;
    --frames_;
  }
  // A lossy frame that came in is another lossy one from now on.
  void recharge_ingress(int ingress, int priority, uint32_t length, int to_priority, uint32_t to_length) {
    release_ingress(ingress, priority, length);
    charge_ingress(ingress, to_priority, to_length);
  }
  void release_egress(int egress, int priority, uint32_t length) {
    Usage& out = at(egress, priority);
    out.egress -= length;
    --out.egress_frames;
  }
  // Takes the occupancy of the other shards of the same buffer: it counts like what is charged here.
  void set_others(const Occupancy& others) {
    occupied_ += others.occupied - others_.occupied;
    in_headroom_ += others.in_headroom - others_.in_headroom;
    others_ = others;
  }
  const Occupancy& others() const { return others_; }
  Occupancy own() const { return {occupied_ - others_.occupied, in_headroom_ - others_.in_headroom}; }
  // Whether a frame would be admitted outside of the headroom, and nobody be stopped for it. Meant for one that leaves at once,
  // to an empty queue: admit() and release() in the same instant then leave everything as it was. False means: ask admit().
  bool passes(int ingress, int egress, int priority, uint32_t length) const {
    const Usage& in = at(ingress, priority);
    const int64_t bytes = length;
    if (in.headroom != 0 || !room(bytes)) return false;
    if (lossless(priority)) return !above_threshold(limits_of(ingress), in.ingress + bytes);
    const BufferLimits& limits = limits_of(egress);
    return bytes <= lossy_minimum(limits, priority) || !above_lossy_threshold(limits, priority, bytes, 0);
  }

  // Whether a lossy egress queue would take frames of `bytes` together that come one after the other, the last of them of `last`.
  bool takes(int egress, int priority, uint32_t bytes, uint32_t last) const {
    const int64_t queue = at(egress, priority).egress + bytes;
    const BufferLimits& limits = limits_of(egress);
    return room(bytes) &&
           (queue <= lossy_minimum(limits, priority) || !above_lossy_threshold(limits, priority, queue, int64_t{last} - bytes));
  }

  // Leaves behind what admit() and release() would have for a frame that passes().
  void passed(uint32_t length) { raise_watermark(occupied_ + length); }

  // Above this an ingress (port, priority) is paused; the port's own, or that of ports that have none of their own. Bytes, >= 0.
  int64_t pfc_threshold(int port) const { return limits_of(port).pfc_threshold(free_bytes()); }
  int64_t pfc_threshold() const { return common_.pfc_threshold(free_bytes()); }
  // An ingress that has bytes in its headroom, for whatever reason, is above it, too; and it is not resumed before they have
  // left, or the next pause would find the headroom partly used.
  bool above_xoff(int ingress, int priority) const {
    const Usage& in = at(ingress, priority);
    const BufferLimits& limits = limits_of(ingress);
    return in.headroom > 0 || above_threshold(limits, in.ingress) || above_frames(limits, in.ingress_frames);
  }
  bool below_xon(int ingress, int priority) const;

  int64_t ingress_bytes(int port, int priority) const { return at(port, priority).ingress; }
  int64_t headroom_bytes(int port, int priority) const { return at(port, priority).headroom; }
  int64_t egress_bytes(int port, int priority) const { return at(port, priority).egress; }
  int64_t occupied() const { return occupied_; }
  // Most bytes that were occupied when a frame came in here, with what was known then of the other shards'.
  int64_t watermark() const { return watermark_; }
  // Headroom that a port keeps for each lossless priority.
  int64_t headroom_size(int port) const { return limits_of(port).headroom; }
  // B - P n t_flight: what is shared by all.
  int64_t shared_size() const { return shared_size_; }

 private:
  struct Usage {
    int64_t ingress = 0;   // all bytes that came in here, headroom included
    int64_t headroom = 0;  // bytes of those that are in the headroom
    int64_t egress = 0;
    uint32_t ingress_frames = 0;
    uint32_t egress_frames = 0;
  };

 public:
  // Bytes for each port and priority.
  static constexpr size_t kPlaceBytes = sizeof(Usage);

 private:
  // Most traffic is of one priority, whose entries are next to each other.
  Usage& at(int port, int priority) { return usage_[static_cast<size_t>(priority * ports_ + port)]; }
  const Usage& at(int port, int priority) const { return usage_[static_cast<size_t>(priority * ports_ + port)]; }

  // Ports of simulated fabrics mostly have none of their own: then all are one.
  const BufferLimits& limits_of(int port) const { return limits_.empty() ? common_ : limits_[static_cast<size_t>(port)]; }

  bool lossless(int priority) const { return (lossless_ >> priority & 1) != 0; }
  bool room(int64_t bytes) const { return occupied_ - in_headroom_ + bytes <= shared_size_; }
  void raise_watermark(int64_t bytes) { watermark_ = std::max(watermark_, bytes); }
  Admission charge_ingress(int ingress, int priority, uint32_t length) {
    Usage& in = at(ingress, priority);
    const int64_t bytes = length;
    const BufferLimits& limits = limits_of(ingress);
    if (lossless(priority) &&
        (!room(bytes) || above_threshold(limits, in.ingress + bytes) || above_frames(limits, in.ingress_frames + 1))) {
      const bool full = in.headroom + bytes > limits.most_headroom || frames_ >= packets_;
      if (full) return Admission::headroom_full;
      in.headroom += bytes;
      in_headroom_ += bytes;
    }
    in.ingress += bytes;
    occupied_ += bytes;
    ++in.ingress_frames;
    ++frames_;
    return Admission::admitted;
  }
  int64_t free_bytes() const { return std::max<int64_t>(0, shared_size_ - occupied_); }
  // bytes > the limits' pfc_threshold(), mostly without its division.
  bool above_threshold(const BufferLimits& limits, int64_t bytes) const {
    return static_cast<double>(bytes) > limits.surely_free * static_cast<double>(free_bytes()) &&
           bytes > limits.pfc_threshold(free_bytes());
  }
  int64_t lossy_minimum(const BufferLimits& limits, int priority) const {
    return priority == fixed_.priority ? std::min(limits.lossy_minimum, fixed_.bytes) : limits.lossy_minimum;
  }
  // `own`: of what is occupied, the frame that asks.
  bool above_lossy_threshold(const BufferLimits& limits, int priority, int64_t bytes, int64_t own) const {
    if (priority == fixed_.priority) return bytes > fixed_.bytes;
    const int64_t free = std::max<int64_t>(0, shared_size_ - occupied_ + own);
    return static_cast<double>(bytes) > limits.lossy_alpha * static_cast<double>(free);
  }
  // Mostly known from all frames together.
  bool above_frames(const BufferLimits& limits, uint32_t frames) const {
    return frames_ >= limits.surely_fewer && frames > limits.frame_share * static_cast<double>(packets_ - frames_);
  }
  bool above_lossy_frames(const BufferLimits& limits, int priority, uint32_t frames) const {
    if (priority == fixed_.priority) return frames > packets_ - frames_;
    return frames_ >= limits.surely_fewer_lossy && frames > limits.lossy_alpha * static_cast<double>(packets_ - frames_);
  }

  FixedQueue fixed_;
  int ports_;
  uint8_t lossless_;
  int64_t shared_size_;
  int64_t occupied_ = 0;  // bytes of all shards; so is in_headroom_
  int64_t in_headroom_ = 0;
  int64_t watermark_ = 0;
  int64_t packets_;
  int64_t frames_ = 0;  // frames that came in here
  Occupancy others_;
  BufferLimits common_;
  std::vector<BufferLimits> limits_;  // limits by port, where one has its own
  std::vector<Usage> usage_;
};

}  // namespace weir
