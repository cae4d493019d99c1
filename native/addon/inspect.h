// What a running device looks like, as JavaScript objects. Called between two turns of the worker that owns it.
#pragma once

#include <napi.h>

#include <optional>

#include "engine/nic_device.h"
#include "engine/switch_device.h"

namespace weir {

// Copies taken between two turns; made into JavaScript objects afterwards, so that the poll loop does not wait for V8.
struct ForwardingCopy {
  struct Entry {
    uint64_t mac;
    uint16_t vlan;
    std::vector<uint16_t> ports;
    bool learned;
    Time expires_in;
  };
  std::vector<Entry> entries;
};

struct SwitchCopy {
  struct Port {
    bool up;
    std::array<int64_t, kPriorities> queue, ingress, headroom;
    uint8_t paused, pausing;
  };
  int64_t total, shared, occupied, watermark, pfc_threshold;
  std::vector<Port> ports;
};

struct QueuePairCopy {
  std::string name;
  uint32_t qpn, remote_qpn;
  QueuePair::State state;
  bool limited;
  Rate rate, target_rate;
  double alpha;
  const char* stage;
  std::optional<QpCounters> counters;  // of an application's; those of streams are in the manifest
};

size_t count_forwarding(SwitchDevice& device);
ForwardingCopy copy_forwarding(SwitchDevice& device);
SwitchCopy copy_switch(SwitchDevice& device);
QueuePairCopy copy_queue_pair(SoftNic& nic, uint32_t index, std::string name);
std::vector<QueuePairCopy> copy_queue_pairs(NicDevice& device);

Napi::Value to_js(Napi::Env env, const ForwardingCopy& copy);
Napi::Value to_js(Napi::Env env, const SwitchCopy& copy);
Napi::Value to_js(Napi::Env env, const QueuePairCopy& copy);
Napi::Value to_js(Napi::Env env, const std::vector<QueuePairCopy>& copy);

}  // namespace weir
