// A reliable connection: the states of its queue pair, and requester, completer and responder together.
#pragma once

#include <cstdint>

#include "transport/completer.h"
#include "transport/queue_attributes.h"
#include "transport/receive_queue.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/verbs_transport.h"

namespace weir {

class ReliableConnection final : public VerbsTransport {
 public:
  // Depths: most work requests, 1..2^15.
  ReliableConnection(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth);

  QueuePairState state() const override { return state_; }
  void modify(QueuePairState to, const QueueAttributes& attributes) override;
  void post_send(const SendWork& work) override;
  void post_receive(const ReceiveWork& work) override;

  bool understands(uint8_t opcode) const override { return opcode >> 5 == 0; }
  void receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return responder_.control_waits(); }
  void take_control(OutgoingPacket& out) override;
  uint32_t data_bytes() const override;
  bool take_data(Time now, OutgoingPacket& out) override;
  Time next_deadline() const override { return state_ == QueuePairState::rts ? completer_.next_deadline() : kNever; }
  void advance(Time now) override;

 private:
  bool responder_next() const;
  void address(OutgoingPacket& out) const;
  void fail(WorkStatus status);
  void flush();

  uint32_t qpn_;
  TransportContext context_;
  QueuePairState state_ = QueuePairState::reset;
  QueueAttributes attributes_;
  SendQueue sends_;
  ReceiveQueue receives_;
  Requester requester_;
  Completer completer_;
  Responder responder_;
  bool responded_last_ = false;  // requests and READ responses take turns
};

}  // namespace weir
