// The requester chooses the next request packet. Segmentation, window, credits, limits on READs and atomics, fences, and
// packets that are sent again (IBTA volume 1, 9.7.2 to 9.7.4 and 9.7.7.2; ordering 9.5).
//
// A READ longer than a quarter of the window is asked for in pieces, each a READ REQUEST of its own, so that the window also
// bounds the responses. Under congestion control by acknowledgements pieces are as much smaller as its window is, and more in
// number: the end that asks slows down. Packets that were asked for together are so again, from the first that is missing on: a
// responder that has executed a request repeats no more than that (IBTA volume 1, 9.7.5.1.5), and each counts in the MSN.
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "base/types.h"
#include "transport/queue_attributes.h"
#include "transport/send_queue.h"
#include "transport/transport.h"

namespace weir {

class Requester {
 public:
  Requester(const QueueAttributes& attributes, const TransportContext& context, SendQueue& queue)
      : attributes_(attributes), context_(context), queue_(queue) {}

  void start();
  // Frees what start() took.
  void stop() { pending_ = Ring<uint32_t>(); }
  // Bytes from BTH to ICRC of the packet that may go now; 0: none. Unless `begins`, it is one of a message that has begun.
  uint32_t data_bytes(bool begins) const;
  // Takes the packet of data_bytes() > 0, and must follow it at once. False when local memory of the work request `failed` is not
  // valid (any more).
  bool take(Time now, OutgoingPacket& out, uint64_t& failed);

  // The completer hands on what it learns from answers.
  void set_credits(uint32_t message_sequence, uint8_t code);
  // Congestion control: packets in flight at most, besides the window of the attributes; also of those that are sent again. If it
  // is not informed by acknowledgements, the window may close with none to come.
  void limit(uint32_t packets) { congestion_window_ = packets; }
  // Packets that READs may be expected to have in flight, of which a piece is a part; 0: nobody knows, and they may be as many as
  // the window has.
  void expect_reads(uint32_t packets) { expected_reads_ = packets; }
  void wait_until(Time at) { waits_until_ = at; }
  Time waits_until() const { return waits_until_; }
  // Sends again from una on.
  void go_back();
  // Answers up to una are here.
  void answered();

 private:
  struct Choice {
    uint32_t psn = 0;
    uint32_t packets = 1;  // PSNs that the packet takes up: of a READ REQUEST, the responses that it asks for
    uint16_t payload = 0;  // bytes
    uint8_t opcode = 0;
    bool lost : 1 = false;
    bool first : 1 = false;  // the message's first packet
    bool last : 1 = false;
  };
  // False: nothing may go.
  bool choose() const;
  bool choose_lost() const;
  bool window_allows() const;
  void complete_choice(const SendEntry& entry) const;
  uint32_t piece_end(const SendEntry& entry, uint32_t psn) const;
  uint32_t piece() const;
  bool credits_allow(const SendEntry& entry, uint32_t psn) const;
  uint32_t sequence_of(const SendEntry& entry, uint32_t psn) const;
  void account(Time now, const DataHeader& header);

  const QueueAttributes& attributes_;
  const TransportContext& context_;
  SendQueue& queue_;
  uint32_t messages_ = 0;  // begun so far, READ pieces counted: the SSN
  uint32_t limit_ = 0;     // LSN: the last message that the peer has a receive for; 24 bits
  bool counts_credits_ = false;
  uint16_t unrequested_ = 0;  // packets since the last AckReq, kPacketsPerAck at most
  uint32_t expected_reads_ = 0;
  Time waits_until_ = kNever;
  mutable Choice choice_;  // result of the last data_bytes()
  uint32_t congestion_window_ = UINT32_MAX;
  Ring<uint32_t> pending_;  // ends of READ pieces and atomics that have been sent and are without their answers, in order
};

}  // namespace weir
