#include "addon/simulation_handle.h"

#include <algorithm>
#include <cstring>

#include "addon/errors.h"
#include "addon/fields.h"
#include "addon/histograms.h"
#include "addon/inspect.h"
#include "addon/records.h"
#include "addon/simulation_decode.h"
#include "simulation/counters.h"

namespace weir {
namespace {

constexpr size_t kFinishedWords = 5;

template <class Counters>
Napi::Array columns(Napi::Env env) {
  Napi::Array out = Napi::Array::New(env, Counters::kCount);
  for (uint32_t i = 0; i < Counters::kCount; ++i) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", Counters::kDescriptions[i].name);
    entry.Set("unit", Counters::kDescriptions[i].unit);
    entry.Set("help", Counters::kDescriptions[i].help);
    entry.Set("labels", Napi::Object::New(env));
    out.Set(i, entry);
  }
  return out;
}

// Rows of counters, one after another.
class Table {
 public:
  template <class Counters>
  void add(const Counters& counters) {
    for (int i = 0; i < Counters::kCount; ++i) words_.push_back(static_cast<double>(counters.words()[i]));
  }
  Napi::Value to_js(Napi::Env env) const {
    Napi::Float64Array out = Napi::Float64Array::New(env, words_.size());
    if (!words_.empty()) std::memcpy(out.Data(), words_.data(), words_.size() * sizeof(double));
    return out;
  }

 private:
  std::vector<double> words_;
};

// Moves what fits from the front of `list` to `target`; returns how many.
template <class T, class Write>
uint32_t drain(std::vector<T>& list, const Napi::Value& value, size_t words, Write write) {
  Napi::Float64Array target = float64_array(value);
  const size_t count = std::min(list.size(), target.ElementLength() / words);
  for (size_t i = 0; i < count; ++i) write(list[i], target.Data() + i * words);
  list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(count));
  return static_cast<uint32_t>(count);
}

}  // namespace

Napi::Function SimulationHandle::define(Napi::Env env) {
  return DefineClass(env, "Simulation",
                     {
                         InstanceMethod<&SimulationHandle::run>("run"),
                         InstanceMethod<&SimulationHandle::progress>("progress"),
                         InstanceMethod<&SimulationHandle::counters>("counters"),
                         InstanceMethod<&SimulationHandle::drain_records>("drainRecords"),
                         InstanceMethod<&SimulationHandle::drain_finished>("drainFinished"),
                         InstanceMethod<&SimulationHandle::drain_trace>("drainTrace"),
                         InstanceMethod<&SimulationHandle::under_way>("underWay"),
                         InstanceMethod<&SimulationHandle::queue_distributions>("queueDistributions"),
                         InstanceMethod<&SimulationHandle::sender_state>("senderState"),
                         InstanceMethod<&SimulationHandle::reconfigure_switch>("reconfigureSwitch"),
                         InstanceMethod<&SimulationHandle::close>("close"),
                     });
}

SimulationHandle::SimulationHandle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SimulationHandle>(info) {
  if (!info[0].IsObject()) throw Napi::TypeError::New(info.Env(), "new Simulation(config): config must be an object");
  translated(info.Env(), [&] { simulation_ = std::make_unique<Simulation>(decode_simulation(info[0].As<Napi::Object>())); });
}

Simulation& SimulationHandle::simulation(const Napi::CallbackInfo& info) const {
  if (simulation_ == nullptr) throw Napi::Error::New(info.Env(), "the simulation is closed");
  return *simulation_;
}

Napi::Value SimulationHandle::run(const Napi::CallbackInfo& info) {
  Simulation& s = simulation(info);
  return translated(info.Env(), [&]() -> Napi::Value {
    const auto until = number_from<Time>(info[0], "run(until)");
    const auto events = number_from<uint64_t>(info[1], "run(events)");
    return Napi::Boolean::New(info.Env(), s.run(until, events));
  });
}

Napi::Value SimulationHandle::progress(const Napi::CallbackInfo& info) {
  Simulation& s = simulation(info);
  Napi::Object out = Napi::Object::New(info.Env());
  const PacketPool& pool = s.fabric().pool();
  out.Set("now", static_cast<double>(s.fabric().now()));
  out.Set("events", static_cast<double>(s.fabric().events()));
  out.Set("hops", static_cast<double>(s.fabric().hops()));
  out.Set("flows_started", static_cast<double>(s.flows_started()));
  out.Set("flows_ended", static_cast<double>(s.flows_ended()));
  out.Set("packets", pool.size() - pool.available());
  out.Set("packets_made", pool.made());
  return out;
}

