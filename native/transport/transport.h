// One queue pair's transport, of whatever type, which a NIC drives. No I/O, no clock.
//
// Two kinds of packets come out. Control packets (acknowledgements) go as soon as the link is free; data packets (requests and
// READ responses) go at the pace that congestion control allows.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "congestion/congestion_control.h"
#include "transport/address_table.h"
#include "transport/counters.h"
#include "transport/memory_table.h"
#include "transport/work.h"
#include "wire/packet.h"
#include "wire/roce_builder.h"

namespace weir {

// One packet on its way out. The payload is read before the transport is called again.
struct OutgoingPacket {
  DataHeader header;
  const uint8_t* payload = nullptr;  // null: the payload's bytes do not exist, as in simulation
  uint32_t payload_bytes = 0;
  const RoceTemplate* headers = nullptr;  // UD: of the way that its address handle stands for
  uint32_t address_handle = 0;            // UD
};

// Count of a peer's data that were used so far.
struct Received {
  uint64_t packets = 0;          // those of SENDs, WRITEs and READ responses
  uint64_t bytes = 0;            // bytes of their payload
  uint64_t transport_bytes = 0;  // bytes from the BTH to the end of the pad
  uint64_t messages = 0;         // SENDs and WRITEs, whole ones
  uint64_t duplicates = 0;       // packets of requests behind the expected PSN

  void count(uint32_t payload, uint32_t from_bth_to_pad, bool message_ends) {
    ++packets;
    bytes += payload;
    transport_bytes += from_bth_to_pad;
    messages += message_ends;
  }
};

// News for congestion control from answers.
struct Heard {
  Ack ack;  // packets: 0 when nothing was acknowledged
  bool lost = false;
  bool timed_out = false;
  Trimmed trimmed;  // packets: 0 when none was
};

// Context that the queue pairs of a NIC share.
struct TransportContext {
  MemoryTable& memory;
  CompletionSink& completions;
  TransportCounters& counters;
  bool payload = true;  // packets carry their payload's bytes; not in simulation: only the 32 bytes of a selective NAK do
  // A send that cannot leave stops sends alone (SQE), where the service has no acknowledgements.
  bool send_queue_errors = false;
  bool tells_left = false;                  // who takes packets that nobody acknowledges says when they have left
  const AddressTable* addresses = nullptr;  // for datagrams; null: the sender of datagrams has it
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Whether packets with this opcode are for such a queue pair; only those are passed to receive().
  virtual bool understands(uint8_t opcode) const = 0;

  // A RoCEv2 packet with a good ICRC to this queue pair; bytes as classified into `meta`. False: it is not valid here, by the
  // queue pair's state or the packet's keys, and was dropped.
  virtual bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) = 0;

  // Takes the headers that a switch has left of a packet, without an ICRC that could be checked. A transport that does not ask
  // for it again ignores them.
  virtual void receive_trimmed(Time, const uint8_t*, const PacketMeta&) {}

  virtual bool control_waits() const = 0;
  // control_waits() must be true.
  virtual void take_control(OutgoingPacket& out) = 0;

  // Bytes from the BTH to the ICRC of the data packet that may go now; 0 when there is none.
  virtual uint32_t data_bytes() const = 0;
  // False when there turns out to be none after all: its memory is gone.
  virtual bool take_data(Time now, OutgoingPacket& out) = 0;

  // Timers.
  virtual Time next_deadline() const = 0;
  virtual void advance(Time now) = 0;

  // A transport without acknowledgements, or without timers and ends, leaves the functions below as they are.
  //
  // Tells the news since the last call, which is to follow each receive() and advance(). False: nothing that congestion control
  // wants to know.
  virtual bool take_heard(Heard&) { return false; }
  // Congestion control: packets in flight at most, and how many of READs may be expected to be (0: nobody knows): they are asked
  // for in parts of that.
  virtual void limit(uint32_t, uint32_t) {}
  // It may send from now on.
  virtual void begin(Time) {}
  // It has sent everything, has failed, or was closed.
  virtual bool ended() const { return false; }
  // It is of no more use: nothing is sent, nothing is told, what comes is dropped and counted, and its memory is free.
  virtual void close() {}
};

}  // namespace weir
