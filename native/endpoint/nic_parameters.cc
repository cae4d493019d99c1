#include "endpoint/nic_parameters.h"

#include "base/native_error.h"

namespace weir {

void check(const NicParameters& p) {
  constexpr const char* kWhose = "NIC";
  require(p.rate > 0, kWhose, "the rate of its link must be above 0");
  require(p.initial_rate >= 0, kWhose, "initial_rate must not be negative");
  require(p.cnp_interval >= 0, kWhose, "cnp_interval must not be negative");
  require(p.cnp_dscp < 64, kWhose, "cnp_dscp is 0 to 63");
  require(p.cnp_priority < kPriorities, kWhose, "cnp_priority is 0 to 7");
  require(p.verbs_queue_pairs <= 1u << 15, kWhose, "verbs_queue_pairs must be at most 2^15");
  require(p.memory_regions < (1u << 24) - 1, kWhose, "memory_regions must be below 2^24 - 1");
  check(p.congestion);
  check(p.grouping.token_bucket);
  check(p.scheduler);
  check(p.priority_map);
  check(p.receive_buffer);
}

}  // namespace weir
