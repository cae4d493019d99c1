// A stream of messages without acknowledgements: what a flow of a lab sends and receives. Losses show as gaps in the PSNs.
// Segmentation by path MTU and opcodes as IBTA volume 1, 9.4 and 9.7 (SEND, RDMA WRITE on RC).
#pragma once

#include "endpoint/counters.h"
#include "endpoint/message_listener.h"
#include "endpoint/queue_pair.h"
#include "transport/memory_table.h"
#include "transport/message_stream.h"
#include "transport/opcode.h"
#include "transport/psn.h"
#include "transport/transport.h"

namespace weir {

// Context that the streams of a NIC share. All of it must outlive them.
struct StreamContext {
  const uint8_t* bytes;  // at least 4096, the start of which every packet carries
  MemoryTable& memory;
  uint32_t key;     // key of a region of these bytes as ReliableStream::region() makes it
  uint32_t domain;  // its protection domain
  TransportCounters& counters;
  MessageListener* listener;  // or null
  bool payload;               // see TransportContext
  bool informs = false;       // see QueueAttributes
  bool telemetry = false;     // likewise
};

class StreamTransport final : public Transport {
 public:
  StreamTransport(uint32_t qpn, const QueuePairParameters& parameters, const StreamContext& context, QpCounters& by_pair)
      : path_mtu_(parameters.stream.path_mtu),
        psn_(parameters.stream.first_psn & kPsnMask),
        remote_qpn_(parameters.remote_qpn),
        remote_key_(parameters.remote_key),
        remote_address_(parameters.remote_address),
        payload_(context.bytes),
        write_(parameters.stream.operation == Operation::write),
        qpn_(qpn),
        sizes_(parameters.stream.message_bytes, parameters.stream.total_bytes),
        counters_(context.counters),
        by_pair_(by_pair),
        listener_(context.listener),
        peer_start_(parameters.peer_start),
        expected_bytes_(parameters.stream.total_bytes),
        sequence_(parameters.stream.first_psn) {
    message_ = sizes_.next();
  }

  bool understands(uint8_t opcode) const override {
    const RequestKind kind = opcode_shape(opcode).kind;
    return kind == RequestKind::send || kind == RequestKind::write;
  }

  bool receive(Time now, const uint8_t*, const PacketMeta& meta) override {
    const SequenceCheck::Verdict verdict = sequence_.observe(meta.psn);
    if (verdict.duplicate) {
      ++counters_.duplicate_request;
      ++by_pair_.duplicate;
      return true;
    }
    if (verdict.missing > 0) ++counters_.out_of_sequence;
    by_pair_.lost += verdict.missing;
    ++by_pair_.rx_packets;
    by_pair_.rx_bytes += meta.payload_length;
    by_pair_.rx_wire_bytes +=
        wire_bytes(meta.bth_offset + kBthHeader + extension_length(meta.opcode) + meta.payload_length + meta.pad_count + kIcrc);
    const OpcodeShape opcode = opcode_shape(meta.opcode);
    if (opcode.first && opcode.kind == RequestKind::write) ++counters_.rx_write_requests;
    if (opcode.last) ++by_pair_.rx_messages;
    if (listener_ != nullptr && by_pair_.rx_bytes == expected_bytes_) {
      listener_->message_completed(qpn_, by_pair_.rx_messages - 1, expected_bytes_, peer_start_, now);
    }
    return true;
  }

  bool control_waits() const override { return false; }
  void take_control(OutgoingPacket&) override {}

  uint32_t data_bytes() const override {
    if (message_ == 0) return 0;
    const uint32_t reth = offset_ == 0 && write_ ? kRethHeader : 0;
    return kBthHeader + reth + ((next_payload() + 3) & ~3u) + kIcrc;
  }
  bool take_data(Time, OutgoingPacket& out) override {
    const uint32_t payload = next_payload();
    const bool last = offset_ + payload == message_;
    out.header.opcode = packet_opcode(write_ ? WorkOpcode::write : WorkOpcode::send, offset_ == 0, last);
    out.header.destination_qp = remote_qpn_;
    out.header.psn = psn_;
    out.header.ack_request = last;
    out.header.reth = {remote_address_, remote_key_, message_};
    out.payload = payload_;
    out.payload_bytes = payload;
    psn_ = psn_add(psn_, 1);
    offset_ = last ? 0 : offset_ + payload;
    if (last) message_ = sizes_.next();
    return true;
  }

  Time next_deadline() const override { return kNever; }
  void advance(Time) override {}

 private:
  uint32_t next_payload() const { return std::min(path_mtu_, message_ - offset_); }

  // These fields, which sending needs, are in the order of use.
  uint32_t path_mtu_;
  uint32_t message_ = 0;  // length of the message under way; 0: there are no more
  uint32_t offset_ = 0;
  uint32_t psn_;
  uint32_t remote_qpn_;
  uint32_t remote_key_;
  uint64_t remote_address_;
  const uint8_t* payload_;
  bool write_;
  uint32_t qpn_;
  MessageSizes sizes_;
  // Receiving needs these.
  TransportCounters& counters_;
  QpCounters& by_pair_;
  MessageListener* listener_;
  Time peer_start_;
  uint64_t expected_bytes_;  // 0: no end
  SequenceCheck sequence_;
};

}  // namespace weir
