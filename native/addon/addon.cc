#include <napi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "addon/capture_handle.h"
#include "addon/errors.h"
#include "addon/kernel.h"
#include "addon/memory.h"
#include "addon/privileges.h"
#include "addon/shared_switch_handle.h"
#include "addon/simulation_handle.h"
#include "addon/worker_handle.h"
#include "engine/worker.h"

namespace {

Napi::Value now(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(weir::monotonic_now()));
}

// sd_notify(3): one datagram to the socket that the service manager named. Node.js has no unix datagram sockets.
Napi::Value notify(const Napi::CallbackInfo& info) {
  const std::string path = info[0].ToString().Utf8Value();
  const std::string state = info[1].ToString().Utf8Value();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return Napi::Boolean::New(info.Env(), false);
  path.copy(address.sun_path, path.size());
  if (path[0] == '@') address.sun_path[0] = 0;  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Napi::Boolean::New(info.Env(), false);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
  return Napi::Boolean::New(info.Env(), sent == static_cast<ssize_t>(state.size()));
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("Worker", weir::WorkerHandle::define(env));
  exports.Set("SharedSwitch", weir::SharedSwitchHandle::define(env));
  exports.Set("Capture", weir::CaptureHandle::define(env));
  exports.Set("Memory", weir::Memory::define(env));
  exports.Set("Simulation", weir::SimulationHandle::define(env));
  exports.Set("simulationManifest", Napi::Function::New(env, weir::simulation_manifest, "simulationManifest"));
  exports.Set("monotonicNow", Napi::Function::New(env, now, "monotonicNow"));
  weir::define_kernel(env, exports);
  exports.Set("limitCapabilities", Napi::Function::New(env, weir::limit_capabilities, "limitCapabilities"));
  exports.Set("notify", Napi::Function::New(env, notify, "notify"));
  return exports;
}

}  // namespace

NODE_API_MODULE(weir, initialize)
