#include <doctest/doctest.h>

#include <set>
#include <string>

#include "bench/bench_case.h"

TEST_CASE("micro benchmarks: every case can be run again and again, and has a name of its own") {
  std::set<std::string> names;
  for (const weir::bench::BenchDefinition& definition : weir::bench::bench_cases()) {
    CAPTURE(definition.name);
    CHECK(names.insert(definition.name).second);
    const auto made = definition.make();
    // More frames than there are descriptors, more turns than there are stations.
    for (const uint64_t count : {1, 0, 5'000, 33, 5'000}) made->run(count);
  }
  CHECK(names.size() > 20);
}
