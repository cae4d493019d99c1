// Faults that are made on purpose while a port runs: to frames that come in and match, or to the link itself. Each is repeatable:
// the same frames in the same order have the same fate. On the wire ImpairmentPort (engine/impairment_port.h) carries them out,
// in a simulation the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/describe.h"
#include "base/random.h"
#include "base/types.h"
#include "link/impairment.h"
#include "link/pfc.h"
#include "wire/ip.h"
#include "wire/packet.h"
#include "wire/trim.h"

namespace weir {

struct FaultParameters {
  // mark: ECN = CE, of what may be marked. trim: as a switch does that has no room (wire/trim.h). nak: an acknowledgement, or a
  // response, becomes a NAK (wire/nak.h). error: the queue pair that the packet is for fails. slow: the host takes frames at a
  // pace. pause: PFC frames come in that ask for pauses, until it is over. down: the link is, in both directions.
  enum class Kind : uint8_t { drop, delay, duplicate, corrupt, mark, trim, nak, error, slow, pause, down };
  Kind kind = Kind::drop;
  bool leaving = false;  // to frames that leave, not to those that come in
  // Frames that match; without any of these all do.
  std::vector<uint8_t> opcodes;
  std::optional<uint32_t> destination_qp;
  std::optional<uint16_t> udp_source_port;
  std::optional<IpAddress> source;
  std::optional<IpAddress> destination;
  // Of those that match.
  double share = 1;
  uint32_t every = 1;
  uint64_t count = 0;
  uint64_t seed = 1;
  uint8_t syndrome = 0;
  uint8_t status = 0;
  uint16_t size = kLeastTrimSize;
  uint8_t dscp = 0;
  uint8_t priorities = 0;
  Rate rate = 0;
  Time delay = 0;
  Time after = 0;
  Time lasts = 0;
  Time up = 0;
  Time period = 0;
};
constexpr auto words_of(FaultParameters::Kind) {
  return std::array{"drop", "delay", "duplicate", "corrupt", "mark", "trim", "nak", "error", "slow", "pause", "down"};
}
void describe(auto& v, Of<FaultParameters> auto& p) {
  using field::any;
  using field::optional;
  // A day, at a scale of ten thousand.
  constexpr double kMostTime = 86'400.0 * kSecond * 1e4;
  const auto time = [](const char* text) { return optional(field::within(0, kMostTime, text, "ns")); };
  v.type("NativeFault", "A fault that is made on purpose.");
  v("kind", p.kind, any("Kind."));
  v("leaving", p.leaving, optional(any("To frames that leave, not to those that come in; a NIC's.")));
  v("opcodes", p.opcodes, optional(any("Opcodes of the BTH; empty: all frames.")));
  v("destination_qp", p.destination_qp, optional(any("Queue pair that the frame is for.")));
  v("udp_source_port", p.udp_source_port, optional(any("Source port of RoCEv2.")));
  v("source", p.source, optional(any("IP address of the sender.")));
  v("destination", p.destination, optional(any("IP address of the receiver.")));
  v("share", p.share, optional(field::fraction("Share of frames that match.")));
  v("every", p.every, optional(field::within(1, UINT32_MAX, "One of so many that match, the last of them.")));
  v("count", p.count, optional(any("Frames after which it is over; 0: without end.")));
  v("seed", p.seed, optional(any("Seed of the share.")));
  v("syndrome", p.syndrome, optional(any("AETH syndrome, kind nak.")));
  v("status", p.status, optional(any("ibv_wc_status of the oldest send, kind error.")));
  v("size", p.size, optional(field::within(kLeastTrimSize, kMostTrimSize, "What is left of a frame, kind trim.", "bytes")));
  v("dscp", p.dscp, optional(field::within(0, 63, "DSCP of what is left, kind trim.")));
  v("priorities", p.priorities, optional(any("Mask of those that are paused, kind pause.")));
  v("rate", p.rate,
    optional(field::bps(
        "Kind slow: at which the host takes frames. Kind pause: of the link, which says how long pauses last; 0: not known.")));
  v("delay", p.delay, time("Time that a frame is held back, kind delay."));
  v("after", p.after, time("Time until it begins."));
  v("lasts", p.lasts, time("Time after which it is over; 0: without end."));
  v("up", p.up, time("Time for which the link is back, kind down; 0: it stays down."));
  v("period", p.period, time("Time after which the link goes down again, kind down with `up`."));
  v.rule(p.kind != FaultParameters::Kind::delay || p.delay > 0, "kind delay needs a delay");
  v.rule(p.kind != FaultParameters::Kind::error || p.status > 0, "kind error needs a status");
  v.rule(p.kind != FaultParameters::Kind::slow || p.rate > 0, "kind slow needs a rate");
  v.rule(p.kind != FaultParameters::Kind::pause || p.priorities > 0, "kind pause needs priorities");
  v.rule(!p.leaving || p.kind < FaultParameters::Kind::error, "kind error, slow, pause and down are not of frames that leave");
  v.rule(p.up == 0 || p.up < p.period, "period has to be longer than up");
}

// State of one, for those who ask.
struct FaultState {
  uint32_t number = 0;
  uint64_t matched = 0;  // frames
  uint64_t hits = 0;     // frames, those that asked for pauses, or times that the link went down
  bool over = false;
};
void describe(auto& v, Of<FaultState> auto& state) {
  using field::any;
  v.type("FaultState", "What has become of a fault.");
  v("number", state.number, any("Number that it was given."));
  v("matched", state.matched, any("Frames that matched."));
  v("hits", state.hits,
    any("Frames that it was made to; kind pause: those that asked for one; kind down: times that the link went down."));
  v("over", state.over, any("Whether it has ended."));
}

// The faults of one port, in the order in which they were added.
class Faults {
 public:
  // Each is looked at for every frame of its port. Those that are over make room when there are so many.
  static constexpr size_t kMost = 64;
  bool any() const { return active_ > 0; }
  size_t active() const { return active_; }
  // `now`: what `after` counts from.
  void add(uint32_t number, const FaultParameters& parameters, Time now);
  // False: there is none of this number that goes on.
  bool end(uint32_t number);
  // What `meta` has of a frame that comes in; changes the fate that it would have without them.
  void decide(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Time now, Impairment::Fate& fate);
  // The next frame of PFC that comes in by a fault; false: none is due.
  bool pause(Time now, Packet& packet);
  // When one is, or kNever.
  Time next_pause(Time now) const;
  // Whether the link is down.
  bool down(Time now);
  // When the link goes down or comes back by a fault next, after `now`, or kNever.
  Time next_change(Time now) const;
  std::vector<FaultState> states() const;

 private:
  struct One {
    FaultParameters parameters;
    FaultState state;
    Time began;
    Random random;
    bool down = false;
    PfcSender pauses = {};
    bool pausing = false;  // it is of kind pause, and the device has not been told that it is over
  };
  static bool matches(const FaultParameters& p, const uint8_t* frame, const PacketMeta& meta);
  bool chooses(One& one) const;
  void finish(One& one);
  bool lasts(One& one, Time now);
  void keep_pausing(One& one, Time now);
  static constexpr uint64_t kSourceOfPauses = 0x02'00'00'00'00'01;  // locally administered

  std::vector<One> all_;
  uint32_t active_ = 0;
  uint32_t pausing_ = 0;
};

// Makes of a whole frame what its fate is, but for what concerns the time and the number of frames: `packet` has its length and
// its meta, which follow.
void spoil(uint8_t* data, Packet& packet, const Impairment::Fate& fate);

}  // namespace weir
