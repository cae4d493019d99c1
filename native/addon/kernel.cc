#include "addon/kernel.h"

#include <linux/bpf.h>

#include <future>
#include <optional>
#include <span>
#include <string>

#include "addon/wrap.h"
#include "io/bpf.h"
#include "io/kernel_socket.h"
#include "io/link_socket.h"
#include "io/live_transmit.h"
#include "io/network_namespace.h"
#include "io/peer_program.h"
#include "io/tcp_socket.h"
#include "io/umem.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

// Returns the descriptor that `open` returns. It runs on a thread of its own: it may enter another network namespace.
int descriptor(const auto& open) { return std::async(std::launch::async, open).get(); }

int socket_in(int domain, int type, int protocol, const std::optional<std::string>& path) {
  return descriptor([&] { return open_socket(domain, type, protocol, path.value_or("")); });
}

int route_watch(const std::optional<std::string>& path) {
  return descriptor([&] { return open_route_watch(path.value_or("")); });
}

int address_watch(const std::optional<std::string>& path) {
  return descriptor([&] { return open_address_watch(path.value_or("")); });
}

int hold_udp_port(const std::string& address, uint16_t port, const std::optional<std::string>& path) {
  return descriptor([&] { return open_udp_discard(address, port, path.value_or("")); });
}

int tcp_socket_in(const std::string& address, const std::string& control, uint8_t dscp, uint64_t pacing,
                  const std::string& path) {
  return descriptor([&] { return open_tcp_socket(address, control, dscp, pacing, path); });
}

// Loaded and forgotten: a program that passes every frame.
void try_xdp_program() {
  BpfCode code;
  code.set(BpfRegister::r0, XDP_PASS);
  code.leave();
  const Descriptor loaded(bpf_load_xdp(code.instructions(), 0, 0, "weir_probe"));
}

// Opened and closed: all that live frames take, but an interface.
void try_live_frames() {
  const PacketShape shape = Umem::shape(1, kMinimumFrame);
  const PacketMemory memory(shape, map_packet_bytes(shape));
  const LiveTransmit live(memory);
}

}  // namespace

void define_kernel(Napi::Object& exports) {
  add_function<&socket_in, "openSocket(domain, type, protocol, path)">(exports);
  add_function<&route_watch, "openRouteWatch(path)">(exports);
  add_function<&address_watch, "openAddressWatch(path)">(exports);
  add_function<&take_route_news, "takeRouteNews(socket)">(exports);
  add_function<&hold_udp_port, "holdUdpPort(address, port, path)">(exports);
  add_function<&tcp_socket_in, "openTcpSocket(address, control, dscp, pacing, path)">(exports);
  add_function<&ask_tcp_info, "tcpInfo(socket, words)">(exports);
  add_function<&open_link_socket, "openLinkSocket(interface, ethertype)">(exports);
  add_function<&read_link, "readLink(socket, data, words)">(exports);
  add_function<&ask_ethtool, "ethtool(socket, name, data)">(exports);
  add_function<&try_xdp_program, "tryXdpProgram()">(exports);
  add_function<&try_live_frames, "tryLiveFrames()">(exports);
  add_function<&peer_runs_xdp, "peerRunsXdp(socket, name)">(exports);
}

}  // namespace weir
