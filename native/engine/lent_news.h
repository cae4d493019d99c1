// What a program's own NIC has counted, in the order in which the daemon and the program share it (LentNews::counted).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "endpoint/counters.h"
#include "engine/wire_port.h"

namespace weir {

struct LentCounters {
  NicCounters nic;
  std::array<NicPriorityCounters, kPriorities> priorities;
  WirePortCounters port;

  // Calls visit(words) for each set.
  void each(auto&& visit) {
    visit(nic);
    for (NicPriorityCounters& priority : priorities) visit(priority);
    visit(port);
  }
};
static_assert(NicCounters::kCount + kPriorities * NicPriorityCounters::kCount + WirePortCounters::kCount <= LentNews::kCounters);
static_assert(QpCounters::kCount <= LentPairNews::kCounters);

}  // namespace weir
