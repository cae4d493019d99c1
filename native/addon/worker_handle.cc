#include "addon/worker_handle.h"

#include <vector>

#include "addon/capture_handle.h"
#include "addon/decode.h"
#include "addon/errors.h"
#include "addon/fields.h"
#include "addon/histograms.h"
#include "addon/inspect.h"
#include "addon/records.h"
#include "engine/open_port.h"

namespace weir {
namespace {

// The switch or NIC that the first argument names by its position among its kind.
template <class Devices>
auto& device_at(const Napi::CallbackInfo& info, Worker& worker, Devices& devices) {
  const uint32_t index = info[0].IsNumber() ? info[0].As<Napi::Number>().Uint32Value() : UINT32_MAX;
  if (!worker.ready() || index >= devices.size()) throw Napi::RangeError::New(info.Env(), "no such device, or not running yet");
  return *devices[index];
}

}  // namespace

Napi::Function WorkerHandle::define(Napi::Env env) {
  return DefineClass(env, "Worker",
                     {InstanceMethod("open", &WorkerHandle::open),
                      InstanceMethod("begin", &WorkerHandle::begin),
                      InstanceMethod("stopTraffic", &WorkerHandle::stop_traffic),
                      InstanceMethod("stop", &WorkerHandle::stop),
                      InstanceMethod("close", &WorkerHandle::close),
                      InstanceMethod("manifest", &WorkerHandle::manifest),
                      InstanceMethod("readCounters", &WorkerHandle::read_counters),
                      InstanceMethod("drainRecords", &WorkerHandle::drain_records),
                      InstanceMethod("drainPunted", &WorkerHandle::drain_punted),
                      InstanceMethod("inject", &WorkerHandle::inject),
                      InstanceMethod("reconfigure", &WorkerHandle::reconfigure),
                      InstanceMethod("forwardingTable", &WorkerHandle::forwarding_table),
                      InstanceMethod("forwardingEntries", &WorkerHandle::forwarding_entries),
                      InstanceMethod("switchState", &WorkerHandle::switch_state),
                      InstanceMethod("queuePairs", &WorkerHandle::queue_pairs),
                      InstanceMethod("attach", &WorkerHandle::attach),
                      InstanceMethod("detach", &WorkerHandle::detach),
                      InstanceMethod("histograms", &WorkerHandle::histograms),
                      InstanceMethod("registerMemory", &WorkerHandle::register_memory),
                      InstanceMethod("deregisterMemory", &WorkerHandle::deregister_memory),
                      InstanceMethod("createQueuePair", &WorkerHandle::create_queue_pair),
                      InstanceMethod("destroyQueuePair", &WorkerHandle::destroy_queue_pair),
                      InstanceMethod("modifyQueuePair", &WorkerHandle::modify_queue_pair),
                      InstanceMethod("createAddressHandle", &WorkerHandle::create_address_handle),
                      InstanceMethod("destroyAddressHandle", &WorkerHandle::destroy_address_handle),
                      InstanceMethod("post", &WorkerHandle::post),
                      InstanceMethod("drainCompletions", &WorkerHandle::drain_completions),
                      InstanceMethod("worstGap", &WorkerHandle::worst_gap),
                      InstanceMethod("recentGap", &WorkerHandle::recent_gap),
                      InstanceMethod("outcome", &WorkerHandle::outcome)});
}

WorkerHandle::WorkerHandle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<WorkerHandle>(info) {
  const Napi::Env env = info.Env();
  env_ = env;
  if (!info[0].IsObject()) throw Napi::TypeError::New(env, "Worker(config, onDoorbell?): config must be an object");
  translated(env, [&] { worker_ = std::make_unique<Worker>(decode_worker(info[0].As<Napi::Object>()), open_packet_port); });
  if (info[1].IsFunction()) {
    doorbell_ = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "weir doorbell", 1, 1);
    rings_ = true;
    worker_->set_doorbell([this] { doorbell_.NonBlockingCall(); });
  }
  napi_add_env_cleanup_hook(env, on_exit, this);
  tag<WorkerHandle>(info);
}

WorkerHandle::~WorkerHandle() { release(); }

void WorkerHandle::release() {
  if (worker_ != nullptr) napi_remove_env_cleanup_hook(env_, on_exit, this);
  worker_.reset();
  if (rings_) doorbell_.Release();
  rings_ = false;
}

