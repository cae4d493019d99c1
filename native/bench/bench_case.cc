#include "bench/bench_case.h"

namespace weir::bench {

const BenchList& bench_cases() {
  static const BenchList list = [] {
    BenchList all;
    define_wire_cases(all);
    define_congestion_cases(all);
    define_connection_cases(all);
    define_pacing_cases(all);
    define_switching_cases(all);
    define_soft_switch_cases(all);
    define_soft_nic_cases(all);
    return all;
  }();
  return list;
}

}  // namespace weir::bench
