#include "addon/inspect.h"

#include <algorithm>

namespace weir {
namespace {

Napi::Array numbers(Napi::Env env, const std::array<int64_t, kPriorities>& values) {
  Napi::Array out = Napi::Array::New(env, values.size());
  for (uint32_t i = 0; i < values.size(); ++i) out.Set(i, static_cast<double>(values[i]));
  return out;
}

const char* name_of(QueuePair::State state) {
  constexpr const char* kNames[] = {"idle", "waiting", "ready", "finished"};
  return kNames[static_cast<size_t>(state)];
}

const char* name_of(IncreaseStage stage) {
  constexpr const char* kNames[] = {"fast_recovery", "additive_increase", "hyper_increase"};
  return kNames[static_cast<size_t>(stage)];
}

// Of what the forwarding table holds, what a switch shows of it.
bool is_shown(const Forwarding::Entry& entry, Time now) { return entry.expires > now && !Forwarding::is_pin(entry); }

}  // namespace

size_t count_forwarding(SwitchDevice& device) {
  const SoftSwitch& s = device.soft_switch();
  return static_cast<size_t>(
      std::ranges::count_if(s.forwarding().entries(), [&](const Forwarding::Entry& entry) { return is_shown(entry, s.now()); }));
}

ForwardingCopy copy_forwarding(SwitchDevice& device) {
  const SoftSwitch& s = device.soft_switch();
  const Forwarding& table = s.forwarding();
  ForwardingCopy copy;
  for (const Forwarding::Entry& entry : table.entries()) {
    if (!is_shown(entry, s.now())) continue;
    const bool learned = Forwarding::is_learned(entry);
    std::vector<uint16_t> ports;
    if (learned) {
      ports.push_back(static_cast<uint16_t>(entry.first_port));
    } else {
      const std::span<const uint16_t> group = table.entry_ports(entry);
      ports.assign(group.begin(), group.end());
    }
    copy.entries.push_back({Forwarding::entry_mac(entry), Forwarding::entry_vlan(entry), std::move(ports), learned,
                            learned ? entry.expires - s.now() : kNever});
  }
  return copy;
}

SwitchCopy copy_switch(SwitchDevice& device) {
  SoftSwitch& s = device.soft_switch();
  const SharedBuffer& buffer = s.buffer();
  SwitchCopy copy{device.config().parameters.buffer.total,
                  buffer.shared_size(),
                  buffer.occupied(),
                  buffer.watermark(),
                  buffer.pfc_threshold(),
                  {}};
  for (uint16_t i = 0; i < s.port_count(); ++i) {
    SwitchCopy::Port port{device.ports()[i].up(), {}, {}, {}, s.paused_mask(i), s.pausing_mask(i)};
    for (int p = 0; p < kPriorities; ++p) {
      port.queue[static_cast<size_t>(p)] = buffer.egress_bytes(i, p);
      port.ingress[static_cast<size_t>(p)] = buffer.ingress_bytes(i, p);
      port.headroom[static_cast<size_t>(p)] = buffer.headroom_bytes(i, p);
    }
    copy.ports.push_back(port);
  }
  return copy;
}

QueuePairCopy copy_queue_pair(SoftNic& nic, uint32_t index, std::string name) {
  QueuePair& qp = nic.queue_pairs()[index];
  const Flow& flow = nic.flow_at(index, nic.now());
  const ControllerState state = flow.controller.visit([](const auto& c) { return c.state(); });
  return {std::move(name),
          qp.qpn,
          qp.parameters.remote_qpn,
          qp.state,
          flow.held,
          nic.allowed_rate(qp),
          flow.held ? state.target_rate : nic.line_rate(),
          state.alpha,
          name_of(state.stage),
          qp.verbs() != nullptr ? std::optional(qp.counters) : std::nullopt};
}

std::vector<QueuePairCopy> copy_queue_pairs(NicDevice& device) {
  SoftNic& nic = device.soft_nic();
  std::vector<QueuePairCopy> copy;
  for (uint32_t i = 0; i < nic.queue_pairs().size(); ++i) {
    if (nic.queue_pairs()[i].transport == nullptr) continue;
    copy.push_back(copy_queue_pair(nic, i, i < nic.streams() ? device.queue_pair_name(i) : ""));
  }
  return copy;
}

Napi::Value to_js(Napi::Env env, const ForwardingCopy& copy) {
  Napi::Array out = Napi::Array::New(env, copy.entries.size());
  for (uint32_t i = 0; i < copy.entries.size(); ++i) {
    const ForwardingCopy::Entry& entry = copy.entries[i];
    Napi::Object object = Napi::Object::New(env);
    object.Set("mac", static_cast<double>(entry.mac));
    object.Set("vlan", entry.vlan);
    Napi::Array ports = Napi::Array::New(env, entry.ports.size());
    for (uint32_t p = 0; p < entry.ports.size(); ++p) ports.Set(p, entry.ports[p]);
    object.Set("ports", ports);
    object.Set("learned", entry.learned);
    if (entry.learned) object.Set("expires_in", static_cast<double>(entry.expires_in));
    out.Set(i, object);
  }
  return out;
}

Napi::Value to_js(Napi::Env env, const SwitchCopy& copy) {
  Napi::Object buffer = Napi::Object::New(env);
  buffer.Set("total", static_cast<double>(copy.total));
  buffer.Set("shared", static_cast<double>(copy.shared));
  buffer.Set("occupied", static_cast<double>(copy.occupied));
  buffer.Set("watermark", static_cast<double>(copy.watermark));
  buffer.Set("pfc_threshold", static_cast<double>(copy.pfc_threshold));
  Napi::Array ports = Napi::Array::New(env, copy.ports.size());
  for (uint32_t i = 0; i < copy.ports.size(); ++i) {
    const SwitchCopy::Port& port = copy.ports[i];
    Napi::Object object = Napi::Object::New(env);
    object.Set("up", port.up);
    object.Set("queue_bytes", numbers(env, port.queue));
    object.Set("ingress_bytes", numbers(env, port.ingress));
    object.Set("headroom_bytes", numbers(env, port.headroom));
    object.Set("paused", port.paused);
    object.Set("pausing", port.pausing);
    ports.Set(i, object);
  }
  Napi::Object out = Napi::Object::New(env);
  out.Set("buffer", buffer);
  out.Set("ports", ports);
  return out;
}

Napi::Value to_js(Napi::Env env, const QueuePairCopy& qp) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("name", qp.name);
  object.Set("qpn", qp.qpn);
  object.Set("remote_qpn", qp.remote_qpn);
  object.Set("state", name_of(qp.state));
  object.Set("limited", qp.limited);
  object.Set("rate", static_cast<double>(qp.rate));
  object.Set("target_rate", static_cast<double>(qp.target_rate));
  object.Set("alpha", qp.alpha);
  object.Set("stage", qp.stage);
  if (qp.counters) {
    Napi::Object counters = Napi::Object::New(env);
    for (int i = 0; i < QpCounters::kCount; ++i) {
      counters.Set(QpCounters::kDescriptions[i].name, static_cast<double>(qp.counters->words()[i]));
    }
    object.Set("counters", counters);
  }
  return object;
}

Napi::Value to_js(Napi::Env env, const std::vector<QueuePairCopy>& copy) {
  Napi::Array out = Napi::Array::New(env, copy.size());
  for (uint32_t i = 0; i < copy.size(); ++i) out.Set(i, to_js(env, copy[i]));
  return out;
}

}  // namespace weir