Worker& WorkerHandle::worker(const Napi::CallbackInfo& info) const {
  if (worker_ == nullptr) throw Napi::Error::New(info.Env(), "the worker is closed");
  return *worker_;
}

Napi::Value WorkerHandle::open(const Napi::CallbackInfo& info) {
  translated(info.Env(), [&] { worker(info).open(); });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::begin(const Napi::CallbackInfo& info) {
  translated(info.Env(), [&] { worker(info).begin(number_from<Time>(info[0], "begin(at)")); });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::stop_traffic(const Napi::CallbackInfo& info) {
  translated(info.Env(), [&] { worker(info).stop_traffic(); });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::stop(const Napi::CallbackInfo& info) {
  worker(info).stop();
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::close(const Napi::CallbackInfo& info) {
  release();
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::manifest(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!worker(info).ready()) return env.Undefined();
  const CounterBlock& counters = worker(info).counters();
  Napi::Array out = Napi::Array::New(env, counters.size());
  uint32_t index = 0;
  for (const CounterGroup& group : counters.manifest()) {
    Napi::Object labels = Napi::Object::New(env);
    for (const auto& [key, value] : group.labels) labels.Set(key, value);
    for (const CounterDescription& description : group.descriptions) {
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("name", description.name);
      entry.Set("unit", description.unit);
      entry.Set("help", description.help);
      entry.Set("labels", labels);
      out.Set(index++, entry);
    }
  }
  return out;
}

Napi::Value WorkerHandle::read_counters(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  Napi::Float64Array target = float64_array(info[0]);
  if (!w.ready()) return Napi::Number::New(info.Env(), 0);
  const size_t count = std::min(target.ElementLength(), w.counters().size());
  double* values = target.Data();
  const auto put = [values](size_t i, uint64_t word) { values[i] = static_cast<double>(word); };
  return Napi::Number::New(info.Env(), static_cast<double>(w.counters().read(monotonic_now(), put, count)));
}

Napi::Value WorkerHandle::drain_records(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  Napi::Float64Array target = float64_array(info[0]);
  Record record;
  size_t at = 0;
  uint32_t count = 0;
  for (; at + kRecordWords <= target.ElementLength() && w.records().pop(record); at += kRecordWords, ++count) {
    write_record(record, target.Data() + at);
  }
  return Napi::Number::New(info.Env(), count);
}

Napi::Value WorkerHandle::drain_punted(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Array out = Napi::Array::New(env);
  worker(info).rearm_doorbell();
  const auto frame = std::make_unique<PuntedFrame>();
  while (out.Length() < 64 && worker(info).punted().pop(*frame)) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("device", Napi::Number::New(env, frame->device));
    entry.Set("port", Napi::Number::New(env, frame->port));
    entry.Set("at", Napi::Number::New(env, static_cast<double>(frame->at)));
    entry.Set("bytes", Napi::Buffer<uint8_t>::Copy(env, frame->bytes, frame->length));
    out.Set(out.Length(), entry);
  }
  return out;
}

Napi::Value WorkerHandle::inject(const Napi::CallbackInfo& info) {
  if (!info[2].IsTypedArray()) throw Napi::TypeError::New(info.Env(), "inject(device, port, bytes): bytes must be a Uint8Array");
  const Napi::Uint8Array bytes = info[2].As<Napi::Uint8Array>();
  return translated(info.Env(), [&]() -> Napi::Value {
    const auto device = number_from<uint16_t>(info[0], "inject(device)");
    const auto port = number_from<uint16_t>(info[1], "inject(port)");
    return Napi::Boolean::New(info.Env(), worker(info).inject(device, port, std::span(bytes.Data(), bytes.ByteLength())));
  });
}

Napi::Value WorkerHandle::reconfigure(const Napi::CallbackInfo& info) {
  if (!info[0].IsObject()) throw Napi::TypeError::New(info.Env(), "reconfigure(config): config must be an object");
  std::vector<Worker*> others;
  if (info[1].IsArray()) {
    const Napi::Array list = info[1].As<Napi::Array>();
    for (uint32_t i = 0; i < list.Length(); ++i) others.push_back(&unwrap<WorkerHandle>(list.Get(i)).worker(info));
  }
  translated(info.Env(), [&] { worker(info).reconfigure(decode_worker(info[0].As<Napi::Object>()), others); });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::forwarding_table(const Napi::CallbackInfo& info) {
  SwitchDevice& device = device_at(info, worker(info), worker(info).switches());
  ForwardingCopy copy;
  worker(info).look([&] { copy = copy_forwarding(device); });
  return to_js(info.Env(), copy);
}

Napi::Value WorkerHandle::forwarding_entries(const Napi::CallbackInfo& info) {
  SwitchDevice& device = device_at(info, worker(info), worker(info).switches());
  size_t entries = 0;
  worker(info).between_turns([&] { entries = count_forwarding(device); });
  return Napi::Number::New(info.Env(), static_cast<double>(entries));
}

Napi::Value WorkerHandle::switch_state(const Napi::CallbackInfo& info) {
  SwitchDevice& device = device_at(info, worker(info), worker(info).switches());
  SwitchCopy copy;
  worker(info).look([&] { copy = copy_switch(device); });
  return to_js(info.Env(), copy);
}

Napi::Value WorkerHandle::queue_pairs(const Napi::CallbackInfo& info) {
  NicDevice& device = device_at(info, worker(info), worker(info).nics());
  std::vector<QueuePairCopy> copy;
  worker(info).look([&] { copy = copy_queue_pairs(device); });
  return to_js(info.Env(), copy);
}

Napi::Value WorkerHandle::attach(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  const std::shared_ptr<Capture> capture = CaptureHandle::give(info[0]);
  if (!info[1].IsArray()) throw Napi::TypeError::New(info.Env(), "attach(capture, places): places must be an array");
  const Napi::Array list = info[1].As<Napi::Array>();
  std::vector<Worker::PortPlace> places;
  translated(info.Env(), [&] {
    for (uint32_t i = 0; i < list.Length(); ++i) {
      const Fields place(list.Get(i), "places");
      place.number("tap", places.emplace_back().tap);
      place.number("device", places.back().device);
      place.number("port", places.back().port);
    }
    w.attach(capture, places);
  });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::detach(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  w.detach(*CaptureHandle::of(info[0]));
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::histograms(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  return to_js(info.Env(), w.ready() ? copy_histograms(w) : std::vector<HistogramCopy>{});
}

Napi::Value WorkerHandle::worst_gap(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(worker(info).worst_gap()));
}

Napi::Value WorkerHandle::recent_gap(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(worker(info).recent_gap()));
}

Napi::Value WorkerHandle::outcome(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Worker& w = worker(info);
  w.stop();
  const Worker::Fidelity& fidelity = w.fidelity();
  Napi::Object out = Napi::Object::New(env);
  out.Set("loop_gap", to_js(env, fidelity.loop_gap));
  out.Set("timer_lateness", to_js(env, fidelity.timer_lateness));
  out.Set("host_drops", static_cast<double>(fidelity.host_drops));
  out.Set("record_overflow", static_cast<double>(fidelity.record_overflow));
  out.Set("inject_refused", static_cast<double>(fidelity.inject_refused));
  out.Set("punt_refused", static_cast<double>(fidelity.punt_refused));
  if (w.failed()) out.Set("failure", w.failure());
  const auto texts = [env](const std::vector<std::string>& list) {
    Napi::Array array = Napi::Array::New(env, list.size());
    for (size_t i = 0; i < list.size(); ++i) array.Set(static_cast<uint32_t>(i), list[i]);
    return array;
  };
  out.Set("tuning", texts(fidelity.tuning));
  Napi::Array queues = Napi::Array::New(env);
  for (const auto& device : w.switches()) {
    SoftSwitch& soft_switch = device->soft_switch();
    for (uint16_t port = 0; port < soft_switch.port_count(); ++port) {
      for (int p = 0; p < kPriorities; ++p) {
        if (soft_switch.counters(port, p).queue_packets == 0) continue;
        Napi::Object queue = to_js(env, soft_switch.queue_distribution(port, p));
        queue.Set("switch", device->config().name);
        queue.Set("port", device->config().ports[port].name);
        queue.Set("priority", p);
        queues.Set(queues.Length(), queue);
      }
    }
  }
  out.Set("queues", queues);
  return out;
}

}  // namespace weir
