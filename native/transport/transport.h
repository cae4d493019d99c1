// What a NIC drives: one queue pair's transport, of whatever type. No I/O, no clock.
//
// Two kinds of packets come out. Control packets (acknowledgements) go as soon as the link is free; data packets (requests and
// READ responses) go at the pace that congestion control allows.
#pragma once

#include <cstdint>

#include "base/types.h"
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
  uint32_t address_handle = UINT32_MAX;  // UD: whose path to take
};

// What is common to the queue pairs of a NIC.
struct TransportContext {
  MemoryTable& memory;
  CompletionSink& completions;
  TransportCounters& counters;
  bool payload = true;  // packets carry their payload's bytes; not in simulation: only the 32 bytes of a selective NAK do
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Whether packets with this opcode are for such a queue pair; only those are passed to receive().
  virtual bool understands(uint8_t opcode) const = 0;

  // A RoCEv2 packet with a good ICRC to this queue pair; bytes as classified into `meta`.
  virtual void receive(Time now, const uint8_t* frame, const PacketMeta& meta) = 0;

  virtual bool control_waits() const = 0;
  // Only when control_waits().
  virtual void take_control(OutgoingPacket& out) = 0;

  // Bytes from the BTH to the ICRC of the data packet that may go now; 0 when there is none.
  virtual uint32_t data_bytes() const = 0;
  // False when there turns out to be none after all: its memory is gone.
  virtual bool take_data(Time now, OutgoingPacket& out) = 0;

  // Timers.
  virtual Time next_deadline() const = 0;
  virtual void advance(Time now) = 0;
};

}  // namespace weir
