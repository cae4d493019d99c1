#include "io/interface_probe.h"

#include <ifaddrs.h>
#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/native_error.h"
#include "io/network_namespace.h"

namespace weir {
namespace {

// linux/netdev.h, which the headers of Linux 6.1 do not have.
constexpr uint8_t kNetdevGetDevice = 1;
constexpr uint16_t kNetdevIndex = 1;
constexpr uint16_t kNetdevXdpFeatures = 3;
constexpr uint16_t kNetdevXdpMetadata = 5;
constexpr uint16_t kAttributeType = 0x3fff;  // without NLA_F_NESTED and NLA_F_NET_BYTEORDER

using Bytes = std::span<const uint8_t>;

template <class T>
T load(Bytes bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), bytes.size() < sizeof value ? bytes.size() : sizeof value);
  return value;
}

std::string text(Bytes bytes) {
  const auto* start = reinterpret_cast<const char*>(bytes.data());
  return {start, ::strnlen(start, bytes.size())};
}

void each_attribute(Bytes bytes, const std::function<void(uint16_t, Bytes)>& take) {
  while (bytes.size() >= sizeof(nlattr)) {
    const auto header = load<nlattr>(bytes);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return;
    take(header.nla_type & kAttributeType, bytes.subspan(sizeof header, header.nla_len - sizeof header));
    const size_t step = NLA_ALIGN(header.nla_len);
    if (step >= bytes.size()) return;
    bytes = bytes.subspan(step);
  }
}

// One question, one answer.
class Netlink {
 public:
  explicit Netlink(int protocol) : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)) {
    if (socket_.get() < 0) throw NativeError::from_errno("socket", "cannot open a netlink socket", "");
  }

  // `fixed`: the family's own header, with one attribute behind it; the answer's takes its place. The answer's attributes; none
  // if the kernel refuses, with errno set.
  template <class Fixed>
  Bytes ask(uint16_t type, Fixed& fixed, uint16_t attribute, Bytes value) {
    struct {
      nlmsghdr header;
      alignas(NLMSG_ALIGNTO) uint8_t rest[128];
    } request{};
    uint8_t* at = request.rest;
    std::memcpy(at, &fixed, sizeof fixed);
    at += NLMSG_ALIGN(sizeof fixed);
    const nlattr head{static_cast<uint16_t>(sizeof(nlattr) + value.size()), attribute};
    std::memcpy(at, &head, sizeof head);
    std::memcpy(at + sizeof head, value.data(), value.size());
    at += NLA_ALIGN(head.nla_len);
    request.header = {static_cast<uint32_t>(at - reinterpret_cast<uint8_t*>(&request)), type, NLM_F_REQUEST, 1, 0};
    if (::send(socket_.get(), &request, request.header.nlmsg_len, 0) < 0) return {};
    const ssize_t got = ::recv(socket_.get(), answer_.get(), kAnswer, 0);
    if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
    const Bytes answer(answer_.get(), static_cast<size_t>(got));
    if (load<nlmsghdr>(answer).nlmsg_type == NLMSG_ERROR) {
      errno = -load<nlmsgerr>(answer.subspan(sizeof(nlmsghdr))).error;
      return {};
    }
    const size_t skip = sizeof(nlmsghdr) + NLMSG_ALIGN(sizeof fixed);
    if (answer.size() < skip) return {};
    fixed = load<Fixed>(answer.subspan(sizeof(nlmsghdr)));
    return answer.subspan(skip);
  }

 private:
  static constexpr size_t kAnswer = 64 * 1024;  // one link with all its attributes takes 2 KiB or so
  Descriptor socket_;
  std::unique_ptr<uint8_t[]> answer_ = std::make_unique<uint8_t[]>(kAnswer);
};

