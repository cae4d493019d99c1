// weir_bench case: the micro benchmarks by name, one per line. weir_bench case NAME COUNT: does the operation COUNT times, and
// prints nothing. Other commands: bench/traffic.h.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/native_error.h"
#include "bench/bench_case.h"
#include "bench/traffic.h"

namespace {

int run_case(const weir::bench::Arguments& arguments) {
  for (const weir::bench::BenchDefinition& one : weir::bench::bench_cases()) {
    if (arguments.size() == 1) std::puts(one.name.c_str());
    if (arguments.size() != 3 || one.name != arguments[1]) continue;
    one.make()->run(std::strtoull(arguments[2].c_str(), nullptr, 10));
    return 0;
  }
  return arguments.size() == 1 ? 0 : 2;
}

}  // namespace

int main(int count, char** values) {
  const weir::bench::Arguments arguments(values + 1, values + count);
  try {
    if (!arguments.empty() && arguments[0] == "case") return run_case(arguments);
    return weir::bench::run_traffic(arguments);
  } catch (const weir::NativeError& error) {
    std::fprintf(stderr, "weir_bench: %s (%s)\n", error.what(), error.hint.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir_bench: %s\n", error.what());
  }
  return 2;
}
