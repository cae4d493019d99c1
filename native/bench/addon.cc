// weir_bench.node: the C++ that benchmarks in TypeScript need. Not part of the product.
#include <napi.h>

#include <memory>
#include <vector>

#include "bench/bench_case.h"

namespace {

Napi::Value cases(const Napi::CallbackInfo& info) {
  const weir::bench::BenchList& list = weir::bench::bench_cases();
  Napi::Array names = Napi::Array::New(info.Env(), list.size());
  for (uint32_t i = 0; i < list.size(); ++i) names.Set(i, list[i].name);
  return names;
}

// Makes case number info[0]; returns the function that runs it as often as it is told.
Napi::Value make_case(const Napi::CallbackInfo& info) {
  const weir::bench::BenchDefinition& definition = weir::bench::bench_cases().at(info[0].ToNumber().Uint32Value());
  const std::shared_ptr<weir::bench::BenchCase> made = definition.make();
  return Napi::Function::New(
      info.Env(), [made](const Napi::CallbackInfo& call) { made->run(static_cast<uint64_t>(call[0].ToNumber().Int64Value())); });
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("cases", Napi::Function::New(env, cases, "cases"));
  exports.Set("makeCase", Napi::Function::New(env, make_case, "makeCase"));
  return exports;
}

}  // namespace

NODE_API_MODULE(weir_bench, initialize)
