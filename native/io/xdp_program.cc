#include "io/xdp_program.h"

#include <linux/if_link.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "base/native_error.h"
#include "io/bpf.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/qcn.h"
#include "wire/udp.h"

namespace weir {
namespace {

using Label = BpfCode::Label;
using enum BpfRegister;
using enum BpfSize;
using enum BpfTest;

// These are <linux/bpf.h>'s; the headers of older distributions lack them.
constexpr uint32_t kFragments = 1u << 5;    // BPF_F_XDP_HAS_FRAGS
constexpr uint32_t kDeviceBound = 1u << 6;  // BPF_F_XDP_DEV_BOUND_ONLY

constexpr int32_t big_endian(uint16_t value) { return __builtin_bswap16(value); }
constexpr int32_t big_endian(uint32_t value) { return static_cast<int32_t>(__builtin_bswap32(value)); }

// Registers of the part that looks at a frame: r6 context (kept), r2 a position in the frame, r3 its end, r4 and r5 scratch.

// Goes to `otherwise` unless `bytes` bytes are there from r2 on. Later loads at r2 may then reach so far.
void require(BpfCode& code, int32_t bytes, Label otherwise) {
  code.set(r4, r2);
  code.add(r4, bytes);
  code.jump_if(r4, above, r3, otherwise);
}

// Goes to `take` or `pass`.
void select_roce(BpfCode& code, const XdpProgramOptions& options, Label take, Label pass) {
  const Label untagged = code.label(), no_cn_tag = code.label();
  const Label ipv4 = code.label(), ipv6 = code.label(), arp = code.label(), icmp = code.label(), udp = code.label();

  code.load(word, r2, r6, offsetof(xdp_md, data));
  code.load(word, r3, r6, offsetof(xdp_md, data_end));
  require(code, kEthernetHeader, pass);
  code.load(half, r5, r2, kEthernetHeader - 2);
  code.jump_if(r5, not_equal, big_endian(kEthertypeVlan), untagged);
  require(code, kEthernetHeader + kVlanTag, pass);
  code.load(half, r5, r2, kEthernetHeader + kVlanTag - 2);
  code.add(r2, kVlanTag);
  code.bind(untagged);
  code.jump_if(r5, not_equal, big_endian(kEthertypeCnTag), no_cn_tag);
  require(code, kEthernetHeader + kCnTag, pass);
  code.load(half, r5, r2, kEthernetHeader + kCnTag - 2);
  code.add(r2, kCnTag);
  code.bind(no_cn_tag);
  code.add(r2, kEthernetHeader);
  code.jump_if(r5, equal, big_endian(kEthertypeIpv4), ipv4);
  code.jump_if(r5, equal, big_endian(kEthertypeIpv6), ipv6);
  code.jump_if(r5, equal, big_endian(kEthertypeMacControl), take);
  code.jump_if(r5, equal, big_endian(kEthertypeCnm), take);
  if (options.lldp) code.jump_if(r5, equal, big_endian(kEthertypeLldp), take);
  if (options.arp_address != 0) code.jump_if(r5, equal, big_endian(kEthertypeArp), arp);
  code.jump(pass);

  code.bind(ipv4);
  require(code, kIpv4Header, pass);
  code.load(byte, r5, r2, 9);
  if (options.arp_address != 0) code.jump_if(r5, equal, kProtocolIcmp, icmp);
  code.jump_if(r5, not_equal, kProtocolUdp, pass);
  code.load(half, r5, r2, 6);
  code.jump_if(r5, any_bit, big_endian(uint16_t{0x3fff}), pass);  // a fragment
  code.load(byte, r5, r2, 0);
  code.jump_if(r5, below, 0x45, pass);
  code.jump_if(r5, above, 0x4f, pass);
  code.bit_and(r5, 0x0f);
  code.shift_left(r5, 2);
  code.add(r2, r5);
  code.jump(udp);

  code.bind(ipv6);
  require(code, kIpv6Header, pass);
  code.load(byte, r5, r2, 0);
  code.shift_right(r5, 4);
  code.jump_if(r5, not_equal, 6, pass);
  code.load(byte, r5, r2, 6);
  code.add(r2, kIpv6Header);
  code.jump_if(r5, equal, kProtocolUdp, udp);
  code.jump(pass);

  if (options.arp_address != 0) {
    constexpr int16_t kTarget = 24;
    code.bind(arp);
    require(code, kTarget + 4, pass);
    code.load(word, r5, r2, 0);
    code.jump_if(r5, not_equal, big_endian(uint32_t{1} << 16 | kEthertypeIpv4), pass);  // hardware type Ethernet, protocol IPv4
    code.load(word, r5, r2, kTarget);
    code.jump_if(r5, equal, big_endian(options.arp_address), take);
    code.jump(pass);

    // Echo requests, behind a header without options.
    constexpr int16_t kDestination = 16;
    constexpr int32_t kEchoRequest = 8;
    code.bind(icmp);
    require(code, kIpv4Header + 8, pass);
    code.load(byte, r5, r2, 0);
    code.jump_if(r5, not_equal, 0x45, pass);
    code.load(half, r5, r2, 6);
    code.jump_if(r5, any_bit, big_endian(uint16_t{0x3fff}), pass);  // a fragment
    code.load(word, r5, r2, kDestination);
    code.jump_if(r5, not_equal, big_endian(options.arp_address), pass);
    code.load(byte, r5, r2, kIpv4Header);
    code.jump_if(r5, equal, kEchoRequest, take);
    code.jump(pass);
  }

  code.bind(udp);
  require(code, kUdpHeader, pass);
  if (options.cnm_datagrams) {
    code.load(word, r5, r2, 0);  // source and destination port
    code.jump_if(r5, equal, big_endian(uint32_t{kCnmUdpPort} << 16 | kCnmUdpPort), take);
  }
  code.load(half, r5, r2, 2);
  code.jump_if(r5, not_equal, big_endian(kRocePort), pass);
}

// Puts a tag that is beside the frame where it belongs. `vlan_function`: BTF id of bpf_xdp_metadata_rx_vlan_tag(). A frame whose
// tag has no room goes to `lose`: without it, it would be another frame. Drivers keep 256 bytes free in front of every frame
// (XDP_PACKET_HEADROOM), so that is one whose driver is broken; the kernel tells of it as an XDP exception.
void put_tag_back(BpfCode& code, uint32_t vlan_function, Label lose) {
  constexpr int16_t kTpid = -8, kTci = -16;  // places on the stack
  const Label untagged = code.label();
  code.store(double_word, frame, kTpid, 0);
  code.store(double_word, frame, kTci, 0);
  code.set(r1, r6);
  code.set(r2, frame);
  code.add(r2, kTpid);
  code.set(r3, frame);
  code.add(r3, kTci);
  code.call_kernel(vlan_function);
  code.jump_if(r0, not_equal, 0, untagged);
  code.set(r1, r6);
  code.set(r2, -int32_t{kVlanTag});
  code.call(BPF_FUNC_xdp_adjust_head);
  code.jump_if(r0, not_equal, 0, lose);
  code.load(word, r2, r6, offsetof(xdp_md, data));
  code.load(word, r3, r6, offsetof(xdp_md, data_end));
  require(code, kEthernetHeader + kVlanTag, lose);
  code.load(double_word, r4, r2, kVlanTag);
  code.load(word, r5, r2, kVlanTag + 8);
  code.store(double_word, r2, 0, r4);
  code.store(word, r2, 8, r5);
  code.load(half, r4, frame, kTpid);  // in the frame's byte order
  code.load(half, r5, frame, kTci);
  code.swap_half(r5);
  code.store(half, r2, 12, r4);
  code.store(half, r2, 14, r5);
  code.bind(untagged);
}

// Goes to `otherwise` if there is no room.
void write_metadata(BpfCode& code, Label otherwise) {
  constexpr int32_t kBytes = sizeof(XdpMetadata);
  code.call(BPF_FUNC_ktime_get_ns);
  code.set(r7, r0);
  code.set(r2, -kBytes);
  code.set(r1, r6);
  code.call(BPF_FUNC_xdp_adjust_meta);
  code.jump_if(r0, not_equal, 0, otherwise);
  code.load(word, r2, r6, offsetof(xdp_md, data_meta));
  code.load(word, r3, r6, offsetof(xdp_md, data));
  require(code, kBytes, otherwise);
  code.store(double_word, r2, offsetof(XdpMetadata, stamp), r7);
  code.store(double_word, r2, offsetof(XdpMetadata, mark), static_cast<int32_t>(XdpMetadata::kMark));
}

BpfCode assemble(const XdpProgramOptions& options, int sockets, int strays, uint32_t vlan_function) {
  BpfCode code;
  const Label take = code.label(), redirect = code.label(), pass = code.label(), lose = code.label();
  const Label taken = code.label();
  code.set(r6, r1);
  if (options.roce_only) select_roce(code, options, take, pass);
  code.bind(take);
  if (vlan_function != 0) put_tag_back(code, vlan_function, lose);
  if (options.stamp) write_metadata(code, redirect);
  code.bind(redirect);
  code.set_map(r1, sockets);
  code.load(word, r2, r6, offsetof(xdp_md, rx_queue_index));
  code.set(r3, XDP_DROP);  // the outcome where the queue has no socket
  code.call(BPF_FUNC_redirect_map);
  code.jump_if(r0, equal, XDP_REDIRECT, taken);
  code.set_map_value(r1, strays, 0);
  code.set(r2, 1);
  code.add_atomic(r1, 0, r2);
  code.bind(taken);
  code.leave();
  if (options.roce_only) {  // the verifier refuses code that nothing leads to
    code.bind(pass);
    code.set(r0, XDP_PASS);
    code.leave();
  }
  if (vlan_function != 0) {
    code.bind(lose);
    code.set(r0, XDP_ABORTED);
    code.leave();
  }
  return code;
}

// 0: the kernel does not have it.
uint32_t vlan_function() {
  static const uint32_t kFunction = bpf_kernel_function("bpf_xdp_metadata_rx_vlan_tag");
  return kFunction;
}

std::string interface_name(int index) {
  char name[IF_NAMESIZE];
  return ::if_indextoname(static_cast<unsigned>(index), name) != nullptr ? name : "interface " + std::to_string(index);
}

const char* remedy(int error_number) {
  switch (error_number) {
    case EBUSY:
    case EEXIST:
      return "it has an XDP program already: `ip link set dev NAME xdp off` or `xdpgeneric off`, or end the program that holds "
             "it";
    case EOPNOTSUPP:
      return "its driver cannot run XDP programs with these options: xdp_mode: generic, or backend: af_packet";
    case ERANGE:
    case EINVAL:
      return "its MTU, or on veth its peer's, may be too large, or its settings rule XDP out: lower the MTU, or xdp_mode: "
             "generic";
    case ENOSPC:
      return "a veth needs as many receive queues as its peer has transmit queues: `ethtool -L NAME rx N`, or the peer's with tx "
             "N";
    case ENOTCONN:
      return "the other end of a veth pair must exist";
    default:
      return "needs CAP_BPF and CAP_NET_ADMIN: run as root; backend: af_packet does without";
  }
}

}  // namespace

XdpProgram::XdpProgram(const XdpProgramOptions& options)
    : options_(options),
      sockets_(bpf_create_map(BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), sizeof(uint32_t), kMostQueues, "weir_sockets")),
      strays_(bpf_create_map(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), 1, "weir_strays")) {
  if (options_.vlan && !options_.generic) {
    try {
      if (vlan_function() != 0) load(vlan_function());
    } catch (const NativeError&) {
      // This driver does not take it. Anything else that is wrong comes up again below.
    }
  }
  if (!program_) load(0);
}

