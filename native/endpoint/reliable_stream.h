// Reliable connections that make their own work: the messages of a flow when every one is acknowledged. A stream
// sends from begin() on, by one connection, and receives from its first packet on, by another; it takes memory for each only
// while it is at it. A stream of READs asks from begin() on, and the data go the other way.
//
// In a simulation both ends know the first PSN, and when a connection fails the stream is over. On the wire either end may end
// and come back, so there (QueuePairParameters::connection_seed) a sender tells where its PSNs begin. The first request of a
// connection is an RDMA WRITE of no bytes with immediate data, which no message is: from its PSN on the receiver expects the
// rest, and the immediate data are the connection's number, by which one that comes again is known. Messages follow once that
// is acknowledged. When a connection has failed, another is opened a while later, for as long as the stream has something to
// send; messages that were not acknowledged are sent again by it.
//
// A stream on demand sends what is posted to it, each message with a word of 32 bits, which is immediate data. It connects when
// there is a first message, and ends only by failing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/fetch.h"
#include "endpoint/stream_transport.h"
#include "transport/message_stream.h"
#include "transport/psn.h"
#include "transport/reliable_connection.h"
#include "transport/transport.h"

namespace weir {

// Calls of it need no table.
class StreamConnection final : public ReliableConnection {
 public:
  using ReliableConnection::ReliableConnection;
};

class ReliableStream final : public Transport, private CompletionSink {
 public:
  // `parameters` are the same at both ends but for remote_qpn, and must outlive it. Throws NativeError INVALID_ATTRIBUTE.
  ReliableStream(uint32_t qpn, const QueuePairParameters& parameters, const StreamContext& context, QpCounters& by_pair);
  ReliableStream(const ReliableStream&) = delete;
  ReliableStream& operator=(const ReliableStream&) = delete;

  // Region that streams read from and write to: all addresses there are, 4096 bytes to read behind them, and as many at `sink`
  // that are written and never read; null: nothing is written at all.
  static MemoryRegion region(uint8_t* bytes, uint8_t* sink, uint32_t domain);

  // Posts the first messages. Only once.
  void begin(Time now) override;
  // On demand: a message for the peer. True: it is the first of all, so that begin() is to follow.
  bool post(Time now, uint32_t word, uint64_t bytes);
  // It has sent everything, has failed for good, or was closed.
  bool ended() const override { return over_; }
  // Ends sending; a stream that begins again goes on receiving.
  void close() override;
  // It sends, and the peer has not acknowledged that it is there.
  bool connecting() const { return opening_ || resumes_at_ != kNever; }
  // Connections that there are now.
  template <class Each>
  void each_connection(Each each) const {
    if (sends_ != nullptr) each(*sends_);
    if (receives_ != nullptr) each(*receives_);
  }
  // A hint for the caches.
  WEIR_FETCHES void fetch_connections() const {
    if (sends_ != nullptr) sends_->fetch();
    if (receives_ != nullptr) receives_->fetch();
  }
  bool understands(uint8_t opcode) const override { return opcode >> 5 == 0 || (context_.telemetry && has_telemetry(opcode)); }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  void receive_trimmed(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  bool control_waits() const override { return receives_ != nullptr && receives_->control_waits(); }
  void take_control(OutgoingPacket& out) override { receives_->take_control(out); }
  uint32_t data_bytes() const override {
    const StreamConnection* const connection = data_source();
    return connection == nullptr ? 0 : connection->data_bytes();
  }
  bool take_data(Time now, OutgoingPacket& out) override;
  Time next_deadline() const override { return sends_ == nullptr || over_ ? resumes_at_ : sends_->next_deadline(); }
  void advance(Time now) override;
  bool take_heard(Heard& heard) override { return sends_ != nullptr && sends_->take_heard(heard); }
  void limit(uint32_t packets, uint32_t reads) override {
    if (sends_ != nullptr) sends_->limit(packets, reads);
  }

 private:
  enum class Told : uint8_t { nothing, connected, failed };
  // Messages of a stream on demand. Long ones are several work requests, of which the last has the word.
  struct Demand {
    struct Message {
      uint32_t word;
      uint64_t bytes;
      Time posted;
    };
    std::deque<Message> messages;  // from the oldest that is not acknowledged
    size_t next = 0;               // the one to post, ...
    uint64_t offset = 0;           // ... of which so much is posted
    uint64_t acknowledged = 0;     // of the oldest, bytes
  };

  bool begins_again() const { return parameters_.connection_seed != 0; }
  // Connection that data, or requests for them, go out by; null: nothing.
  StreamConnection* data_source() const {
    if (over_) return nullptr;
    return parameters_.serves() ? receives_.get() : sends_.get();
  }
  void complete(const Completion& completion) override;
  QueueAttributes attributes(uint32_t first_psn) const;
  std::unique_ptr<StreamConnection> connect(uint32_t send_depth, uint32_t receive_depth, uint32_t first_psn);
  void open();
  void fall_back();
  void tell(bool connected);
  bool receive_answer(Time now, const uint8_t* frame, const PacketMeta& meta);
  bool opens(const uint8_t* frame, const PacketMeta& meta) const;
  bool accepts();
  void accept(uint32_t first_psn);
  void post();
  void post_demanded();
  void post(WorkOpcode opcode, uint32_t bytes, uint32_t immediate);
  void acknowledge();
  uint32_t receive_depth() const;
  void post_receive();
  void replenish();

  uint32_t qpn_;
  bool over_ = false;
  bool failed_ = false;     // the connection that sends
  bool opening_ = false;    // its first request is not acknowledged
  bool accepting_ = false;  // the packet at hand is the peer's first request
  uint32_t under_way_ = 0;  // messages posted and not complete
  uint32_t consumed_ = 0;   // receives used up by the packet at hand
  const QueuePairParameters& parameters_;
  const StreamContext& context_;
  QpCounters& by_pair_;
  MessageSizes sizes_;
  MessageSizes unacknowledged_;  // the same, from the oldest that is not complete
  std::unique_ptr<Demand> demand_;
  SequenceCheck sequence_;  // sequence of first transmissions
  uint64_t completed_ = 0;
  Time now_ = 0;               // time of the call under way
  Time resumes_at_ = kNever;   // when the next connection is opened
  uint32_t opened_ = 0;        // connections so far
  uint64_t peers_number_ = 0;  // number of the connection that receives, and its first PSN
  WorkStatus why_ = WorkStatus::success;
  Told told_ = Told::nothing;
  // Receives that others might take, too, are not promised to the peer as credits: these never run out.
  SharedReceives endless_;
  std::unique_ptr<StreamConnection> sends_;
  std::unique_ptr<StreamConnection> receives_;
};

}  // namespace weir
