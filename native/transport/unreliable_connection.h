// An unreliable connection: SENDs and WRITEs to one peer, which nobody acknowledges. A message that loses a packet is dropped
// from there on; the next one is taken (IBTA volume 1, 9.8.2).
#pragma once

#include <cstdint>

#include "transport/opcode.h"
#include "transport/unacknowledged_sends.h"

namespace weir {

class UnreliableConnection final : public UnacknowledgedSends {
 public:
  UnreliableConnection(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth,
                       SharedReceives* shared = nullptr)
      : UnacknowledgedSends(qpn, context, send_depth, receive_depth, shared) {}

  bool understands(uint8_t opcode) const override { return is_unreliable(opcode); }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return false; }
  void take_control(OutgoingPacket&) override {}
  uint32_t data_bytes() const override;
  bool take_data(Time now, OutgoingPacket& out) override;

 private:
  // A packet of a message, taken apart.
  struct Piece {
    OpcodeShape opcode;
    const uint8_t* extension;
    const uint8_t* payload;
    uint32_t length;
    bool solicited;
  };
  void enter(QueuePairState from, const QueueAttributes& attributes) override;
  void stop() override;
  bool serves(const SendWork& work) const override;
  bool busy() const override { return sent_ > 0 || UnacknowledgedSends::busy(); }
  uint8_t opcode_now() const;
  uint32_t payload_now() const;
  bool take_send(const Piece& piece);
  bool take_write(const Piece& piece);

  uint32_t psn_ = 0;
  uint32_t sent_ = 0;  // bytes of the message that packets are taken of
  // The message that comes in.
  uint32_t expected_ = 0;  // PSN
  RequestKind message_ = RequestKind::none;
  uint32_t offset_ = 0;  // bytes of it so far
  Reth write_;
};

}  // namespace weir
