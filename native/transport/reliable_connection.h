// A reliable connection: the states of its queue pair, and requester, completer and responder together.
#pragma once

#include <cstdint>

#include "base/fetch.h"
#include "transport/completer.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/verbs_transport.h"

namespace weir {

class ReliableConnection : public VerbsTransport {
 public:
  ReliableConnection(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth,
                     SharedReceives* shared = nullptr);

  bool understands(uint8_t opcode) const override { return opcode >> 5 == 0 || (attributes_.telemetry && has_telemetry(opcode)); }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  void receive_trimmed(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return responder_.control_waits(); }
  void take_control(OutgoingPacket& out) override;
  uint32_t data_bytes() const override;
  bool take_data(Time now, OutgoingPacket& out) override;
  Time next_deadline() const override { return state_ == QueuePairState::rts ? completer_.next_deadline() : kNever; }
  void advance(Time now) override;

  // A hint for the caches.
  WEIR_FETCHES void fetch() const { fetch_bytes(this, sizeof *this); }

  // The PSN that the peer's next request is to have.
  uint32_t expected() const { return responder_.expected(); }

  // Whether its next request is the oldest once more: after a loss, or a timeout.
  bool goes_back() const { return sends_.next == sends_.una && sends_.una != sends_.end; }
  // PSN of the oldest request packet that is not acknowledged.
  uint32_t acknowledged() const { return sends_.una; }
  bool take_heard(Heard& heard) override { return state_ == QueuePairState::rts && completer_.take_heard(heard); }
  void limit(uint32_t packets, uint32_t reads) override {
    requester_.limit(packets);
    expect_reads(reads);
  }
  void expect_reads(uint32_t packets) override {
    requester_.expect_reads(packets);
    changed_ = true;
  }

 private:
  void enter(QueuePairState from, const QueueAttributes& attributes) override;
  void stop() override;
  bool serves(const SendWork& work) const override;
  bool busy() const override { return sends_.head != sends_.begun; }
  // Whether its own requests may go.
  bool requests() const { return state_ == QueuePairState::rts && !holds_requests_; }
  bool responder_next() const;
  void address(OutgoingPacket& out) const;

  bool responded_last_ = false;      // requests and READ responses take turns
  uint16_t answer_entropy_ = 0;      // entropy of the latest acknowledgement, where packets are sprayed: all values in turn
  mutable uint16_t data_bytes_ = 0;  // valid unless changed_
  Requester requester_;
  Completer completer_;
  Responder responder_;
};

}  // namespace weir
