// The responder: executes the peer's requests in order and answers them (IBTA volume 1, 9.7.4 and 9.7.5). Nothing touches
// memory before key, bounds, rights, order and length have been checked.
//
// Errors of the peer are answered with a NAK and end the queue pair, but a sequence error (the peer goes back) and a missing
// receive (RNR NAK, the peer waits). Linux's rxe answers "remote operational error" to a SEND longer than the receive
// buffer; the standard's table 57 has "invalid request" (length errors), and so do we.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "transport/opcode.h"
#include "transport/queue_attributes.h"
#include "transport/receive_queue.h"
#include "transport/reorder_buffer.h"
#include "transport/response_queue.h"
#include "transport/telemetry_echo.h"
#include "transport/transport.h"

namespace weir {

class Responder {
 public:
  // `received`: where SENDs and WRITEs are counted as they are executed.
  Responder(uint32_t qpn, const QueueAttributes& attributes, const TransportContext& context, ReceiveQueue& receives,
            Received& received)
      : qpn_(qpn), attributes_(attributes), context_(context), receives_(receives), received_(received) {}

  // Begins by expecting attributes.receive_psn.
  void start();
  // Frees what start() took; nothing waits any more.
  void stop();
  // A packet that is not a response, from its `bth` on; `length` from there to the end of the pad; `marked`: it has the codepoint
  // CE. False: the peer made an error that ends the queue pair; the NAK waits.
  bool receive(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked);
  // Takes the headers that a switch has left of a SEND or WRITE at this PSN. Nothing but the headers' own word says that it is
  // one of the peer's: all that follows is that the peer is asked for it.
  void receive_trimmed(uint32_t psn);
  // Takes a packet's telemetry (kTelemetryHeader bytes), before receive(): it is echoed with the next acknowledgement.
  void take_telemetry(const uint8_t* telemetry) { telemetry_.take(telemetry, context_.counters); }
  uint32_t expected() const { return expected_; }

  bool control_waits() const { return !responses_.empty() && responses_.front().kind != Response::Kind::read; }
  void take_control(OutgoingPacket& out);
  // A READ response.
  bool has_data() const { return !responses_.empty() && responses_.front().kind == Response::Kind::read; }
  // Bytes from BTH to ICRC of the READ response that may go now; 0: none.
  uint32_t data_bytes() const;
  // False: the memory is gone; a NAK waits, and the queue pair has to end.
  bool take_data(OutgoingPacket& out);

 private:
  // A packet of one, taken apart.
  struct Request {
    const Bth& bth;
    OpcodeShape opcode;
    const uint8_t* extension;
    const uint8_t* payload;
    uint32_t length;        // bytes of the payload
    uint32_t packet_bytes;  // bytes from the BTH to the end of the pad
  };
  bool execute(const Bth& received, const uint8_t* packet, uint32_t length);
  bool selective() const { return attributes_.recovery == LossRecovery::selective_repeat; }
  bool execute_send(const Request& request);
  bool execute_write(const Request& request);
  bool execute_with_response(const Request& request);
  bool execute_read(const Request& request);
  bool execute_atomic(const Request& request);
  bool accept(const Request& request, uint32_t offset);
  bool respond(Response response);
  void set_range(Response& response, uint32_t psn, const Reth& reth) const;
  const Response* executed(uint32_t psn) const;
  void repeat(const Bth& bth, OpcodeShape opcode, const uint8_t* extension);
  void early(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked);
  bool not_ready();
  bool refuse(uint8_t syndrome);
  bool refuse_receive(uint8_t syndrome, WorkStatus status);
  void proceed(uint32_t packets, bool message_ends);
  void acknowledge();
  void answer(const Response& response);
  void negative(uint8_t syndrome);
  void ask_for_trimmed();
  uint8_t credits() const;
  uint8_t opcode_of(const Response& read) const;
  uint32_t response_payload(const Response& response) const;

  uint32_t qpn_;
  bool early_marked_ = false;  // a packet that is kept met congestion, and no NAK has told of it yet
  const QueueAttributes& attributes_;
  const TransportContext& context_;
  ReceiveQueue& receives_;
  Received& received_;
  // This word does not lie beside the MSN: answers copy both to words in that order, and one load of two words that were written
  // one by one waits until they have left the store buffer.
  uint32_t expected_ = 0;                    // PSN
  bool nak_sent_ = false;                    // true for the expected PSN; more of them would only repeat it
  bool marked_ = false;                      // the packet at hand
  bool discarded_marked_ = false;            // one that was not executed, and that no acknowledgement has echoed yet
  RequestKind message_ = RequestKind::none;  // kind of the message under way
  uint32_t offset_ = 0;                      // bytes of it so far
  uint32_t sequence_ = 0;                    // MSN
  Reth write_;
  ResponseQueue responses_;
  Ring<Response> executed_;               // the latest READs and atomics, to answer them again
  std::unique_ptr<ReorderBuffer> early_;  // selective repeat
  TelemetryEcho telemetry_;
};

}  // namespace weir
