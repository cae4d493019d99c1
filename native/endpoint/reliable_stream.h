// A reliable connection that makes its own work: what a flow sends and receives when every message is acknowledged. A stream
// sends, from begin() on, or receives, from its first packet on; it takes memory for its connection only while it is at it.
#pragma once

#include <cstdint>
#include <memory>

#include "endpoint/stream_transport.h"
#include "transport/message_stream.h"
#include "transport/psn.h"
#include "transport/reliable_connection.h"
#include "transport/transport.h"

namespace weir {

class ReliableStream final : public Transport, private CompletionSink {
 public:
  // `parameters` are the same at both ends but for remote_qpn, and must outlive it. Throws NativeError INVALID_ATTRIBUTE.
  ReliableStream(uint32_t qpn, const QueuePairParameters& parameters, const StreamContext& context, QpCounters& by_pair);
  ReliableStream(const ReliableStream&) = delete;
  ReliableStream& operator=(const ReliableStream&) = delete;

  // What streams read from and write to: all addresses there are, and 4096 bytes behind them. The same for each NIC whose
  // MemoryTable has it as its first region gets the same key.
  static MemoryRegion region(uint8_t* bytes, uint32_t domain);

  // Posts the first messages. Only once, and not to a stream that receives.
  void begin(Time now) override;
  bool ended() const override { return role_ == Role::over; }
  void close() override;
  bool understands(uint8_t opcode) const override { return opcode >> 5 == 0; }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return connection_ != nullptr && connection_->control_waits(); }
  void take_control(OutgoingPacket& out) override { connection_->take_control(out); }
  uint32_t data_bytes() const override { return connection_ == nullptr ? 0 : connection_->data_bytes(); }
  bool take_data(Time now, OutgoingPacket& out) override;
  Time next_deadline() const override { return connection_ == nullptr ? kNever : connection_->next_deadline(); }
  void advance(Time now) override;
  bool take_heard(Heard& heard) override { return connection_ != nullptr && connection_->take_heard(heard); }
  void limit(uint32_t packets) override {
    if (connection_ != nullptr) connection_->limit(packets);
  }

 private:
  enum class Role : uint8_t { none, sends, receives, over };

  void complete(const Completion& completion) override;
  QueueAttributes attributes() const;
  void connect(uint32_t send_depth, uint32_t receive_depth, QueuePairState state);
  void post();
  void post_receive();
  void replenish();

  uint32_t qpn_;
  Role role_ = Role::none;
  bool failed_ = false;
  uint32_t under_way_ = 0;  // messages posted and not complete
  uint32_t consumed_ = 0;   // receives used up by the packet at hand
  const QueuePairParameters& parameters_;
  const StreamContext& context_;
  QpCounters& by_pair_;
  MessageSizes sizes_;
  SequenceCheck sequence_;  // of first transmissions
  uint64_t completed_ = 0;
  Time now_ = 0;  // of the call under way
  std::unique_ptr<ReliableConnection> connection_;
};

}  // namespace weir
