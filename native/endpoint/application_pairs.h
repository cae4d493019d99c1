// Queue pairs of applications, and what these have beside them: they come and go, and are given work, between two events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/types.h"
#include "endpoint/nic_events.h"
#include "endpoint/queue_pair_table.h"
#include "transport/queue_attributes.h"
#include "transport/work.h"
#include "wire/ip.h"
#include "wire/roce_builder.h"

namespace weir {

class ApplicationPairs {
 public:
  explicit ApplicationPairs(NicEvents& events) : events_(events) {}

  // Its number; 0 when there is no place left.
  uint32_t create(const VerbsQueuePairParameters& parameters);
  // Null when an application has none of this number.
  const QueuePair* find(uint32_t qpn) const;
  // Counters of one whose transport runs in a program with a path of its own.
  QpCounters* counters(uint32_t qpn);
  // False when there is none of this number.
  bool destroy(uint32_t qpn);
  // Ends it, too, but returns its transport, which is the caller's. Null when there is none of this number.
  std::unique_ptr<VerbsTransport> give_back(uint32_t qpn);
  // See QueuePairTable.
  int lend_block() { return nic().pairs.lend_block(); }
  void take_block_back(int block) { nic().pairs.take_block_back(block); }
  // Its program has ended without a word: it has no owner any more, and its peer is told so. False when there is none of this
  // number, or it has no peer: it is to be destroyed.
  bool abandon(uint32_t qpn, std::optional<uint32_t> told = std::nullopt);
  // `path` and `priority` of packets to be sent count from the transition to rtr on, `rate_cap` from any to rtr or rts. After
  // reset nothing is left of the queue pair's congestion control. Throws NativeError INVALID_STATE, INVALID_QPN,
  // INVALID_ATTRIBUTE, INVALID_CONFIG.
  void modify(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path, uint8_t priority,
              Rate rate_cap);
  // Adds the path to a receiver of datagrams. AddressTable::kNone when there is no room for more.
  uint32_t create_address_handle(const RocePath& path) { return nic().pairs.address_handles().add(path); }
  // Sends that are posted to it and not sent yet fail. False when there is no such handle.
  bool destroy_address_handle(uint32_t handle) { return nic().pairs.address_handles().remove(handle); }
  // A queue pair of datagrams gets those to a group as well, until it leaves or is destroyed. `group` is a multicast address.
  // Throws NativeError INVALID_QPN, NO_RESOURCES.
  void attach_group(uint32_t qpn, const IpAddress& group);
  // False when it has not joined.
  bool detach_group(uint32_t qpn, const IpAddress& group) { return nic().groups.detach(group, qpn); }
  // Work for a queue pair that is no more is ignored: its application knows.
  void post_send(uint32_t qpn, const SendWork& work, uint32_t times = 1);
  void post_receive(uint32_t qpn, const ReceiveWork& work, uint32_t times = 1);
  // The program in which its transport runs has given it more to send.
  void attend_to(uint32_t qpn);

 private:
  void end(uint32_t index, uint32_t qpn);
  static constexpr uint32_t kNone = NicState::kNone;

  Flows& flows() const { return events_.sender().flows(); }
  NicState& nic() const { return flows().nic(); }

  NicEvents& events_;
};

}  // namespace weir
