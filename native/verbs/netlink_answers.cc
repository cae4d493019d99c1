#include "verbs/netlink_answers.h"

#include <dirent.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace weir {
namespace {

// ABI of the connections' file, as src/daemon/programs/device_files.ts has it.
constexpr uint64_t kConnectionsAbi = 4;
constexpr size_t kMostQuestion = 4096;
constexpr char kVerbs[] = "uverbs";
constexpr uint32_t kPort = 1;

std::string system_folder() {
  const char* root = std::getenv("SYSFS_PATH");
  return root == nullptr ? std::string() : root;
}

// The first line of a file, or nothing.
std::string line_of(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char text[256];
    if (std::fgets(text, sizeof text, file) != nullptr) line = text;
    std::fclose(file);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

// One that libibverbs finds in the folder as well.
struct Device {
  uint32_t index = 0;
  std::string character_file;
  std::string name;
  uint64_t number = 0;
  uint64_t abi = 0;

  std::string folder() const { return system_folder() + "/class/infiniband/" + name; }
  std::string attribute(const std::string& file) const { return line_of(folder() + "/" + file); }
  std::string of_port(const std::string& file) const { return attribute("ports/1/" + file); }
  // Number at the beginning of a file, such as that of "4: ACTIVE".
  uint64_t number_of_port(const std::string& file) const { return std::strtoull(of_port(file).c_str(), nullptr, 10); }
};

// The kernel's encoding of a device number (huge_encode_dev).
uint64_t encoded_number(const std::string& text) {
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(text.c_str(), "%u:%u", &major, &minor) != 2) return 0;
  return (minor & 0xff) | (major << 8) | (static_cast<uint64_t>(minor & ~0xffU) << 12);
}

std::vector<Device> devices() {
  std::vector<Device> found;
  const std::string folder = system_folder() + "/class/infiniband_verbs";
  DIR* entries = system_folder().empty() ? nullptr : ::opendir(folder.c_str());
  if (entries == nullptr) return found;
  while (const dirent* entry = ::readdir(entries)) {
    if (std::strncmp(entry->d_name, kVerbs, sizeof kVerbs - 1) != 0) continue;
    const std::string files = folder + "/" + entry->d_name;
    found.push_back({.index = static_cast<uint32_t>(std::strtoul(entry->d_name + sizeof kVerbs - 1, nullptr, 10)),
                     .character_file = entry->d_name,
                     .name = line_of(files + "/ibdev"),
                     .number = encoded_number(line_of(files + "/dev")),
                     .abi = std::strtoull(line_of(files + "/abi_version").c_str(), nullptr, 10)});
  }
  ::closedir(entries);
  std::sort(found.begin(), found.end(), [](const Device& a, const Device& b) { return a.index < b.index; });
  return found;
}

// "0200:00ff:fe00:0001", as the kernel's files have it.
uint64_t guid_of(const std::string& text) {
  uint64_t guid = 0;
  for (const char digit : text) {
    if (digit != ':') guid = (guid << 4) | static_cast<uint64_t>(std::strtoul(std::string(1, digit).c_str(), nullptr, 16));
  }
  return guid;
}

// A question, once all of it is known to be there.
struct Question {
  nlmsghdr header;
  std::optional<uint32_t> device;
  std::optional<uint32_t> port;
  bool is_dump() const { return (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP; }
  std::string file;
};

// Messages for one receiver, end to end.
class NetlinkAnswer {
 public:
  NetlinkAnswer(const nlmsghdr& question, uint32_t receiver) : question_(question), receiver_(receiver) {}

  void begin(uint16_t type, uint16_t flags = 0) {
    start_ = bytes_.size();
    const nlmsghdr header = {.nlmsg_len = sizeof header,
                             .nlmsg_type = type,
                             .nlmsg_flags = flags,
                             .nlmsg_seq = question_.nlmsg_seq,
                             .nlmsg_pid = receiver_};
    put(&header, sizeof header);
  }

  void attribute(uint16_t type, const std::string& text) { attribute(type, text.c_str(), text.size() + 1); }
  template <class Number>
    requires std::is_integral_v<Number>
  void attribute(uint16_t type, Number number) {
    attribute(type, &number, sizeof number);
  }

