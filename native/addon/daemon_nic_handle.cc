#include "addon/daemon_nic_handle.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "addon/records.h"

namespace weir {
namespace {

// The daemon looks for the peer meanwhile.
class AddressSearch : public Napi::AsyncWorker {
 public:
  AddressSearch(Napi::Env env, std::shared_ptr<DaemonNic> nic, const ProgramWay& way)
      : Napi::AsyncWorker(env), promise_(Napi::Promise::Deferred::New(env)), nic_(std::move(nic)), way_(way) {}
  Napi::Promise promise() const { return promise_.Promise(); }

 private:
  void Execute() override {
    try {
      answer_ = nic_->create_address_handle(way_);
    } catch (const NativeError& refused) {
      refused_ = refused;
    }
  }
  void OnOK() override {
    if (refused_) return promise_.Reject(to_js(Env(), *refused_).Value());
    promise_.Resolve(to_js(Env(), answer_));
  }
  void OnError(const Napi::Error& error) override { promise_.Reject(error.Value()); }

  Napi::Promise::Deferred promise_;
  std::shared_ptr<DaemonNic> nic_;
  ProgramWay way_;
  ProgramAnswer answer_;
  std::optional<NativeError> refused_;
};

}  // namespace

Napi::Function DaemonNicHandle::define(Napi::Env env) {
  return DefineClass(env, "DaemonNic",
                     {method<&DaemonNicHandle::hello, "hello()">(), method<&DaemonNic::over, "over()">(),
                      method<&DaemonNicHandle::register_memory, "registerMemory(memory, access, domain)">(),
                      method<&DaemonNic::deregister_memory, "deregisterMemory(key)">(),
                      method<&DaemonNic::create_queue_pair, "createQueuePair(options)">(),
                      method<&DaemonNic::modify_queue_pair, "modifyQueuePair(qpn, change)">(),
                      method<&DaemonNic::destroy_queue_pair, "destroyQueuePair(qpn)">(),
                      method<&DaemonNicHandle::create_address_handle, "createAddressHandle(way)">(),
                      method<&DaemonNic::destroy_address_handle, "destroyAddressHandle(handle)">(),
                      method<&DaemonNicHandle::post, "post(words, count)">(),
                      method<&DaemonNicHandle::drain_completions, "drainCompletions(words)">(),
                      method<&DaemonNicHandle::progress, "progress(words)">(), method<&DaemonNic::rest, "rest()">(),
                      method<&DaemonNic::counted, "counters()">(), method<&DaemonNicHandle::release, "close()">()});
}

DaemonNicHandle::DaemonNicHandle(const Napi::CallbackInfo& info) : Wrap(info), env_(info.Env()) {
  doorbell_ = Napi::ThreadSafeFunction::New(env_, info[1].As<Napi::Function>(), "weir doorbell", 1, 1);
  try {
    translated(env_, [&] {
      const std::string socket = info[0].ToString();
      nic_ = std::make_shared<DaemonNic>(socket, [this] { doorbell_.NonBlockingCall(); });
    });
  } catch (...) {
    doorbell_.Release();
    throw;
  }
  napi_add_env_cleanup_hook(env_, on_exit, this);
}

DaemonNicHandle::~DaemonNicHandle() { release(); }

// Idempotent.
void DaemonNicHandle::release() {
  if (nic_ == nullptr) return;
  napi_remove_env_cleanup_hook(env_, on_exit, this);
  nic_->close();
  nic_.reset();
  doorbell_.Release();
}

DaemonNic& DaemonNicHandle::native() const {
  if (nic_ == nullptr) throw Napi::Error::New(env_, "the NIC is closed");
  return *nic_;
}

uint32_t DaemonNicHandle::register_memory(Memory& memory, uint8_t access, uint32_t domain) {
  return native().register_memory(memory.region(access, domain));
}

Napi::Value DaemonNicHandle::create_address_handle(const ProgramWay& way) {
  native();
  auto* search = new AddressSearch(env_, nic_, way);
  search->Queue();
  return search->promise();
}

size_t DaemonNicHandle::post(std::span<uint64_t> words, uint32_t count) {
  const size_t most = std::min<size_t>(count, commands_in(words));
  size_t taken = 0;
  native().post([&](WorkCommand& command) {
    if (taken == most) return false;
    read_command(words, taken++, command);
    return true;
  });
  return taken;
}

size_t DaemonNicHandle::drain_completions(std::span<uint64_t> words) {
  DaemonNic& nic = native();
  nic.rearm();
  return drain(nic.completions(), words);
}

double DaemonNicHandle::progress(std::span<uint64_t> words) {
  DaemonNic& nic = native();
  const bool moved = nic.help();
  nic.rearm();
  return weir::progress(moved, nic.completions(), words);
}

}  // namespace weir
