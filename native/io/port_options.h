// One interface, and the ways in which frames come in and go out by it. A backend ignores options that it has no use for.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weir {

// Place of the program: in the driver, or in the kernel's stack above it.
enum class XdpMode : uint8_t { native, generic };
constexpr auto words_of(XdpMode) { return std::array{"native", "generic"}; }

struct PortOptions {
  std::string interface;
  int namespace_fd = -1;            // network namespace to look in; -1: the calling thread's
  std::string namespace_path = {};  // the same by its path, which may come to name another one; empty: namespace_fd counts
  std::string owner = {};           // device for which the interface is claimed (io/interface_claim.h); empty: it is not
  bool receive = true;              // false: for transmitting only
  uint32_t slot_bytes = 2048;       // the longest frame that fits, tag included; longer ones are dropped and counted
  uint32_t receive_slots = 1024;    // a packet socket's at least: its ring is rounded up to whole memory blocks
  bool promiscuous = false;
  // Only RoCEv2 (UDP port 4791), ICMP "destination unreachable" about RoCEv2, ARP, IPv6 neighbour discovery, MAC control frames
  // and congestion notification messages by their ethertype (wire/qcn.h) arrive, with or without a CN-TAG; the kernel drops the
  // rest before it is copied. Meant for a NIC on an interface that the host's own stack uses too. For AF_XDP see
  // XdpProgramOptions: all else goes on to that stack.
  bool roce_only = false;
  // With roce_only: pings for this IPv4 address (host order), and with AF_XDP its ARP, arrive, too; 0: none.
  uint32_t arp_address = 0;
  bool echo_ipv6 = false;  // with roce_only, on a packet socket: IPv6 pings arrive, too
  // On packet sockets: only frames arrive whose source address begins with these two bytes; the kernel drops the rest before it
  // is copied. 0: all. Not with roce_only. Meant for an interface that the host's own stack, or its network, uses too.
  uint16_t source_prefix = 0;
  bool lldp = false;  // with roce_only: LLDPDUs (IEEE 802.1AB) arrive, too, and with AF_XDP not at the host's own stack any more
  bool cnm_datagrams = false;  // the same for congestion notification messages in UDP
  // On packet sockets: frames carry an Offload both ways (PACKET_VNET_HDR), and one longer than a slot is fetched in a second
  // step, up to kMaxSuperFrame: as many may wait as the socket's receive buffer holds, a handful where CAP_NET_ADMIN over the
  // initial user namespace is missing. Slots of kMaxSuperFrame do without: with
  // roce_only there are 512 of them then.
  bool offloads = false;
  // With offloads: so many RoCEv2 packets of one path, given to transmit() at once, may leave as one super-frame; 1: none.
  uint32_t join = 1;
  // With live frames: they leave only while an XDP program at the other end of this veth takes them (io/peer_program.h). In
  // sockets of the kernel each takes a page.
  bool live_for_xdp = false;
  uint32_t ring = 512;  // with AF_XDP: frames in each ring, a power of two; more of them wait longer, but leave the caches
  XdpMode xdp_mode = XdpMode::native;
  // A packet socket that another process has opened, and lends (PacketPort::lend()); -1: the port opens its own. It outlives the
  // port, and stays the lender's.
  int lent_socket = -1;
  bool stamp = false;  // with AF_XDP: frames carry the time at which the program saw them, else that at which they were read
};

}  // namespace weir