template <class T>
Bytes bytes_of(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

void ask_link(InterfaceProbe& probe, const std::string& name) {
  Netlink netlink(NETLINK_ROUTE);
  ifinfomsg question{};
  question.ifi_family = AF_UNSPEC;
  const uint32_t without_statistics = RTEXT_FILTER_SKIP_STATS;
  question.ifi_index = static_cast<int>(probe.index);
  const Bytes answer = netlink.ask(RTM_GETLINK, question, IFLA_EXT_MASK, bytes_of(without_statistics));
  if (answer.empty()) throw NativeError::from_errno("netlink", "cannot ask about " + name, "");
  probe.flags = question.ifi_flags;
  uint32_t master = 0;
  each_attribute(answer, [&](uint16_t type, Bytes value) {
    if (type == IFLA_MTU) probe.mtu = load<uint32_t>(value);
    if (type == IFLA_MASTER) master = load<uint32_t>(value);
    if (type == IFLA_ADDRESS && value.size() == 6) {
      for (const uint8_t byte : value) probe.mac = probe.mac << 8 | byte;
    }
    if (type == IFLA_LINKINFO) {
      each_attribute(value, [&](uint16_t inner, Bytes word) {
        if (inner == IFLA_INFO_KIND) probe.kind = text(word);
        if (inner == IFLA_INFO_SLAVE_KIND) probe.master_kind = text(word);
      });
    }
    if (type == IFLA_XDP) {
      each_attribute(value, [&](uint16_t inner, Bytes mode) {
        if (inner == IFLA_XDP_ATTACHED) probe.xdp_attached = load<uint8_t>(mode);
      });
    }
  });
  char buffer[IF_NAMESIZE] = {};
  if (master != 0 && ::if_indextoname(master, buffer) != nullptr) probe.master = buffer;
}

bool has_address(const std::string& name) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || name != at->ifa_name) continue;
    if (at->ifa_addr->sa_family == AF_INET) found = true;
    if (at->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
      if (!IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) found = true;
    }
  }
  ::freeifaddrs(all);
  return found;
}

// Kernels before 6.3 have no such family: nothing is known then.
void ask_xdp_features(InterfaceProbe& probe) {
  Netlink netlink(NETLINK_GENERIC);
  constexpr std::string_view kFamily("netdev\0", 7);
  genlmsghdr question{CTRL_CMD_GETFAMILY, 1, 0};
  uint16_t family = 0;
  each_attribute(netlink.ask(GENL_ID_CTRL, question, CTRL_ATTR_FAMILY_NAME,
                             {reinterpret_cast<const uint8_t*>(kFamily.data()), kFamily.size()}),
                 [&](uint16_t type, Bytes value) {
                   if (type == CTRL_ATTR_FAMILY_ID) family = load<uint16_t>(value);
                 });
  if (family == 0) return;
  question = {kNetdevGetDevice, 1, 0};
  each_attribute(netlink.ask(family, question, kNetdevIndex, bytes_of(probe.index)), [&](uint16_t type, Bytes value) {
    if (type == kNetdevXdpFeatures) probe.xdp_features = load<uint64_t>(value);
    if (type == kNetdevXdpMetadata) probe.xdp_metadata = load<uint64_t>(value);
  });
}

class Ethtool {
 public:
  explicit Ethtool(const std::string& name) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    name.copy(request_.ifr_name, IFNAMSIZ - 1);
  }

  // `data` starts with the command, as all of ethtool's structures do.
  template <class Data>
  bool ask(uint32_t command, Data& data) {
    std::memcpy(&data, &command, sizeof command);
    request_.ifr_data = reinterpret_cast<char*>(&data);
    return ::ioctl(socket_.get(), SIOCETHTOOL, &request_) == 0;
  }
  std::optional<uint32_t> value(uint32_t command) {
    ethtool_value out{};
    return ask(command, out) ? std::optional(out.data) : std::nullopt;
  }
  std::optional<bool> flag(uint32_t command) {
    const std::optional<uint32_t> out = value(command);
    return out ? std::optional(*out != 0) : std::nullopt;
  }

 private:
  Descriptor socket_;
  ifreq request_{};
};