void XdpProgram::load(uint32_t vlan_function) {
  const bool vlan = vlan_function != 0;
  const BpfCode code = assemble(options_, sockets_.get(), strays_.get(), vlan_function);
  const uint32_t flags = (options_.frags ? kFragments : 0) | (vlan ? kDeviceBound : 0);
  const uint32_t bound_to = vlan ? static_cast<uint32_t>(options_.interface_index) : 0;
  program_.emplace(bpf_load_xdp(code.instructions(), flags, bound_to, "weir_receive"));
  has_vlan_ = vlan;
}

void XdpProgram::attach() {
  const int link =
      bpf_link_xdp(program_->get(), options_.interface_index, options_.generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
  if (link < 0) {
    const int reason = errno;
    const std::string what = "cannot attach an XDP program to " + interface_name(options_.interface_index);
    errno = reason;
    throw NativeError::from_errno("bpf", what, remedy(reason));
  }
  link_.emplace(link);
}

void XdpProgram::renew() {
  load(has_vlan_ ? vlan_function() : 0);
  if (bpf_update_link(link_->get(), program_->get())) return;
  const int reason = errno;
  const std::string what = "cannot run an XDP program on all queues of " + interface_name(options_.interface_index);
  errno = reason;
  throw NativeError::from_errno("bpf", what, remedy(reason));
}

void XdpProgram::insert(uint32_t queue, int socket) {
  if (bpf_update(sockets_.get(), &queue, &socket)) return;
  throw NativeError::from_errno("bpf", "cannot hand receive queue " + std::to_string(queue) + " to an AF_XDP socket",
                                "the socket needs a receive ring");
}

uint64_t XdpProgram::strays() const {
  constexpr uint32_t kOnly = 0;
  uint64_t count = 0;
  return bpf_look_up(strays_.get(), &kOnly, &count) ? count : 0;
}

}  // namespace weir
