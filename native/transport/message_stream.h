// The requester's side of an endless or bounded stream of messages: which packet comes next. Segmentation by path MTU and
// opcodes as IBTA volume 1, 9.4 and 9.7 (SEND, RDMA WRITE on RC).
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/opcode.h"
#include "transport/psn.h"

namespace weir {

enum class Operation : uint8_t { write, send };

struct MessageStreamParameters {
  Operation operation = Operation::write;
  uint32_t path_mtu = 1024;            // 256, 512, 1024, 2048 or 4096 bytes of payload per packet
  uint32_t message_bytes = 4'000'000;  // 1 .. 2^31
  uint64_t total_bytes = 0;            // 0 = no end; the last message is cut to fit
  uint32_t first_psn = 0;
};

class MessageStream {
 public:
  struct Segment {
    uint8_t opcode;
    uint32_t psn;
    uint32_t payload_bytes;
    uint32_t message_bytes;  // of the whole message: the RETH's DMA length
    bool first;              // carries the RETH of a WRITE
    bool last;               // of its message: asks for an acknowledgement
  };

  explicit MessageStream(const MessageStreamParameters& parameters)
      : parameters_(parameters), psn_(parameters.first_psn & kPsnMask) {
    begin_message();
  }

  bool finished() const { return message_ == 0; }
  // Payload bytes of the next packet; 0 when finished.
  uint32_t next_payload() const { return std::min(parameters_.path_mtu, message_ - offset_); }
  bool next_is_first() const { return offset_ == 0; }

  Segment next() {
    const uint32_t payload = next_payload();
    const bool first = offset_ == 0;
    const bool last = offset_ + payload == message_;
    const WorkOpcode work = parameters_.operation == Operation::write ? WorkOpcode::write : WorkOpcode::send;
    const Segment segment{packet_opcode(work, first, last), psn_, payload, message_, first, last};
    psn_ = psn_add(psn_, 1);
    offset_ += payload;
    sent_ += payload;
    if (last) begin_message();
    return segment;
  }

 private:
  void begin_message() {
    offset_ = 0;
    message_ = parameters_.message_bytes;
    if (parameters_.total_bytes == 0) return;
    message_ = static_cast<uint32_t>(std::min<uint64_t>(message_, parameters_.total_bytes - sent_));
  }

  MessageStreamParameters parameters_;
  uint32_t psn_;
  uint32_t message_ = 0;  // length of the message under way; 0 = no more
  uint32_t offset_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace weir
