// Micro benchmarks of the core: an operation that runs many times per call, so that whoever calls (Node-API, valgrind) costs
// nothing. The same cases are in the addon weir_bench.node, which measures time, and in the program weir_bench, which is for
// tools that count instructions.
//
// A case does the same work in every call, whatever calls went before: its state neither grows nor runs down.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::bench {

class BenchCase {
 public:
  virtual ~BenchCase() = default;
  // Does the operation `count` times.
  virtual void run(uint64_t count) = 0;
};

struct BenchDefinition {
  std::string name;
  std::function<std::unique_ptr<BenchCase>()> make;
};

using BenchList = std::vector<BenchDefinition>;

// A case of class Case, made from `arguments` when it is wanted.
template <class Case, class... Arguments>
void define(BenchList& list, std::string name, Arguments... arguments) {
  list.push_back({std::move(name), [=] { return std::make_unique<Case>(arguments...); }});
}

// The compiler must have `value`, and may not know what memory holds afterwards.
template <class Value>
inline void keep(const Value& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

void define_wire_cases(BenchList& list);
void define_congestion_cases(BenchList& list);
void define_connection_cases(BenchList& list);
void define_pacing_cases(BenchList& list);
void define_switching_cases(BenchList& list);
void define_soft_switch_cases(BenchList& list);
void define_soft_nic_cases(BenchList& list);

// Returns all, in the order in which they are reported.
const BenchList& bench_cases();

}  // namespace weir::bench
