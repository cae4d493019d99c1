#include "addon/probe.h"

#include <net/if.h>

#include <cstring>
#include <future>
#include <initializer_list>
#include <optional>
#include <string>

#include "addon/errors.h"
#include "io/interface_probe.h"

namespace weir {
namespace {

// Unknown stays undefined.
template <class T>
void set_known(Napi::Object& object, const char* name, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, bool>) {
    object.Set(name, Napi::Boolean::New(object.Env(), *value));
  } else {
    object.Set(name, Napi::Number::New(object.Env(), static_cast<double>(*value)));
  }
}

// The names of the bits that are set, by the kernel's Documentation/netlink/specs/netdev.yaml.
void set_words(Napi::Object& object, const char* name, const std::optional<uint64_t>& mask,
               std::initializer_list<const char*> words) {
  if (!mask) return;
  Napi::Array list = Napi::Array::New(object.Env());
  uint64_t bit = 1;
  for (const char* word : words) {
    if ((*mask & bit) != 0) list.Set(list.Length(), word);
    bit <<= 1;
  }
  object.Set(name, list);
}

std::string error_name(int number) {
  if (number == 0) return "";
  const char* name = ::strerrorname_np(number);
  return name != nullptr ? name : std::to_string(number);
}

Napi::Object to_js(Napi::Env env, const InterfaceProbe& probe) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("kind", probe.kind);
  out.Set("driver", probe.driver);
  out.Set("bus", probe.bus);
  out.Set("master", probe.master);
  out.Set("master_kind", probe.master_kind);
  out.Set("loopback", (probe.flags & IFF_LOOPBACK) != 0);
  out.Set("up", (probe.flags & IFF_UP) != 0);
  out.Set("running", (probe.flags & IFF_RUNNING) != 0);
  out.Set("mtu", Napi::Number::New(env, probe.mtu));
  out.Set("mac", Napi::Number::New(env, static_cast<double>(probe.mac)));
  out.Set("addressed", probe.addressed);
  set_known(out, "speed", probe.speed);
  set_known(out, "receive_queues", probe.receive_queues);
  set_known(out, "transmit_queues", probe.transmit_queues);
  set_known(out, "receive_ring", probe.receive_ring);
  set_known(out, "transmit_ring", probe.transmit_ring);
  Napi::Object offloads = Napi::Object::New(env);
  set_known(offloads, "tso", probe.tso);
  set_known(offloads, "gso", probe.gso);
  set_known(offloads, "gro", probe.gro);
  set_known(offloads, "lro", probe.lro);
  set_known(offloads, "tx", probe.tx_checksum);
  set_known(offloads, "rx", probe.rx_checksum);
  set_known(offloads, "txvlan", probe.tx_vlan);
  set_known(offloads, "rxvlan", probe.rx_vlan);
  out.Set("offloads", offloads);
  Napi::Object pause = Napi::Object::New(env);
  set_known(pause, "autoneg", probe.pause_autoneg);
  set_known(pause, "rx", probe.pause_receive);
  set_known(pause, "tx", probe.pause_transmit);
  out.Set("pause", pause);
  constexpr const char* kModes[] = {"none", "native", "generic", "hardware", "several"};
  out.Set("xdp_attached", kModes[probe.xdp_attached < std::size(kModes) ? probe.xdp_attached : std::size(kModes) - 1]);
  set_words(out, "xdp_features", probe.xdp_features,
            {"basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"});
  set_words(out, "xdp_metadata", probe.xdp_metadata, {"timestamp", "hash", "vlan-tag"});
  out.Set("xdp_sockets", error_name(probe.xdp_sockets));
  out.Set("xdp_programs", error_name(probe.xdp_programs));
  return out;
}

}  // namespace

// On a thread of its own: it may enter another network namespace.
Napi::Value probe_interface_js(const Napi::CallbackInfo& info) {
  const std::string name = info[0].ToString().Utf8Value();
  const std::string path = info[1].IsString() ? info[1].As<Napi::String>().Utf8Value() : "";
  return translated(info.Env(), [&]() -> Napi::Value {
    return to_js(info.Env(), std::async(std::launch::async, [&] { return probe_interface(name, path); }).get());
  });
}

}  // namespace weir
