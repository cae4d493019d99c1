// What a program's own NIC tells the daemon's: what it has counted, which counts as the daemon's own, and what has become of its
// queue pairs. The program is trusted with the wire; its numbers are still only numbers.
#pragma once

#include <array>
#include <cstdint>

#include "endpoint/counters.h"
#include "endpoint/soft_nic.h"
#include "engine/wire_port.h"
#include "transport/program_rings.h"

namespace weir {

struct LentCounters {
  NicCounters nic;
  std::array<NicPriorityCounters, kPriorities> priorities;
  WirePortCounters port;

  // Calls visit(set) for each, in the order in which they are shared (LentNews::counted).
  void each(auto&& visit) {
    visit(nic);
    for (NicPriorityCounters& priority : priorities) visit(priority);
    visit(port);
  }
};
static_assert(NicCounters::kCount + kPriorities * NicPriorityCounters::kCount + WirePortCounters::kCount <= LentNews::kCounters);
static_assert(QpCounters::kCount <= LentPairNews::kCounters);

// The daemon's end.
class LentAccount {
 public:
  // Adds what was counted since the last call to the daemon's counters. Returns the number of frames among that.
  uint64_t take(const LentNews& news, SoftNic& nic, WirePort& port);
  // Counters of one of its queue pairs; false: it has told nothing of it.
  static bool read(const LentNews& news, uint32_t qpn, QpCounters& counters);

 private:
  LentCounters seen_;
};

// The program's end.
void tell(LentNews& news, SoftNic& nic, WirePort& port);

}  // namespace weir