Napi::Value SimulationHandle::counters(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Simulation& s = simulation(info);
  s.settle();
  Table switch_ports, switch_priorities, nics, nic_priorities, transports, senders, receivers, links;
  Fabric& fabric = s.fabric();
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    SoftSwitch& device = fabric.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      switch_ports.add(device.counters(port));
      for (int p = 0; p < kPriorities; ++p) switch_priorities.add(device.counters(port, p));
    }
  }
  for (size_t i = 0; i < fabric.nic_count(); ++i) {
    SoftNic& device = fabric.nic_at(i);
    nics.add(device.counters());
    for (int p = 0; p < kPriorities; ++p) nic_priorities.add(device.counters(p));
    transports.add(device.transport_counters());
  }
  for (uint32_t flow = 0; flow < s.config().flows.size(); ++flow) {
    senders.add(s.counters(s.sender(flow)));
    receivers.add(s.counters(s.receiver(flow)));
  }
  for (size_t link = 0; link < fabric.link_count(); ++link) {
    for (size_t side = 0; side < 2; ++side) links.add(fabric.link_counters(link, side));
  }
  Napi::Object out = Napi::Object::New(env);
  out.Set("switch_ports", switch_ports.to_js(env));
  out.Set("switch_priorities", switch_priorities.to_js(env));
  out.Set("nics", nics.to_js(env));
  out.Set("nic_priorities", nic_priorities.to_js(env));
  out.Set("transports", transports.to_js(env));
  out.Set("senders", senders.to_js(env));
  out.Set("receivers", receivers.to_js(env));
  out.Set("links", links.to_js(env));
  return out;
}

Napi::Value SimulationHandle::drain_records(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), drain(simulation(info).records(), info[0], kRecordWords, write_record));
}

Napi::Value SimulationHandle::drain_finished(const Napi::CallbackInfo& info) {
  const auto write = [](const Simulation::Finished& message, double* words) {
    words[0] = message.flow;
    words[1] = static_cast<double>(message.number);
    words[2] = static_cast<double>(message.bytes);
    words[3] = static_cast<double>(message.start);
    words[4] = static_cast<double>(message.end);
  };
  return Napi::Number::New(info.Env(), drain(simulation(info).finished(), info[0], kFinishedWords, write));
}

Napi::Value SimulationHandle::drain_trace(const Napi::CallbackInfo& info) {
  const std::vector<uint8_t> trace = simulation(info).fabric().take_trace();
  Napi::Uint8Array out = Napi::Uint8Array::New(info.Env(), trace.size());
  if (!trace.empty()) std::memcpy(out.Data(), trace.data(), trace.size());
  return out;
}

Napi::Value SimulationHandle::under_way(const Napi::CallbackInfo& info) {
  const std::vector<uint32_t> packets = simulation(info).under_way();
  Napi::Uint32Array out = Napi::Uint32Array::New(info.Env(), packets.size());
  std::ranges::copy(packets, out.Data());
  return out;
}

Napi::Value SimulationHandle::queue_distributions(const Napi::CallbackInfo& info) {
  Napi::Array out = Napi::Array::New(info.Env());
  for (const auto& [queue, lengths] : simulation(info).queue_lengths()) {
    Napi::Object one = to_js(info.Env(), lengths);
    one.Set("switch", queue.device);
    one.Set("port", queue.port);
    one.Set("priority", queue.priority);
    out.Set(out.Length(), one);
  }
  return out;
}

Napi::Value SimulationHandle::sender_state(const Napi::CallbackInfo& info) {
  Simulation& s = simulation(info);
  const uint32_t flow = info[0].ToNumber().Uint32Value();
  if (flow >= s.config().flows.size()) throw Napi::RangeError::New(info.Env(), "there is no such flow");
  const Simulation::Place place = s.sender(flow);
  return to_js(info.Env(), copy_queue_pair(s.fabric().nic_at(place.nic), place.index, ""));
}

Napi::Value SimulationHandle::reconfigure_switch(const Napi::CallbackInfo& info) {
  Fabric& fabric = simulation(info).fabric();
  const uint32_t index = info[0].ToNumber().Uint32Value();
  if (index >= fabric.switch_count()) throw Napi::RangeError::New(info.Env(), "there is no such switch");
  if (!info[1].IsObject()) throw Napi::TypeError::New(info.Env(), "reconfigureSwitch(index, config): config must be an object");
  return translated(info.Env(), [&] {
    fabric.reconfigure_switch(index, decode_simulated_switch(info[1].As<Napi::Object>()));
    return info.Env().Undefined();
  });
}

Napi::Value SimulationHandle::close(const Napi::CallbackInfo& info) {
  simulation_.reset();
  return info.Env().Undefined();
}

Napi::Value simulation_manifest(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object out = Napi::Object::New(env);
  out.Set("switch_port", columns<SwitchPortCounters>(env));
  out.Set("switch_priority", columns<SwitchPriorityCounters>(env));
  out.Set("nic", columns<NicCounters>(env));
  out.Set("nic_priority", columns<NicPriorityCounters>(env));
  out.Set("transport", columns<TransportCounters>(env));
  out.Set("queue_pair", columns<QpCounters>(env));
  out.Set("link", columns<LinkCounters>(env));
  return out;
}

}  // namespace weir
