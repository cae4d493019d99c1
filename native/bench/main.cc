// weir_bench: the cases by name, one per line. weir_bench CASE COUNT: does the operation COUNT times, and prints nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/bench_case.h"

int main(int count, char** arguments) {
  if (count == 1) {
    for (const weir::bench::BenchDefinition& one : weir::bench::bench_cases()) std::puts(one.name.c_str());
    return 0;
  }
  for (const weir::bench::BenchDefinition& one : weir::bench::bench_cases()) {
    if (count != 3 || one.name != arguments[1]) continue;
    one.make()->run(std::strtoull(arguments[2], nullptr, 10));
    return 0;
  }
  std::fputs("weir_bench [CASE COUNT]\n", stderr);
  return 2;
}
