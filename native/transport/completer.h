// The completer: applies answers to the work requests under way. ACKs, NAKs, READ responses, atomic results, and the
// timers for when no answer comes (IBTA volume 1, 9.7.5 and 9.7.6).
//
// Go-back-N takes answers in order only; whatever shows a gap makes the requester send again from the gap on, once until
// something new is acknowledged. Selective repeat keeps answers that come early and sends again only the missing ones: a packet
// counts as lost when one sent more than `reordering` transmissions after it has arrived, or one sent a local ACK timeout after
// it (as RACK, RFC 8985, which goes by time alone). After a timeout, or where a receive was missing, what the peer has said to
// hold is left with it: responders give up nothing but what they refuse, and say so. If nothing comes of that until the next
// timeout, all is sent again (RFC 2018 section 8).
#pragma once

#include <cstdint>

#include "base/types.h"
#include "transport/aeth.h"
#include "transport/heard_news.h"
#include "transport/requester.h"

namespace weir {

class Completer {
 public:
  // `received`: where READ responses are counted as they are taken.
  Completer(uint32_t qpn, const QueueAttributes& attributes, const TransportContext& context, SendQueue& queue,
            Requester& requester, Received& received)
      : qpn_(qpn), attributes_(attributes), context_(context), queue_(queue), requester_(requester), received_(received) {}

  void start();
  // A packet with an opcode for which is_response() holds. Anything but success is the end of the oldest work request, and of the
  // queue pair; those before the one at fault have been flushed.
  // `marked`: it has the codepoint CE, which on a READ response speaks of packets that this end has asked for.
  WorkStatus receive(Time now, const Bth& bth, const uint8_t* extension, const uint8_t* payload, uint32_t length, bool marked);
  // Takes the telemetry that the acknowledgement which receive() gets next echoes (kTelemetryHeader bytes).
  void take_telemetry(const uint8_t* telemetry) { news_.take_telemetry(telemetry, context_.counters); }
  // Takes the headers of a READ response that a switch has trimmed, which nobody vouches for: the packet is asked for again, and
  // that is all.
  void receive_trimmed(Time now, uint32_t psn);
  // A request packet was sent.
  void sent(Time now);
  Time next_deadline() const;
  WorkStatus advance(Time now);
  // Tells the news since the last call; see Transport::take_heard().
  bool take_heard(Heard& heard);
  // `status`, of this entry; those before it are flushed.
  WorkStatus blame(uint64_t entry, WorkStatus status);

 private:
  WorkStatus receive_ack(Time now, uint32_t psn, Aeth aeth, const uint8_t* payload, uint32_t length);
  WorkStatus receive_nak(uint32_t psn, uint8_t code, const uint8_t* payload, uint32_t length);
  WorkStatus receive_data(Time now, uint32_t psn, const uint8_t* data, uint32_t length, uint64_t entry, uint32_t transport_bytes);
  WorkStatus unexpected();
  enum class How { received, held };
  void mark_arrived(uint32_t psn, How how);
  void mark_lost(uint32_t psn);
  void heard_trimmed(const SendQueue::Mark& mark);
  void tell(SendQueue::Mark& mark);
  void tell_from(uint32_t psn);
  bool acknowledge(Time now, uint32_t limit);
  void answered(Time now, uint32_t before);
  bool selective() const { return attributes_.recovery == LossRecovery::selective_repeat; }
  void find_losses();
  template <class Told>
  void each_told(uint32_t psn, const uint8_t* bitmap, Told told);
  void mark_missing_lost(bool believe_held);
  void lose();
  void send_again(bool believe_held);
  void take_credits(Aeth aeth);
  bool spend_retry();
  Time timeout() const { return stretched(ack_timeout(attributes_.timeout), attributes_.time_scale); }
  void restart_timer(Time now);
  void listen(Time now, bool marked);

  uint32_t qpn_;
  uint32_t trimmed_ = 0;  // packets that take_heard() tells of next
  const QueueAttributes& attributes_;
  const TransportContext& context_;
  SendQueue& queue_;
  Requester& requester_;
  Received& received_;
  Time deadline_ = kNever;  // when the local ACK timer ends
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool recovering_ = false;     // has gone back, and nothing new was acknowledged since
  uint32_t delivered_ = 0;      // order of the latest transmission that is known to have arrived
  Time delivered_sent_ = 0;     // when that was
  Time trimmed_sent_ = kNever;  // when the newest of the trimmed packets that was sent but once was sent
  HeardNews news_;              // news that take_heard() tells next
};

}  // namespace weir
