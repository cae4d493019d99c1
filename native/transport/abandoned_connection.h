// Stands for a connection whose program has ended without a word: its peer is told at once, and again whenever it asks, by the
// NAK "remote operational error" (IBTA volume 1, 9.7.5.2), and need not wait until its retries run out.
#pragma once

#include <optional>

#include "transport/verbs_transport.h"

namespace weir {

class AbandonedConnection final : public VerbsTransport {
 public:
  // `unanswered`: PSN of the first request that the peer may not have had an answer to. A NAK acknowledges all before it.
  // `certain`: if not, only the program knew it for sure: the peer does, too, and says so when it goes back.
  AbandonedConnection(uint32_t qpn, const TransportContext& context, const QueueAttributes& attributes, uint32_t unanswered,
                      bool certain = true)
      : VerbsTransport(qpn, context, 1, 1), unanswered_(unanswered), certain_(certain) {
    attributes_ = attributes;
    state_ = QueuePairState::rts;
  }

  bool understands(uint8_t opcode) const override { return opcode >> 5 == 0 || (attributes_.telemetry && has_telemetry(opcode)); }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return owed_; }
  void take_control(OutgoingPacket& out) override;
  uint32_t data_bytes() const override { return 0; }
  bool take_data(Time, OutgoingPacket&) override { return false; }
  Time next_deadline() const override { return kNever; }
  void advance(Time) override {}

 private:
  void enter(QueuePairState, const QueueAttributes&) override {}
  void stop() override {}
  bool serves(const SendWork&) const override { return false; }
  bool busy() const override { return false; }

  uint32_t unanswered_;
  bool certain_;
  std::optional<uint32_t> heard_;  // while it is not certain: the first that came
  bool owed_ = true;
};

}  // namespace weir
