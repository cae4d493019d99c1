// One switch on several workers: each has a SoftSwitch (a shard) that knows all ports and owns some.
//
// A frame is charged to its ingress where it came in, and to its egress queue where it leaves; between the two, and back, goes
// a ShardMessage. Only the owner of a port sends its PFC frames, picks from its queues and writes its counters.
// Thresholds count the frames of all shards together: each publishes its own part, and reads the others' once per turn. So a
// threshold may be as old as a turn of another shard; no byte is counted twice or forgotten.
//
//   ingress shard                                          egress shard
//   learns, looks up, checks MTU and offloads
//   admits to the ingress group (PFC, headroom)  --frame-->  admits to the egress queue (its limit, lossy threshold)
//                                                            marks, schedules, sends or drops
//   takes the charge back, counts a drop, resumes <--settled--
//   has the packet again                           <--home--  once it was freed there
//
// Each shard of a switch that routes has all routes, and a neighbour table of its own. The one that needs a neighbour asks, and
// says so to all, who then know the question to an answer: it comes in at one of them. That one tells news, by the frame
// itself, which each takes as if it had come in there; only the one where it came in answers.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "switching/shared_buffer.h"
#include "wire/packet.h"

namespace weir {

struct ShardMessage {
  enum class Kind : uint8_t {
    frame,    // `packet` is to leave by `port`, and belongs to the receiver from now on
    settled,  // `frames` of `length` together that came in by `port` at `priority` have left their egress queue, or were not let
              // in
    trimmed,  // one of `length` that came in by `port` at `priority` has `mac` bytes left, and the priority `vlan`
    home,     // `packet` was freed, and is of the receiver's slice of the packet memory
    learned,  // `mac` in `vlan` was seen at `port`
    heard     // `packet` is a copy of what a neighbour at `port` has told the router, or it has asked there
  };
  Time at = 0;  // when the sender said it; never less than in the message before
  uint64_t mac : 48 = 0;
  uint64_t frames : 16 = 1;
  PacketId packet = kNoPacket;
  uint32_t length = 0;
  uint16_t port = 0;
  uint16_t vlan = 0;
  Kind kind = Kind::frame;
  Admission fate = Admission::admitted;  // settled: it was sent, or this is why it was not let in
  uint8_t priority = 0;
};
static_assert(sizeof(ShardMessage) == 32);

}  // namespace weir
