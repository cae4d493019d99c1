// What a program's library and the NIC's daemon say to each other over the daemon's socket for programs: requests and answers of
// fixed size, in the host's order of bytes, one answer to each request in order. The answer to the first, kHello, brings the
// descriptors of ProgramOpening as SCM_RIGHTS. Whoever closes the connection ends the program's queue pairs.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"

namespace weir {

// How much a program may have of a NIC: what the daemon holds it to, and what libibverbs tells it.
inline constexpr uint32_t kProgramQueuePairs = 1024;
inline constexpr uint32_t kProgramAddressHandles = 4096;
inline constexpr uint32_t kProgramMemberships = 256;  // of its queue pairs in multicast groups

struct ProgramRequest {
  enum Kind : uint32_t {
    kHello,
    kCreateQueuePair,
    kModifyQueuePair,
    kDestroyQueuePair,
    kCreateAddressHandle,
    kDestroyAddressHandle,
    kAttachGroup,
    kDetachGroup
  };
  // Numbers only: they are a stranger's, and the daemon looks at each.
  uint32_t bytes = sizeof(ProgramRequest);
  uint32_t kind = kHello;
  uint32_t object = 0;       // queue pair or address handle
  uint32_t datagram = 0;     // 1: UD
  uint32_t state = 0;        // QueuePairState
  uint32_t path_mtu = 1024;  // bytes
  uint32_t remote_qpn = 0;
  uint32_t partition_key = 0;
  uint32_t traffic_class = 0;  // of the GRH: DSCP and ECN
  uint32_t hop_limit = 0;
  uint32_t source_index = 0;  // of the GID table
  uint32_t service_level = 0;
  std::array<uint8_t, 16> gid{};  // the peer's, or a multicast group's; IPv4 as ::ffff:a.b.c.d
  uint32_t receive_psn = 0;
  uint32_t unreliable = 0;  // 1: UC
};
void describe(auto& v, Of<ProgramRequest> auto& request) {
  v.type("ProgramRequest", "What a program asks of the NIC. Nothing of it has been looked at.");
  v("bytes", request.bytes, field::any("Of the request.", "bytes"));
  v("kind", request.kind,
    field::any("0 hello; queue pair: 1 create, 2 modify, 3 destroy; address handle: 4 create, 5 destroy; queue pair and "
               "multicast group: 6 attach, 7 detach."));
  v("object", request.object, field::any("Queue pair or address handle."));
  v("datagram", request.datagram, field::any("1: UD."));
  v("state", request.state, field::any("To come: 0 reset, 1 init, 2 rtr, 3 rts, 4 error."));
  v("path_mtu", request.path_mtu, field::any("Of the connection.", "bytes"));
  v("remote_qpn", request.remote_qpn, field::any("The peer's number."));
  v("partition_key", request.partition_key, field::any("Of the BTH."));
  v("traffic_class", request.traffic_class, field::any("DSCP and ECN; 0: the NIC's default."));
  v("hop_limit", request.hop_limit, field::any("0: 64."));
  v("source_index", request.source_index, field::any("Of the table of GIDs."));
  v("service_level", request.service_level, field::any("Priority, where the traffic class says nothing."));
  v("gid", request.gid, field::any("The peer's, or a multicast group's; IPv4 as ::ffff:a.b.c.d."));
  v("receive_psn", request.receive_psn, field::any("The first that is expected of the peer."));
  v("unreliable", request.unreliable, field::any("1: UC."));
}

struct ProgramAnswer {
  uint32_t error = 0;   // errno
  uint32_t object = 0;  // queue pair or address handle
  // Of hello.
  uint32_t layout = 0;  // kProgramLayout
  uint32_t path_mtu = 0;
  uint64_t mac = 0;
  uint64_t rate = 0;  // bit/s
  uint32_t gids = 1;
};
void describe(auto& v, Of<ProgramAnswer> auto& answer) {
  v.type("ProgramAnswer", "What the NIC tells a program.");
  v("error", answer.error, field::optional(field::any("errno; 0: none.")));
  v("object", answer.object, field::optional(field::any("Queue pair or address handle.")));
  v("path_mtu", answer.path_mtu, field::optional(field::any("Largest, of hello.", "bytes")));
  v("mac", answer.mac, field::optional(field::any("The NIC's, of hello.")));
  v("rate", answer.rate, field::optional(field::any("Of its link, of hello.", "bit/s")));
  v("gids", answer.gids, field::optional(field::any("How many its table has, of hello.")));
}

}  // namespace weir
