// The way of a queue pair to the link: which flow it passes through, and when its turn comes. The host's own queues take turns
// with queue pairs.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "endpoint/nic_state.h"

namespace weir {

class Flows {
 public:
  static constexpr uint32_t kNone = NicState::kNone;

  explicit Flows(const NicSetup& setup) : nic_(setup) {}

  NicState& nic() { return nic_; }
  const NicState& nic() const { return nic_; }

  // Schedules all queue pairs, from nothing, or anew after a reload.
  void make();
  // A queue pair that sends no data has no group: acknowledgements go ahead of everything.
  void bind_to_group(uint32_t index);
  // The MAC address that a stream leads to has been found, or is another now.
  void redirect_stream(uint32_t index, uint64_t mac);
  // Forgets all that pacing and congestion control know of a queue pair. One in the list of those that are ready stays there.
  void forget_pair(uint32_t index);
  // Hands the transport the limit that congestion control puts on packets in flight. `round_trip`: the newest, 0: none is known.
  void limit_in_flight(uint32_t index, uint32_t window, Time round_trip);
  // READ responses are not held by what holds the queue pair's own requests, unless it is a cap on all that it sends.
  bool responds_freely(const QueuePair& qp, const Flow& flow) const;
  // The queue pair has sent all that it had, ...
  void finish_sending(uint32_t index);
  // ... or its time to stop has come, with more to send.
  void stop_sending(uint32_t index);
  // The rate that a queue pair may send at now; 0 while it does not send.
  Rate allowed_rate(const QueuePair& qp) const;
  // A queue pair that sends has this limit: its flow's rate, its cap or the line's, whichever is smallest.
  Rate rate_limit_of(uint32_t index) const;

  // The transport has heard something, or has been given something: what does it want now?
  void attend_to_pair(uint32_t index);
  // The queue pair has data to send, or its time to begin or to end has come, or that of its flow: puts it where it has to wait.
  void line_up_pair(uint32_t index);
  // It has been in front of its flow, and is behind it again, or the flow's rate has changed.
  void wait_for_flow(uint32_t index);
  // Those that have been scheduled behind the frame on the link, up to but not at this time and number, are lined up: the link is
  // busy, so that is all.
  void line_up_due(NicState::Due before);
  // Lets the first that waits for the group go as soon as its flow's rate allows.
  void serve_group(uint32_t group);
  // Its turn has come, and it has nothing to send.
  void pass_turn(uint32_t index);
  // The host's queue is not empty: puts it where it has to wait.
  void line_up_stack(uint32_t queue);

  // A READ REQUEST of the queue pair, for so many bytes, is on the link.
  void count_read_request(uint32_t index, uint32_t bytes);
  // A packet of the queue pair is on the link.
  void count_packet(uint32_t index, uint32_t wire_bytes);
  // The group of a queue pair, or of a queue of the host's, accounts for its packet.
  void count_packet_of_group(uint32_t group, uint32_t index, uint32_t wire_bytes);
  // The rate of a queue pair's own flow may have changed while its next packet waits.
  void repace_pair(uint32_t index);
  // Brings what is counted of flows that are held up to now. Groups that send nothing are looked at here, some each time; of a
  // simulation, all.
  void settle();

 private:
  void unbind_from_group(uint32_t index);
  bool begin_sending(uint32_t index);
  void start_flow(uint32_t number, Rate rate);
  void make_ready(uint32_t index);
  void line_up_stacks();

  NicState nic_;
};

}  // namespace weir
