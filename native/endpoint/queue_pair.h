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
#include "wire/packet_pool.h"
#include "wire/roce_builder.h"

namespace weir {

// A queue pair that streams messages, or only receives them. Fields are in the order of use, as in the structs below.
struct QueuePairParameters {
  uint32_t remote_qpn = 0;   // 24 bits: DestQP of what is sent, CNPs included
  uint8_t priority = 3;      // 0..7, of what is sent
  bool reliable = false;     // a reliable connection, and not an unacknowledged stream
  bool on_demand = false;    // a reliable one: its messages are those that are posted to it, while it runs
  uint16_t outstanding = 2;  // a reliable one: messages posted at a time, 1..2^15; SEND: at the receiver too
  uint32_t application = 0;  // the owner: queue pairs of one may be one flow, see FlowSelection
  Time start = kNever;       // time to begin sending; kNever: only receives. READs: time when the other end asks for them
  Time stop = kNever;        // when to stop, between two packets
  Rate rate_cap = 0;         // most that the QP may send, wire bits per second; 0 = line rate
  Time peer_start = 0;       // when the other end begins, where only it sends
  // Addresses, DSCP, ECN codepoint and UDP source port of what is sent. A source MAC address other than the NIC's is the queue
  // pair's own; the NIC receives what is sent to it.
  RocePath path;
  MessageStreamParameters stream;
  // Sizes of a reliable one's messages, each of 1..kMaxMessage bytes, instead of those of `stream`; must outlive it.
  std::span<const uint32_t> sizes = {};
  QueueAttributes transport = {};  // a reliable one: recovery, timeout, retry_count and window
  // Seed of a reliable one, from which numbers and first PSNs of its connections are drawn, each of which may be followed by
  // another; different each time that the NIC starts. 0: it has one, from stream.first_psn on.
  uint64_t connection_seed = 0;
  uint64_t remote_address = 0;  // RETH
  uint32_t remote_key = 0;      // RETH; a reliable one has its own

  bool reads() const { return stream.operation == Operation::read; }
  // It sends what the peer READs.
  bool serves() const { return reads() && start == kNever; }
  bool sends_data() const { return reads() ? serves() : start != kNever; }
};
// Attributes that concern a reliable connection alone are checked when that is made.
void describe(auto& v, Of<QueuePairParameters> auto& p) {
  v.type("NativeStream", "A queue pair that streams messages, or only receives them.");
  v("remote_qpn", p.remote_qpn, field::any("DestQP of what is sent, CNPs included."));
  v("path", p.path, field::any("The way to the peer."));
  v("source_mac", p.path.source_mac, field::optional(field::any("Its own; the NIC receives what is sent to it.")));
  v("application", p.application, field::optional(field::any("Whose it is: queue pairs of one may be one flow.")));
  v("priority", p.priority, field::priority("Of what is sent."));
  v.base(p.stream);
  v("start", p.start, field::optional(field::any("After begin(); absent: only receives.", "ns")));
  v("stop", p.stop, field::optional(field::any("Between two packets; absent: never.", "ns")));
  v("peer_start", p.peer_start,
    field::optional(field::any("After begin(): when the other end begins, where only it sends.", "ns")));
  v("rate_cap", p.rate_cap, field::bps("Most that it may send, on the wire; 0: line rate."));
  v("remote_address", p.remote_address, field::any("Of the RETH."));
  v("remote_key", p.remote_key, field::any("Of the RETH; not of a reliable one."));
  v("reliable", p.reliable, field::optional(field::any("Each message is acknowledged; the peer's must be so too.")));
  v("on_demand", p.on_demand, field::optional(field::any("Of a reliable one: its messages are those of a graph.")));
  v("outstanding", p.outstanding, field::optional(field::any("Of a reliable one: messages posted at a time.")));
  v.rule(!p.on_demand || (p.reliable && !p.reads()), "only a reliable one that does not READ sends on demand");
  v("transport", p.transport, field::optional(field::any("Of a reliable one: recovery, timeout, retry_count and window.")));
}

// Throws NativeError INVALID_CONFIG unless a packet of `pool` has room for a frame of that path MTU, with telemetry or without.
inline void require_room(const PacketPool& pool, uint32_t path_mtu, bool telemetry) {
  constexpr uint32_t kPlain = kMaxHeaders - kMostExtensions + kAtomicHeader;
  require(!pool.has_payload() || (telemetry ? kMaxHeaders : kPlain) + path_mtu <= pool.room(), "queue pair",
          "path_mtu is more than packets have room for");
}

// Both, of a stream.
inline void check(const QueuePairParameters& p, const PacketPool& pool, bool telemetry) {
  check(p);
  require(p.reliable || !p.reads(), "queue pair", "only a reliable one READs");
  require_room(pool, p.stream.path_mtu, telemetry);
}

struct QueuePair {
  // idle (nothing to send) -> waiting (for its flow) <-> ready (in its priority's list) -> idle, or finished
  enum class State : uint8_t { idle, waiting, ready, finished };
  enum class Kind : uint8_t {
    stream,           // unacknowledged messages
    reliable_stream,  // messages over a reliable connection
    connection,       // a reliable connection that an application drives
    unreliable,       // an unreliable one, of a program
    datagram,         // an application's, without a peer: anybody may send to the NIC's addresses
    abandoned         // a connection that was a program's, which has ended
  };

  explicit QueuePair(const QueuePairParameters& p) : headers(p.path), parameters(p) {}

  // An application's; null: a stream, or an unused place.
  VerbsTransport* verbs() const { return kind >= Kind::connection ? static_cast<VerbsTransport*>(transport.get()) : nullptr; }
  bool datagram() const { return kind == Kind::datagram; }
  bool acknowledged() const { return kind == Kind::reliable_stream || kind == Kind::connection; }
  uint32_t path_mtu() const { return verbs() != nullptr ? parameters.transport.path_mtu : parameters.stream.path_mtu; }
  // A stream whose way is not known yet: nothing is sent on it until SoftNic::reconfigure() gives its path a destination MAC
  // address.
  bool unresolved() const { return kind < Kind::connection && parameters.path.destination_mac == 0; }
  // Whether its transport answers, has timers, and may have something to send again after it had nothing.
  bool converses() const { return kind != Kind::stream; }

  // Fields are in the order of use.
  std::unique_ptr<Transport> transport;  // null: an unused place for a queue pair of an application
  uint32_t qpn = 0;
  Kind kind = Kind::stream;
  State state = State::idle;
  bool connected = false;     // its path says who its peer is: packets of others are not for it
  bool started = false;       // has sent
  bool stopped = false;       // finished by its `stop`, with more to send
  bool answers = false;       // it is in its priority's list of those with control packets to send
  uint16_t datagrams = 0;     // sent, where they are numbered
  Time timer_wakes = kNever;  // when its transport is looked at, at the latest
  RoceTemplate headers;
  QueuePairParameters parameters;
  QpCounters counters;
  PacketMeta shape;  // in simulation: the meta that classify() would find in a packet of this path
};

}  // namespace weir