// The first call asks how long the bit maps of link modes are; the second has room for them.
void ask_speed(InterfaceProbe& probe, Ethtool& ethtool) {
  struct Settings {
    uint8_t bytes[sizeof(ethtool_link_settings) + 3 * 127 * sizeof(uint32_t)];
  } settings{};
  if (!ethtool.ask(ETHTOOL_GLINKSETTINGS, settings)) return;
  auto head = load<ethtool_link_settings>(settings.bytes);
  if (head.link_mode_masks_nwords >= 0) return;
  head.link_mode_masks_nwords = static_cast<__s8>(-head.link_mode_masks_nwords);
  settings = {};
  std::memcpy(settings.bytes, &head, sizeof head);
  if (!ethtool.ask(ETHTOOL_GLINKSETTINGS, settings)) return;
  head = load<ethtool_link_settings>(settings.bytes);
  if (head.speed != static_cast<uint32_t>(SPEED_UNKNOWN)) probe.speed = uint64_t{head.speed} * 1'000'000;
}

void ask_ethtool(InterfaceProbe& probe, const std::string& name) {
  Ethtool ethtool(name);
  ethtool_drvinfo driver{};
  if (ethtool.ask(ETHTOOL_GDRVINFO, driver)) {
    probe.driver = driver.driver;
    probe.bus = driver.bus_info;
  }
  ethtool_channels channels{};
  if (ethtool.ask(ETHTOOL_GCHANNELS, channels)) {
    probe.receive_queues = channels.combined_count + channels.rx_count;
    probe.transmit_queues = channels.combined_count + channels.tx_count;
  }
  ethtool_ringparam rings{};
  if (ethtool.ask(ETHTOOL_GRINGPARAM, rings)) {
    probe.receive_ring = rings.rx_pending;
    probe.transmit_ring = rings.tx_pending;
  }
  probe.tso = ethtool.flag(ETHTOOL_GTSO);
  probe.gso = ethtool.flag(ETHTOOL_GGSO);
  probe.gro = ethtool.flag(ETHTOOL_GGRO);
  probe.tx_checksum = ethtool.flag(ETHTOOL_GTXCSUM);
  probe.rx_checksum = ethtool.flag(ETHTOOL_GRXCSUM);
  if (const std::optional<uint32_t> flags = ethtool.value(ETHTOOL_GFLAGS)) {
    probe.lro = (*flags & ETH_FLAG_LRO) != 0;
    probe.tx_vlan = (*flags & ETH_FLAG_TXVLAN) != 0;
    probe.rx_vlan = (*flags & ETH_FLAG_RXVLAN) != 0;
  }
  ethtool_pauseparam pause{};
  if (ethtool.ask(ETHTOOL_GPAUSEPARAM, pause)) {
    probe.pause_autoneg = pause.autoneg != 0;
    probe.pause_receive = pause.rx_pause != 0;
    probe.pause_transmit = pause.tx_pause != 0;
  }
  ask_speed(probe, ethtool);
}

int try_xdp_socket() {
  const Descriptor socket(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  return socket.get() < 0 ? errno : 0;
}

// Loaded and forgotten: a program that passes every frame.
int try_xdp_program() {
  const bpf_insn program[] = {
      {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS},
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insns = reinterpret_cast<uint64_t>(program);
  attributes.insn_cnt = std::size(program);
  attributes.license = reinterpret_cast<uint64_t>("GPL");
  const Descriptor loaded(static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes)));
  if (loaded.get() >= 0) return 0;
  return errno == EACCES ? EPERM : errno;  // the verifier's word for the same
}

InterfaceProbe probe_here(const std::string& name) {
  InterfaceProbe probe;
  probe.index = ::if_nametoindex(name.c_str());
  if (probe.index == 0) {
    throw NativeError::from_errno("if_nametoindex", "there is no interface " + name, "ip link lists the interfaces there are");
  }
  ask_link(probe, name);
  probe.addressed = has_address(name);
  ask_xdp_features(probe);
  ask_ethtool(probe, name);
  probe.xdp_sockets = try_xdp_socket();
  probe.xdp_programs = try_xdp_program();
  return probe;
}

}  // namespace

InterfaceProbe probe_interface(const std::string& name, const std::string& namespace_path) {
  if (namespace_path.empty()) return probe_here(name);
  InterfaceProbe probe;
  in_namespace(namespace_path, [&] { probe = probe_here(name); });
  return probe;
}

}  // namespace weir
