// Attributes that the two ends of a queue pair have agreed on, and the queue pair's state.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/describe.h"
#include "transport/entropy.h"
#include "wire/bth.h"

namespace weir {

// IBTA volume 1, 10.3.1. Sending starts in rts, receiving in rtr; SQD and SQE are rts with a send queue that does not go on.
enum class QueuePairState : uint8_t { reset, init, rtr, rts, error };
constexpr auto words_of(QueuePairState) { return std::array{"reset", "init", "rtr", "rts", "error"}; }

// State of the send queue in rts. draining: work that has begun is brought to its end, and nothing else begins; drained: it has
// come to that. failed: one send of a service without acknowledgements was not valid, and all others are flushed.
enum class SendQueueState : uint8_t { runs, draining, drained, failed };

// Way in which a requester and a responder deal with loss. go_back_n is that of RoCEv2 NICs and of the standard. selective_repeat
// must be chosen at both ends: out-of-order packets are kept, and NAKs say which (32 bytes behind the AETH).
enum class LossRecovery : uint8_t { go_back_n, selective_repeat };
constexpr auto words_of(LossRecovery) { return std::array{"go-back-n", "selective-repeat"}; }

// Packets in flight at most, beyond the oldest one that is not acknowledged. The selective NAK has a bit for each.
inline constexpr uint32_t kDefaultWindow = 256;
inline constexpr uint32_t kDefaultWindowBytes = 1 << 20;  // the default where that is more
inline constexpr uint32_t kMaxWindow = 65'536;
inline constexpr uint32_t kMaxSelectiveWindow = 256;
inline constexpr uint32_t kMaxRdAtomic = 128;

struct QueueAttributes {
  uint32_t domain = 0;  // protection domain
  uint16_t partition_key = kDefaultPartitionKey;
  uint8_t access = 0;  // kRemoteWrite ...: what the peer may do through this queue pair
  // True for congestion control by acknowledgements: the requester asks for one of each packet and knows when it has sent it, and
  // `echoes` holds, too.
  bool informs = false;
  // The responder's acknowledgements say whether their packets had the codepoint CE. They do by the BECN bit of their BTH, which
  // the standard has for "congestion met by the packets of the peer" (IBTA volume 1, 9.2 and A10).
  bool echoes = false;
  // True where SENDs, WRITEs and READ responses have room for telemetry, and acknowledgements bring back what was written there
  // (wire/telemetry.h). Both ends must have it.
  bool telemetry = false;
  // With selective_repeat, at both ends: the responder says at once which SENDs and WRITEs a switch has trimmed (kNakTrimmed),
  // and the requester sends these again without waiting for others to arrive.
  bool trim_naks = false;
  // Ways by which packets go: with selective_repeat, which puts them in order. `reps` goes by acknowledgements of each packet, so
  // `informs` holds then, too.
  Spraying spraying = Spraying::none;
  uint16_t entropies = 256;  // 1..kMaxEntropies
  uint32_t path_mtu = 1024;  // 256, 512, 1024, 2048 or 4096
  uint32_t remote_qpn = 0;
  uint32_t send_psn = 0;            // the first that we send
  uint32_t receive_psn = 0;         // the first that we expect
  uint8_t timeout = 14;             // local ACK timeout, 4.096 us x 2^timeout; 0: none; up to 31
  uint8_t retry_count = 7;          // 0..7
  uint8_t rnr_retry = 7;            // 0..7; 7: without end
  uint8_t min_rnr_timer = 12;       // code of the delay that our RNR NAKs ask for, 0..31
  uint8_t max_rd_atomic = 16;       // READs and atomics under way as requester, 1..kMaxRdAtomic
  uint8_t max_dest_rd_atomic = 16;  // its own as responder, from 0
  LossRecovery recovery = LossRecovery::go_back_n;
  // With selective_repeat: number of packets sent later that may have arrived before one that has not counts as lost,
  // 1..kMaxSelectiveWindow - 1.
  uint8_t reordering = 3;
  uint32_t window = 0;  // packets in flight, 4..kMaxWindow; selective_repeat: ..kMaxSelectiveWindow; 0: see packets_in_flight()
  // Codes of times, timeout and that of an RNR NAK, stand for times so much longer: in a lab, whose clock is slower by that.
  float time_scale = 1;
  uint32_t queue_key = 0;  // UD
};
// Its window, or the default: what path MTU there is has no say in how many bytes are under way.
constexpr uint32_t packets_in_flight(const QueueAttributes& a) {
  if (a.window != 0) return a.window;
  return a.recovery == LossRecovery::go_back_n ? std::max(kDefaultWindow, kDefaultWindowBytes / a.path_mtu) : kDefaultWindow;
}
constexpr bool acknowledges_each(const QueueAttributes& a) { return a.informs || a.spraying == Spraying::reps; }
// These attributes, which concern recovery, are described for simulations' flows too.
void describe(auto& v, Of<QueueAttributes> auto& a) {
  using field::any;
  using field::optional;
  v.type("NativeTransport", "What the two ends of a queue pair have agreed on.");
  v("domain", a.domain, optional(any("Protection domain.")));
  v("partition_key", a.partition_key, optional(any("Of the BTH.")));
  v("access", a.access, optional(any("Bits: local write 1, remote write 2, remote read 4, remote atomic 8.")));
  v("path_mtu", a.path_mtu, optional(any("256, 512, 1024, 2048 or 4096.", "bytes")));
  v("remote_qpn", a.remote_qpn, optional(any("The peer's number.")));
  v("send_psn", a.send_psn, optional(any("The first that is sent.")));
  v("receive_psn", a.receive_psn, optional(any("The first that is expected.")));
  v("timeout", a.timeout, any("Local ACK timeout: 4.096 us x 2^timeout, up to 31; 0: none."));
  v("retry_count", a.retry_count, any("0 to 7."));
  v("rnr_retry", a.rnr_retry, optional(any("0 to 7; 7: without end.")));
  v("min_rnr_timer", a.min_rnr_timer, optional(any("Code of the delay that RNR NAKs ask for, 0 to 31.")));
  v("max_rd_atomic", a.max_rd_atomic, optional(any("READs and atomics under way as requester, 1 to 128.")));
  v("max_dest_rd_atomic", a.max_dest_rd_atomic, optional(any("As responder, from 0.")));
  v("recovery", a.recovery, any("From loss; both ends must agree on selective-repeat."));
  v("window", a.window,
    any("Packets in flight: 4 to 65536, with selective-repeat to 256. 0: 1 MiB, no fewer than 256; with selective-repeat 256.",
        "packets"));
  v("reordering", a.reordering,
    optional(any("With selective-repeat: packets that may overtake one, beyond which it is lost, 1 to 255.", "packets")));
  v("trim_naks", a.trim_naks,
    optional(any("With selective-repeat, at both ends: packets that a switch has trimmed are asked for at once.")));
  v("spraying", a.spraying, optional(any("With selective-repeat: how packets take several ways, by UDP source ports.")));
  v("entropies", a.entropies, optional(any("With it: how many ports, 1 to 16384.")));
  v("time_scale", a.time_scale, optional(field::scale("What codes of times stand for is so much longer.", 1, 1e6)));
  v("queue_key", a.queue_key, optional(any("Of datagrams.")));
}

}  // namespace weir
