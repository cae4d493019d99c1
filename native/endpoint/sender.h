// The sending half of a NIC: what goes on the link when it falls free.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "endpoint/flows.h"
#include "transport/transport.h"
#include "wire/packet.h"

namespace weir {

class Sender {
 public:
  explicit Sender(const NicSetup& setup) : flows_(setup) {}

  Flows& flows() { return flows_; }
  const Flows& flows() const { return flows_; }

  // Sends what may go, if the link is free.
  void start_next();
  // Windows of notification points that end by `at` may owe CNPs.
  void expire_windows(Time at);
  // Finishes the ICRC of what was written last.
  void seal();
  // A frame has left the host.
  void count_left(PacketId id);

 private:
  static constexpr uint32_t kNone = NicState::kNone;

  NicState& nic() { return flows_.nic(); }
  const NicState& nic() const { return flows_.nic(); }

  void depart(PacketId id);
  PacketId make_pfc();
  PacketId make_cnp();
  PacketId make_answer();
  void send_data();
  PacketId make_packet(uint32_t index, uint8_t priority);
  PacketId make_stack_frame(uint32_t index);
  void write_packet(PacketId id, QueuePair& qp, uint32_t index, const OutgoingPacket& out, uint8_t priority);
  void describe_packet(Packet& packet, uint8_t* headers, const QueuePair& qp, const OutgoingPacket& out) const;
  void charge_flow(uint32_t index, const OutgoingPacket& out, uint32_t wire_bytes);
  bool keeps_up(const Flow& flow) const;
  bool reads_are_ahead(const Flow& flow, Time at) const;
  bool may_run(uint32_t index) const;
  void send_run(PacketId id, uint32_t index, uint8_t priority);

  Flows flows_;
};

}  // namespace weir
