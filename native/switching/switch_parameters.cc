#include "switching/switch_parameters.h"

#include "base/native_error.h"
#include "wire/qcn.h"

namespace weir {
namespace {

void check_port(const SwitchParameters& p, const SwitchParameters::Port& port) {
  constexpr const char* kWhose = "port of a switch";
  require(port.rate >= 0, kWhose, "the rate of its link must not be negative");
  require(port.mtu <= 1u << 20, kWhose, "the MTU must be at most 2^20");
  for (const Rate rate : port.storm_rates) require(rate >= 0, kWhose, "limits of storms must not be negative");
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    require(port.priority_rates[priority] >= 0 && port.queue_limits[priority] >= 0, kWhose,
            "limits of a queue must not be negative");
    if ((p.cn_priorities >> priority & 1) == 0 || port.cn_defence[priority] != CnDefence::edge) continue;
    const uint8_t alternate = port.cn_alternate_priority[priority];
    require(alternate < kPriorities && (p.cn_priorities >> alternate & 1) == 0, kWhose,
            "alternate priorities are 0 to 7, and no CNPVs");
  }
}

}  // namespace

void check(const SwitchParameters& p) {
  constexpr const char* kWhose = "switch";
  require(p.ports.size() < 1u << 15, kWhose, "it has fewer than 2^15 ports");
  for (const SwitchParameters::Port& port : p.ports) check_port(p, port);
  require(p.cn_priorities != 0xff, kWhose, "at most 7 priorities are CNPVs");
  require(p.cnm_priority < kPriorities, kWhose, "cnm_priority is 0 to 7");
  require(p.cp_min_header_octets <= kCnmMaxMsdu, kWhose, "cp_min_header_octets must be at most 64");
  require(p.ageing > 0, kWhose, "ageing must be above 0");
  require(p.fdb_capacity <= 1u << 24, kWhose, "fdb_capacity must be at most 2^24");
  check(p.buffer);
  check(p.red);
  check(p.qcn);
  check(p.scheduler);
  check(p.priority_map);
}

}  // namespace weir
