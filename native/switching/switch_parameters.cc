#include "switching/switch_parameters.h"

#include <algorithm>

namespace weir {

bool alternates_are_free(const SwitchParameters& p) {
  return std::ranges::all_of(p.ports, [&](const SwitchParameters::Port& port) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      if ((p.cn_priorities >> priority & 1) == 0 || port.cn_defence[priority] != CnDefence::edge) continue;
      const uint8_t alternate = port.cn_alternate_priority[priority];
      if (alternate >= kPriorities || (p.cn_priorities >> alternate & 1) != 0) return false;
    }
    return true;
  });
}

}  // namespace weir
