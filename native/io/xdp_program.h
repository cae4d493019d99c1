// The XDP program that hands the frames of an interface to AF_XDP sockets: one map of sockets, one program, one link. Nothing of
// it outlasts the process, however that ends. Needs CAP_BPF and CAP_NET_ADMIN, and for the tag beside the frame Linux 6.8.
#pragma once

#include <cstdint>
#include <optional>

#include "io/network_namespace.h"

namespace weir {

struct XdpProgramOptions {
  int interface_index = 0;  // index in the calling thread's network namespace
  bool generic = false;     // true: before the network stack, for any driver; else in the driver
  bool frags = false;       // frames may lie in several buffers: needed for those above about 3,500 bytes
  bool stamp = false;       // XdpMetadata with the time
  bool vlan = false;        // a tag that the sender left to its interface is put back into the frame
  // Serves an endpoint on an interface that the host's own stack uses too. RoCEv2 (UDP port 4791, not a fragment), MAC control
  // and QCN's congestion notification messages by their ethertype (wire/qcn.h) are taken, each with or without one 802.1Q tag,
  // and that with or without a CN-TAG behind. All else goes on to the stack, untouched.
  bool roce_only = false;
  // With roce_only: ARP and pings for this address, which the stack does not have, are taken, too (10.0.0.1 is 0x0a000001; 0:
  // none).
  uint32_t arp_address = 0;
  bool lldp = false;           // with roce_only: LLDPDUs are taken, too
  bool cnm_datagrams = false;  // with roce_only: congestion notification messages in UDP are taken, too
};

// Lies directly in front of each frame taken, with `stamp`. A driver may have no room for it (none of those with zero copy, and
// not veth): then the bytes there are those of before. So the reader looks at `mark`, and clears it once it has read.
struct XdpMetadata {
  static constexpr uint64_t kMark = 0x57e15eed;

  uint64_t stamp = 0;  // bpf_ktime_get_ns(): CLOCK_MONOTONIC
  uint64_t mark = 0;
};
static_assert(sizeof(XdpMetadata) == 16);

class XdpProgram {
 public:
  static constexpr uint32_t kMostQueues = 64;  // receive queues of an interface

  // Loads the program, and does not attach it yet. Throws NativeError: EPERM, or what the verifier says.
  explicit XdpProgram(const XdpProgramOptions& options);
  // Frames are taken from here on; one of a queue that has no socket is a stray, and dropped: the host's stack would answer it.
  // The interface is in the constructor's namespace. Throws NativeError: EBUSY (there is a program already), EOPNOTSUPP (native:
  // the driver cannot), ERANGE or EINVAL (native: the MTU is too large for one buffer, or for the driver's), ...
  void attach();
  // Puts the same program in place of the attached one, without a moment between: a veth does not run that one for receive queues
  // that came later. Throws NativeError, and then nothing has changed.
  void renew();
  // `socket`: an AF_XDP socket with a receive ring, for a queue. A socket leaves the map when it is closed. Throws NativeError.
  void insert(uint32_t queue, int socket);
  // Strays so far: frames of queues that have come (`ethtool -L`) and got no socket yet.
  uint64_t strays() const;

  uint32_t metadata_bytes() const { return options_.stamp ? sizeof(XdpMetadata) : 0; }
  // Whether tags beside the frame are seen: not in generic mode, nor before Linux 6.8, and nothing is there if the driver does
  // not tell.
  bool has_vlan() const { return has_vlan_; }
  int descriptor() const { return program_->get(); }

 private:
  void load(uint32_t vlan_function);

  const XdpProgramOptions options_;
  const Descriptor sockets_;
  const Descriptor strays_;  // map of one count
  std::optional<Descriptor> program_;
  std::optional<Descriptor> link_;
  bool has_vlan_ = false;
};

}  // namespace weir
