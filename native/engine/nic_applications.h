// The queue pairs and address handles that applications have of a NIC: those of this process, which posts by rings, and those of
// programs, which run their transports themselves. Here is known whose each is, and what becomes of it when its program ends.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "endpoint/soft_nic.h"
#include "engine/nic_programs.h"
#include "engine/verbs_rings.h"
#include "engine/wire_port.h"

namespace weir {

class NicApplications {
 public:
  // `ports`: the NIC's, its link's the first; none where the NIC is simulated. Both are made later, and outlive it but for its
  // rings.
  NicApplications(SoftNic& nic, std::vector<WirePort>& ports) : nic_(nic), ports_(ports) {}

  VerbsRings& rings() { return rings_; }
  NicPrograms& programs() { return programs_; }

  // In a turn: takes in what was posted and submitted.
  void take(Time now);

  // All of these are for the worker's thread, between two turns. Throws as NicPrograms::open() does.
  ProgramOpening open_program() { return programs_.open(); }
  // Its queue pairs end with it; peers of those that it has not destroyed are told. False when there is none of this number.
  bool close_program(uint32_t number);
  // A path of its own, which ends with it. Throws NativeError.
  LentDescriptors lend_path(uint32_t number, const LentNicConfig& config);
  // The table of GIDs has changed, or the largest path MTU. False when there is nobody to hear it.
  bool tell_programs(bool gids, uint32_t path_mtu) { return programs_.tell(gids, path_mtu); }
  // 0: the queue pair is no program's.
  uint32_t owner(uint32_t qpn) const;
  // What its program's own NIC says of a queue pair; null: it is no such one.
  const LentPairNews* news(uint32_t qpn);
  // Both throw NativeError NO_RESOURCES.
  uint32_t create_queue_pair(const VerbsQueuePairParameters& parameters);
  uint32_t create_address_handle(const RocePath& path);
  bool destroy_queue_pair(uint32_t qpn);
  // Sends that are posted to it and not sent yet fail.
  bool destroy_address_handle(uint32_t handle);
  // Datagrams to a group, for a queue pair; see ApplicationPairs.
  bool attach_group(uint32_t qpn, const IpAddress& group);
  bool detach_group(uint32_t qpn, const IpAddress& group) { return nic_.applications().detach_group(qpn, group); }
  bool deregister_memory(uint32_t key) { return nic_.memory().remove(key); }

 private:
  WirePort* port() { return ports_.empty() ? nullptr : &ports_.front(); }
  void take_work();
  uint32_t create_for_program(VerbsQueuePairParameters parameters);
  uint32_t create_or_reclaim(const VerbsQueuePairParameters& parameters);
  void reclaim_pair();

  SoftNic& nic_;
  std::vector<WirePort>& ports_;
  VerbsRings rings_;
  NicPrograms programs_;
  std::map<uint32_t, uint32_t> owners_;  // programs of queue pairs that others drive
  struct Abandoned {
    uint32_t qpn;
    Time until;
  };
  std::deque<Abandoned> abandoned_;  // connections whose peers are still told that their program has ended, from the oldest
  WorkBudget budget_;                // budget of this process's queue pairs
};

}  // namespace weir