  // Attributes within one.
  template <class Inside>
  void nest(uint16_t type, const Inside& inside) {
    const size_t start = bytes_.size();
    attribute(static_cast<uint16_t>(type | NLA_F_NESTED), nullptr, 0);
    inside();
    const auto length = static_cast<uint16_t>(bytes_.size() - start);
    bytes_.replace(start, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
  }

  // Ends a list, or says how a question went: 0, or -errno.
  void done() {
    begin(NLMSG_DONE, NLM_F_MULTI);
    const int32_t error = 0;
    put(&error, sizeof error);
  }
  void acknowledge(int error) {
    begin(NLMSG_ERROR);
    const nlmsgerr body = {.error = error, .msg = question_};
    put(&body, sizeof body);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void attribute(uint16_t type, const void* value, size_t length) {
    const nlattr header = {.nla_len = static_cast<uint16_t>(sizeof header + length), .nla_type = type};
    put(&header, sizeof header);
    put(value, length);
  }

  // Everything is padded to four bytes, and counted in the message's length.
  void put(const void* value, size_t length) {
    bytes_.append(static_cast<const char*>(value), length);
    bytes_.append(NLMSG_ALIGN(length) - length, '\0');
    const auto total = static_cast<uint32_t>(bytes_.size() - start_);
    bytes_.replace(start_, sizeof total, reinterpret_cast<const char*>(&total), sizeof total);
  }

  const nlmsghdr question_;
  const uint32_t receiver_;
  std::string bytes_;
  size_t start_ = 0;
};

void describe(NetlinkAnswer& answer, const Device& device, uint16_t flags) {
  answer.begin(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), flags);
  answer.attribute(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
  answer.attribute(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
  answer.attribute(RDMA_NLDEV_ATTR_PORT_INDEX, uint32_t{1});
  answer.attribute(RDMA_NLDEV_ATTR_FW_VERSION, device.attribute("fw_ver"));
  answer.attribute(RDMA_NLDEV_ATTR_NODE_GUID, guid_of(device.attribute("node_guid")));
  answer.attribute(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid_of(device.attribute("sys_image_guid")));
  // "1: CA"
  answer.attribute(RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
                   static_cast<uint8_t>(std::strtoul(device.attribute("node_type").c_str(), nullptr, 10)));
  answer.attribute(RDMA_NLDEV_ATTR_DEV_PROTOCOL, std::string("roce"));
}

// 0, or the errno with which the kernel refuses.
int answer_devices(NetlinkAnswer& answer, const Question& question) {
  const bool all = question.is_dump();
  if (!all && !question.device) return EINVAL;
  bool found = all;
  for (const Device& device : devices()) {
    if (!all && device.index != question.device) continue;
    describe(answer, device, all ? NLM_F_MULTI : 0);
    found = true;
  }
  if (all) answer.done();
  return found ? 0 : EINVAL;
}

void describe_port(NetlinkAnswer& answer, const Device& device) {
  answer.attribute(RDMA_NLDEV_ATTR_PORT_STATE, static_cast<uint8_t>(device.number_of_port("state")));
  answer.attribute(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, static_cast<uint8_t>(device.number_of_port("phys_state")));
  const std::string interface = device.of_port("gid_attrs/ndevs/0");
  const uint32_t index = interface.empty() ? 0 : ::if_nametoindex(interface.c_str());
  if (index == 0) return;  // another network namespace has it
  answer.attribute(RDMA_NLDEV_ATTR_NDEV_INDEX, index);
  answer.attribute(RDMA_NLDEV_ATTR_NDEV_NAME, interface);
}

void describe_counters(NetlinkAnswer& answer, const Device& device) {
  std::vector<std::string> names;
  DIR* entries = ::opendir((device.folder() + "/ports/1/hw_counters").c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    // The daemon writes a file anew under another name.
    const std::string name = entry->d_name;
    if (name[0] != '.' && name.back() != '~' && name != "lifespan") names.push_back(name);
  }
  ::closedir(entries);
  std::sort(names.begin(), names.end());
  answer.nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, [&] {
    for (const std::string& name : names) {
      answer.nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, [&] {
        answer.attribute(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
        answer.attribute(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, device.number_of_port("hw_counters/" + name));
      });
    }
  });
}

// Answers with what `describe` tells of a device's port; a device has one.
int answer_port(NetlinkAnswer& answer, const Question& question, uint16_t command, void (*tell)(NetlinkAnswer&, const Device&)) {
  const bool all = question.is_dump();
  if (!question.device || (!all && !question.port) || question.port.value_or(kPort) != kPort) return EINVAL;
  for (const Device& device : devices()) {
    if (device.index != question.device) continue;
    answer.begin(static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)), all ? NLM_F_MULTI : 0);
    answer.attribute(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    answer.attribute(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
    answer.attribute(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
    tell(answer, device);
    if (all) answer.done();
    return 0;
  }
  return EINVAL;
}

int answer_character_file(NetlinkAnswer& answer, const Question& question) {
  constexpr uint16_t kType = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV);
  const auto tell = [&answer](const std::string& name, uint64_t abi, uint64_t number) {
    answer.begin(kType);
    answer.attribute(RDMA_NLDEV_ATTR_CHARDEV, number);
    answer.attribute(RDMA_NLDEV_ATTR_CHARDEV_ABI, abi);
    answer.attribute(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
    return 0;
  };
  // A socket stands for it (connection_channels.h), which has no number: librdmacm takes 0 for "any".
  if (question.file == "rdma_cm") return tell(question.file, kConnectionsAbi, 0);
  if (question.file != kVerbs) return EOPNOTSUPP;
  for (const Device& device : devices()) {
    if (device.index == question.device) return tell(device.character_file, device.abi, device.number);
  }
  return EINVAL;
}

// Nothing is pinned, and a program's own memory is used as it is: processes fork as on a kernel that copies pinned pages.
int answer_system(NetlinkAnswer& answer) {
  answer.begin(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET));
  answer.attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, uint8_t{1});
  answer.attribute(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, uint8_t{1});
  return 0;
}

int answer_one(NetlinkAnswer& answer, const Question& question) {
  const uint16_t type = question.header.nlmsg_type;
  if (RDMA_NL_GET_CLIENT(type) != RDMA_NL_NLDEV) return EINVAL;
  switch (RDMA_NL_GET_OP(type)) {
    case RDMA_NLDEV_CMD_GET:
      return answer_devices(answer, question);
    case RDMA_NLDEV_CMD_PORT_GET:
      return answer_port(answer, question, RDMA_NLDEV_CMD_PORT_GET, describe_port);
    case RDMA_NLDEV_CMD_STAT_GET:
      return answer_port(answer, question, RDMA_NLDEV_CMD_STAT_GET, describe_counters);
    case RDMA_NLDEV_CMD_SYS_GET:
      return answer_system(answer);
    case RDMA_NLDEV_CMD_GET_CHARDEV:
      return answer_character_file(answer, question);
    default:
      return EOPNOTSUPP;
  }
}

Question read_question(const char* bytes, const nlmsghdr& header) {
  Question question{.header = header, .device = {}, .port = {}, .file = {}};
  size_t at = sizeof header;
  nlattr attribute;
  while (at + sizeof attribute <= header.nlmsg_len) {
    std::memcpy(&attribute, bytes + at, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || at + attribute.nla_len > header.nlmsg_len) break;
    const char* value = bytes + at + sizeof attribute;
    const size_t length = attribute.nla_len - sizeof attribute;
    uint32_t number;
    if (attribute.nla_type == RDMA_NLDEV_ATTR_DEV_INDEX && length == sizeof number) {
      std::memcpy(&number, value, sizeof number);
      question.device = number;
    } else if (attribute.nla_type == RDMA_NLDEV_ATTR_PORT_INDEX && length == sizeof number) {
      std::memcpy(&number, value, sizeof number);
      question.port = number;
    } else if (attribute.nla_type == RDMA_NLDEV_ATTR_CHARDEV_TYPE) {
      question.file.assign(value, ::strnlen(value, length));
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return question;
}

bool is_rdma_netlink(int descriptor) {
  int domain = 0;
  int protocol = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_NETLINK &&
         ::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == NETLINK_USERSOCK;
}

// Returns the port id that its answers go to; a socket that is not bound gets one, as by its first send(2). 0: with errno.
uint32_t receiver_of(int descriptor) {
  sockaddr_nl own{};
  for (int tries = 0; tries < 2 && own.nl_pid == 0; tries++) {
    own = {.nl_family = AF_NETLINK, .nl_pad = 0, .nl_pid = 0, .nl_groups = 0};
    if (tries > 0 && ::bind(descriptor, reinterpret_cast<const sockaddr*>(&own), sizeof own) < 0) return 0;
    socklen_t length = sizeof own;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) < 0) return 0;
  }
  return own.nl_pid;
}

bool deliver(uint32_t receiver, const std::string& bytes) {
  const int sender = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
  if (sender < 0) return false;
  const sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pad = 0, .nl_pid = receiver, .nl_groups = 0};
  // An answer that a program does not receive does not hold it up.
  iovec piece = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_nl*>(&to);
  message.msg_namelen = sizeof to;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const bool sent = ::sendmsg(sender, &message, MSG_DONTWAIT) >= 0;
  const int error = errno;
  ::close(sender);
  errno = error;
  return sent;
}

}  // namespace

int open_rdma_netlink(int type) { return ::socket(AF_NETLINK, type, NETLINK_USERSOCK); }

bool may_be_rdma_question(const iovec* pieces, size_t count) {
  nlmsghdr header;
  if (count == 0 || pieces[0].iov_base == nullptr || pieces[0].iov_len < sizeof header) return false;
  std::memcpy(&header, pieces[0].iov_base, sizeof header);
  const auto client = RDMA_NL_GET_CLIENT(header.nlmsg_type);
  return header.nlmsg_len >= sizeof header && header.nlmsg_len <= kMostQuestion && (header.nlmsg_flags & NLM_F_REQUEST) != 0 &&
         client > 0 && client < 16 && (header.nlmsg_type >> 16) == 0;
}

std::optional<ssize_t> answer_rdma_question(int descriptor, const iovec* pieces, size_t count) {
  if (!is_rdma_netlink(descriptor)) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < count; i++) bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  nlmsghdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  // The kernel passes over what is cut short.
  if (header.nlmsg_len > bytes.size()) return static_cast<ssize_t>(bytes.size());
  const uint32_t receiver = receiver_of(descriptor);
  if (receiver == 0) return -1;
  NetlinkAnswer answer(header, receiver);
  const int error = answer_one(answer, read_question(bytes.data(), header));
  const bool is_dump = (header.nlmsg_flags & NLM_F_DUMP) != 0;
  if (error != 0 || ((header.nlmsg_flags & NLM_F_ACK) != 0 && !is_dump)) answer.acknowledge(-error);
  if (!deliver(receiver, answer.bytes())) return -1;
  return static_cast<ssize_t>(bytes.size());
}

}  // namespace weir
