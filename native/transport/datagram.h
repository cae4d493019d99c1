// Unreliable datagrams: each SEND is one packet to whom its address handle says, with the Q_Key that the receiver wants
// (IBTA volume 1, 9.8.3).
#pragma once

#include <cstdint>

#include "transport/unacknowledged_sends.h"

namespace weir {

// Room for the network header at the start of each receive buffer: IPv6, or IPv4 in its last 20 bytes.
inline constexpr uint32_t kGrhBytes = 40;

class Datagram final : public UnacknowledgedSends {
 public:
  Datagram(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth,
           SharedReceives* shared = nullptr)
      : UnacknowledgedSends(qpn, context, send_depth, receive_depth, shared) {}

  bool understands(uint8_t opcode) const override { return opcode == kOpcodeUdSendOnly || opcode == kOpcodeUdSendOnlyImmediate; }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return false; }
  void take_control(OutgoingPacket&) override {}
  uint32_t data_bytes() const override;
  bool take_data(Time now, OutgoingPacket& out) override;

 private:
  void enter(QueuePairState from, const QueueAttributes& attributes) override;
  bool serves(const SendWork& work) const override {
    return work.opcode == WorkOpcode::send || work.opcode == WorkOpcode::send_immediate;
  }

  uint32_t psn_ = 0;
};

}  // namespace weir
