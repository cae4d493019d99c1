// Multicast groups that queue pairs of datagrams join.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/provider.h"

namespace weir {
namespace {

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

// IPv6's, or IPv4's as IPv6 has them.
bool is_group(const ibv_gid& gid) {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return gid.raw[0] == 0xff || (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0 && gid.raw[12] >> 4 == 0xe);
}

int ask(ibv_qp* base, const ibv_gid& gid, ProgramRequest::Kind kind) {
  ProgramRequest request;
  request.kind = kind;
  request.object = base->qp_num;
  std::memcpy(request.gid.data(), gid.raw, request.gid.size());
  return static_cast<int>(nic_of(base->context).ask(request).error);
}

int attach_mcast(ibv_qp* base, const ibv_gid* gid, uint16_t) {
  ProgramQueuePair& qp = pair_of(base);
  if (!qp.datagram || !is_group(*gid)) return EINVAL;
  const auto is_this = [&](const ibv_gid& one) { return same(one, *gid); };
  if (std::any_of(qp.groups.begin(), qp.groups.end(), is_this)) return 0;
  const int error = ask(base, *gid, ProgramRequest::kAttachGroup);
  if (error == 0) qp.groups.push_back(*gid);
  return error;
}

int detach_mcast(ibv_qp* base, const ibv_gid* gid, uint16_t) {
  ProgramQueuePair& qp = pair_of(base);
  const auto is_this = [&](const ibv_gid& one) { return same(one, *gid); };
  if (std::erase_if(qp.groups, is_this) == 0) return EINVAL;
  // Nothing comes any more from a daemon that is gone.
  if (!nic_of(base->context).failed()) ask(base, *gid, ProgramRequest::kDetachGroup);
  return 0;
}

}  // namespace

void add_multicast_operations(verbs_context_ops& operations) {
  operations.attach_mcast = attach_mcast;
  operations.detach_mcast = detach_mcast;
}

}  // namespace weir
