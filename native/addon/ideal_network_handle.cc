#include "addon/ideal_network_handle.h"

#include <utility>

namespace weir {

Napi::Function IdealNetworkHandle::define(Napi::Env env) {
  return DefineClass(
      env, "IdealNetwork",
      {method<&IdealNetwork::run, "run(messages)">(), method<&IdealNetworkHandle::ended, "ended()">(),
       method<&IdealNetworkHandle::operations, "operations()">(), method<&IdealNetworkHandle::close, "close()">()});
}

IdealNetworkHandle::IdealNetworkHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  translated(info.Env(), [&] {
    IdealNetworkConfig config;
    from_js(info[0], config, {.name = "ideal network"});
    network_ = std::make_unique<IdealNetwork>(std::move(config.operations), config.parameters,
                                              std::vector<uint32_t>(std::move(config.machine_of_rank)), config.ways);
  });
}

IdealNetwork& IdealNetworkHandle::native() const {
  if (network_ == nullptr) throw Napi::Error::New(Env(), "the network is closed");
  return *network_;
}

}  // namespace weir
