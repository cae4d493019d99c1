// One queue pair of a soft NIC: its transport, and where it stands on its way to the link.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/native_error.h"
#include "base/types.h"
#include "endpoint/counters.h"
#include "transport/message_stream.h"
#include "transport/queue_attributes.h"
#include "transport/verbs_transport.h"
#include "wire/packet.h"
#include "wire/roce_builder.h"

namespace weir {

// A queue pair that streams messages, or only receives them. In the order of use, as what follows.
struct QueuePairParameters {
  uint32_t remote_qpn = 0;   // 24 bits: DestQP of what is sent, CNPs included
  uint8_t priority = 3;      // 0..7, of what is sent
  bool reliable = false;     // a reliable connection, and not an unacknowledged stream
  uint16_t outstanding = 2;  // of a reliable one: messages posted at a time
  uint32_t application = 0;  // whose it is: queue pairs of one may be one flow, see FlowSelection
  Time start = kNever;       // when to begin sending; kNever: only receives
  Time stop = kNever;        // when to stop, between two packets
  Rate rate_cap = 0;         // most that the QP may send, wire bits per second; 0 = line rate
  Time peer_start = 0;       // when the other end begins, where only it sends
  // Addresses, DSCP, ECN codepoint and UDP source port of what is sent. A source MAC address other than the NIC's is the queue
  // pair's own; the NIC receives what is sent to it.
  RocePath path;
  MessageStreamParameters stream;
  std::span<const uint32_t> sizes = {};  // of a reliable one: its messages, instead of what `stream` says of them
  QueueAttributes transport = {};        // of a reliable one: recovery, timeout, retry_count and window
  uint64_t remote_address = 0;           // RETH
  uint32_t remote_key = 0;               // RETH
};

// Throws NativeError INVALID_CONFIG. What concerns a reliable connection alone is checked when that is made.
inline void check(const QueuePairParameters& p) {
  constexpr const char* kWhose = "queue pair";
  require(p.priority < kPriorities, kWhose, "priorities are 0 to 7");
  require(p.rate_cap >= 0, kWhose, "rate_cap must not be negative");
  require(p.stream.path_mtu >= 1 && p.stream.path_mtu <= 4'096, kWhose, "path_mtu must be at most 4096");
}

// Throws NativeError INVALID_CONFIG unless a packet of `pool` has room for a frame of that path MTU.
inline void require_room(const PacketPool& pool, uint32_t path_mtu) {
  require(!pool.has_payload() || kMaxHeaders + path_mtu <= pool.room(), "queue pair",
          "path_mtu is more than packets have room for");
}

// Both, of a stream.
inline void check(const QueuePairParameters& p, const PacketPool& pool) {
  check(p);
  require_room(pool, p.stream.path_mtu);
}

struct QueuePair {
  // idle (nothing to send) -> waiting (for its flow) <-> ready (in its priority's list) -> idle, or finished
  enum class State : uint8_t { idle, waiting, ready, finished };
  enum class Kind : uint8_t {
    stream,           // unacknowledged messages
    reliable_stream,  // messages over a reliable connection
    connection,       // a reliable connection that an application drives
    datagram          // an application's, without a peer: anybody may send to the NIC's addresses
  };

  explicit QueuePair(const QueuePairParameters& p) : parameters(p), headers(p.path) {}

  // An application's; null: a stream, or an unused place.
  VerbsTransport* verbs() const { return kind >= Kind::connection ? static_cast<VerbsTransport*>(transport.get()) : nullptr; }
  bool datagram() const { return kind == Kind::datagram; }
  bool acknowledged() const { return kind == Kind::reliable_stream || kind == Kind::connection; }
  // A stream whose way is not known yet: nothing is sent on it until SoftNic::reconfigure() gives its path a destination MAC
  // address.
  bool unresolved() const { return kind < Kind::connection && parameters.path.destination_mac == 0; }
  // Whether its transport answers, has timers, and may have something to send again after it had nothing.
  bool converses() const { return kind != Kind::stream; }

  std::unique_ptr<Transport> transport;  // null: an unused place for a queue pair of an application
  uint32_t qpn = 0;
  Kind kind = Kind::stream;
  State state = State::idle;
  bool connected = false;     // its path says who its peer is: packets of others are not for it
  bool started = false;       // has sent
  bool answers = false;       // in its priority's list of those with control packets to send
  Time timer_wakes = kNever;  // when its transport is looked at, at the latest
  QpCounters counters;
  QueuePairParameters parameters;
  RoceTemplate headers;
  PacketMeta shape;  // in simulation: what classify() would find in a packet of this path
};

}  // namespace weir
