#include <napi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "addon/capture_handle.h"
#include "addon/daemon_nic_handle.h"
#include "addon/description.h"
#include "addon/fair_network_handle.h"
#include "addon/ideal_network_handle.h"
#include "addon/kernel.h"
#include "addon/memory.h"
#include "addon/privileges.h"
#include "addon/program_socket.h"
#include "addon/shared_switch_handle.h"
#include "addon/simulation_handle.h"
#include "addon/worker_handle.h"
#include "engine/worker.h"

namespace {

// sd_notify(3): one datagram to the socket that the service manager named. Node.js has no unix datagram sockets.
bool notify(const std::string& path, const std::string& state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  if (path[0] == '@') address.sun_path[0] = 0;  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("Worker", weir::WorkerHandle::define(env));
  exports.Set("DaemonNic", weir::DaemonNicHandle::define(env));
  exports.Set("SharedSwitch", weir::SharedSwitchHandle::define(env));
  exports.Set("Capture", weir::CaptureHandle::define(env));
  exports.Set("Memory", weir::Memory::define(env));
  exports.Set("Simulation", weir::SimulationHandle::define(env));
  exports.Set("FairNetwork", weir::FairNetworkHandle::define(env));
  exports.Set("IdealNetwork", weir::IdealNetworkHandle::define(env));
  weir::add_function<&weir::simulation_manifest, "simulationManifest()">(exports);
  weir::add_function<&weir::simulation_footprint, "simulationFootprint(size)">(exports);
  weir::add_function<&weir::monotonic_now, "monotonicNow()">(exports);
  weir::define_kernel(exports);
  weir::define_program_socket(exports);
  weir::add_function<&weir::limit_capabilities, "limitCapabilities(keep)">(exports);
  weir::add_function<&notify, "notify(path, state)">(exports);
  exports.Set("description", Napi::Function::New(env, weir::description, "description"));
  return exports;
}

}  // namespace

NODE_API_MODULE(weir, initialize)
