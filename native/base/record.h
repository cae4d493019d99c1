// Form of a sample or an event on its way to TypeScript.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct Record {
  enum class Kind : uint16_t {
    queue = 1,       // egress queue: bytes now, most since the last sample, CE marks and CNMs so far; index = port * 8 + priority
    transmit = 2,    // QP as sender: rate, target rate, alpha, window in packets; index = QP
    receive = 3,     // QP as receiver: payload bytes, wire bytes, CNPs sent, packets lost so far; index = QP
    pause = 4,       // switch ingress: PFC frames sent so far, stopped now (0/1), ingress bytes; index = port * 8 + priority
    port = 6,        // an interface: 1 = up, 0 = down, gone or not to be opened; MTU, 0 = unknown; 1 = opened anew; index = port
    stall = 7,       // an interface: 1 = it takes no frames to send; 1 = what it receives is not taken from it; 1 = frames
                     // leave by another way than the one asked for; index = port
    stream = 8,      // a reliable stream: status of its connection, 0 = it has one, else why it failed (WorkStatus); index = QP
    storm = 9,       // a switch: mask of priorities at which the PFC watchdog has found a storm; index = port
    message = 10,    // a message of a lab that is complete: its number from 0, bytes, when it was posted (of an unacknowledged
                     // stream: the last, all bytes, its start); index = QP that sends, or receives without acknowledgements
    queues = 12,     // receive queues with AF_XDP sockets; 1 = these copy nothing; 1 = nor does what leaves by AF_XDP
    neighbour = 11,  // one that a NIC follows: its MAC address, if that is another; 0 = it does not answer; index = its place
    ended = 5,       // the worker's loop has ended; value 0 = asked to, 1 = failed
  };
  Time time = 0;
  Kind kind = Kind::queue;
  uint16_t device = 0;
  uint32_t index = 0;
  double values[4] = {};
};
constexpr auto words_of(Record::Kind) {
  return std::array{"",      "queue",  "transmit", "receive", "pause",     "ended", "port",
                    "stall", "stream", "storm",    "message", "neighbour", "queues"};
}
void describe(auto& v, Of<Record> auto& record) {
  v.type("Record", "A sample or an event.");
  v("time", record.time, field::any("Of the worker's clock, or of virtual time.", "ns"));
  v("kind", record.kind, field::any("What `index` and `values` are."));
  v("device", record.device, field::any("Number of the device."));
  v("index", record.index, field::any("Of the queue, queue pair or port."));
  v("values", record.values, field::any("By kind."));
}

}  // namespace weir
