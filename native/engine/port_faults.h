// Faults at ports of a worker, which are made while it runs (link/faults.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/worker.h"
#include "link/faults.h"

namespace weir {

class PortFaults {
 public:
  explicit PortFaults(Worker& worker) : worker_(worker) {}

  // Returns its number, from 1. It begins at once. Throws NativeError INVALID_CONFIG, NO_PORT, NO_RESOURCES.
  uint32_t add(const Worker::PortPlace& place, const FaultParameters& parameters);
  // False: there is none of this number that goes on.
  bool end(uint32_t number);
  // Of all ports and directions, in the order in which they had faults first; those that are over, too, until Faults::kMost have
  // been added.
  std::vector<FaultState> states();

 private:
  ImpairmentPort& around(WirePort& wire, std::unique_ptr<ImpairmentPort>& fresh);

  Worker& worker_;
  std::vector<ImpairmentPort*> ports_;  // those that were wrapped for it
  std::vector<Faults*> faults_;
  uint32_t last_ = 0;
};

}  // namespace weir
