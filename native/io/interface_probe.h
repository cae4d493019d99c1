// What an interface is and can do, asked of the kernel: rtnetlink for what it is, the generic netlink family `netdev` (Linux 6.3)
// for XDP, ethtool ioctls for driver, queues, rings, offloads, flow control and speed. Reads only. What the kernel or driver does
// not tell stays unknown, which is not an error: an ordinary user may ask everything here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir {

struct InterfaceProbe {
  // IFLA_INFO_KIND, as `ip -details link` shows it: "veth", "tun", "bridge", "vlan", ... Empty: hardware, a machine's or a
  // virtual one's, or loopback.
  std::string kind;
  std::string driver;       // empty: unknown
  std::string bus;          // address on the bus: "0000:03:00.0"; empty: none
  std::string master;       // bridge, bond or VRF that it is a member of
  std::string master_kind;  // IFLA_INFO_SLAVE_KIND of that: "bridge", "bond"
  uint32_t index = 0;
  uint32_t flags = 0;  // IFF_UP, IFF_RUNNING, IFF_LOOPBACK ... (linux/if.h)
  uint32_t mtu = 0;
  uint64_t mac = 0;
  bool addressed = false;  // the host has IP addresses there, beyond IPv6's link-local ones
  // XDP programs attached, as IFLA_XDP_ATTACHED has it: 0 none, 1 native, 2 generic, 3 in hardware, 4 several.
  uint8_t xdp_attached = 0;
  std::optional<uint64_t> xdp_features;  // NETDEV_XDP_ACT_*: 1 native, 2 redirect, 8 zero-copy, 32 several buffers, ...
  std::optional<uint64_t> xdp_metadata;  // NETDEV_XDP_RX_METADATA_*: 1 stamps, 2 hash, 4 VLAN tags
  std::optional<uint32_t> receive_queues, transmit_queues;  // in use
  std::optional<uint32_t> receive_ring, transmit_ring;      // descriptors
  std::optional<bool> tso, gso, gro, lro, tx_checksum, rx_checksum, tx_vlan, rx_vlan;
  std::optional<bool> pause_autoneg, pause_receive, pause_transmit;
  std::optional<uint64_t> speed;  // bit/s
  // 0, or why an AF_XDP socket cannot be opened there, or an XDP program not loaded by this process: an errno.
  int xdp_sockets = 0;
  int xdp_programs = 0;
};

// `namespace_path` empty: the calling thread's own network namespace; another one is entered for the time of the call. Throws
// NativeError: ENODEV when there is no such interface, or why the namespace cannot be entered or the kernel not asked.
InterfaceProbe probe_interface(const std::string& name, const std::string& namespace_path);

}  // namespace weir
