// Messages between a program's library and the NIC's daemon over the daemon's socket for programs: requests and answers of fixed
// size, in the host's order of bytes, one answer to each request in order. The answer to the first, kHello, brings the
// descriptors of ProgramOpening as SCM_RIGHTS. The program's queue pairs end with the connection, whichever side closes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/describe.h"
#include "transport/queue_attributes.h"
#include "wire/roce_builder.h"

namespace weir {

// Limits of what a program may have of a NIC: the daemon holds it to them, and libibverbs tells it.
inline constexpr uint32_t kProgramQueuePairs = 1024;
inline constexpr uint32_t kProgramAddressHandles = 4096;
inline constexpr uint32_t kProgramMemberships = 256;  // most of its queue pairs in multicast groups

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
  uint32_t kind = kHello;    // Kind
  uint32_t object = 0;       // queue pair or address handle
  uint32_t datagram = 0;     // 1: UD
  uint32_t state = 0;        // QueuePairState
  uint32_t path_mtu = 1024;  // bytes
  uint32_t remote_qpn = 0;
  uint32_t partition_key = 0;
  uint32_t traffic_class = 0;  // DSCP and ECN of the GRH
  uint32_t hop_limit = 0;
  uint32_t source_index = 0;  // index in the GID table
  uint32_t service_level = 0;
  std::array<uint8_t, 16> gid{};  // the peer's, or a multicast group's; IPv4 as ::ffff:a.b.c.d
  uint32_t receive_psn = 0;
  uint32_t unreliable = 0;  // 1: UC
  uint32_t direct = 0;      // of hello, 1: it would have a path of its own
};
constexpr auto words_of(ProgramRequest::Kind) {
  return std::array{"hello",
                    "create-queue-pair",
                    "modify-queue-pair",
                    "destroy-queue-pair",
                    "create-address-handle",
                    "destroy-address-handle",
                    "attach-group",
                    "detach-group"};
}
// The word that a stranger's number stands for; nothing if there is none.
template <Worded Enum>
constexpr std::optional<Enum> known(uint32_t number) {
  return number < words_of(Enum{}).size() ? std::optional(static_cast<Enum>(number)) : std::nullopt;
}
void describe(auto& v, Of<ProgramRequest> auto& request) {
  v.type("ProgramRequest", "What a program asks of the NIC. Nothing of it has been looked at.");
  v("bytes", request.bytes, field::any("Of the request.", "bytes"));
  const auto kind = known<ProgramRequest::Kind>(request.kind);
  v("kind", kind, field::optional(field::any("Absent: its number means nothing.")));
  v("object", request.object, field::any("Queue pair or address handle."));
  v("datagram", request.datagram, field::any("1: UD."));
  const auto state = known<QueuePairState>(request.state);
  v("state", state, field::optional(field::any("That the queue pair comes to. Absent: its number means nothing.")));
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
  v("direct", request.direct, field::any("Of hello, 1: it would have a path of its own."));
}

struct ProgramAnswer {
  uint32_t error = 0;   // errno
  uint32_t object = 0;  // queue pair or address handle
  // These answer hello.
  uint32_t layout = 0;  // kProgramLayout
  uint32_t path_mtu = 0;
  uint64_t mac = 0;
  uint64_t rate = 0;  // bit/s
  uint32_t gids = 1;
  // These answer a change of state to rtr of a queue pair that is to go by the program's own path.
  uint32_t direct = 0;  // 1: it is
  uint32_t priority = 0;
  RocePath path;
};
void describe(auto& v, Of<ProgramAnswer> auto& answer) {
  v.type("ProgramAnswer", "What the NIC tells a program.");
  v("error", answer.error, field::optional(field::any("errno; 0: none.")));
  v("object", answer.object, field::optional(field::any("Queue pair or address handle.")));
  v("path_mtu", answer.path_mtu, field::optional(field::any("Largest at this time, of hello.", "bytes")));
  v("mac", answer.mac, field::optional(field::any("The NIC's, of hello.")));
  v("rate", answer.rate, field::optional(field::any("Of its link, of hello.", "bit/s")));
  v("gids", answer.gids, field::optional(field::any("How many its table has, of hello.")));
  v("direct", answer.direct, field::optional(field::any("1: the queue pair goes by the program's own path.")));
  v("priority", answer.priority, field::optional(field::any("Of what it sends there.")));
  v("path", answer.path, field::optional(field::any("To its peer.")));
}

}  // namespace weir
