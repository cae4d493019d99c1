#include "verbs/connection_channels.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace weir {
namespace {

// A channel's socket has a name of its own, in the abstract namespace, with the key by which commands name the channel: so
// whoever has a descriptor knows what it is, also after dup and fork, and nothing has to be remembered.
constexpr char kName[] = "\0weir-rdma-cm-";
constexpr size_t kNameBytes = sizeof kName - 1;
constexpr size_t kKeyDigits = 16;
constexpr socklen_t kNameLength = offsetof(sockaddr_un, sun_path) + kNameBytes + kKeyDigits;

constexpr size_t kMostCommand = 512;
constexpr size_t kMostExtra = 512;
constexpr size_t kMostAnswer = 512;

struct Hello {
  uint32_t magic = 0x6d637277;
  uint32_t role;  // 0 channel, 1 commands
  uint64_t key;
};
struct Header {
  uint32_t length;
  uint32_t extra;
  uint64_t key;
};
struct Answer {
  uint32_t error;
  uint32_t length;
  uint32_t taken;
  uint32_t reserved;
};

// The beginning of every command of rdma_user_cm.h.
struct CommandHeader {
  uint32_t command;
  uint16_t in;
  uint16_t out;
};
enum : uint32_t { kCreateId = 0, kDestroyId = 1, kQueryRoute = 5, kInitQpAttr = 11, kGetEvent = 12, kSetOption = 14 };
enum : uint32_t { kJoinGroup = 16, kLeaveGroup = 17, kMigrateId = 18, kLastCommand = 31 };

std::atomic<bool> any_channel{false};

template <class Value>
Value at(const void* bytes, size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(bytes) + offset, sizeof value);
  return value;
}

// Where a command says that its answer goes; 0: it has none.
size_t response_offset(uint32_t command) {
  switch (command) {
    case kCreateId:
      return 16;
    case kDestroyId:
    case kQueryRoute:
    case kInitQpAttr:
    case kGetEvent:
    case kJoinGroup:
    case kLeaveGroup:
    case kMigrateId:
      return 8;
    default:
      return 0;
  }
}

std::optional<uint64_t> key_of(int descriptor) {
  sockaddr_un name{};
  socklen_t length = sizeof name;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length) < 0 || length != kNameLength ||
      name.sun_family != AF_UNIX || std::memcmp(name.sun_path, kName, kNameBytes) != 0) {
    return std::nullopt;
  }
  char digits[kKeyDigits + 1] = {};
  std::memcpy(digits, name.sun_path + kNameBytes, kKeyDigits);
  return std::strtoull(digits, nullptr, 16);
}

bool read_line(const char* path, char* line, int size) {
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const bool got = std::fgets(line, size, file) != nullptr;
  std::fclose(file);
  if (got) line[std::strcspn(line, "\n")] = '\0';
  return got;
}

// Of the first of the program's NICs.
bool find_socket(sockaddr_un& address) {
  const char* root = std::getenv("SYSFS_PATH");
  if (root == nullptr) return false;
  char path[512];
  char name[128];
  std::snprintf(path, sizeof path, "%s/class/infiniband_verbs/uverbs0/ibdev", root);
  if (!read_line(path, name, sizeof name)) return false;
  std::snprintf(path, sizeof path, "%s/class/infiniband/%s/weir_socket", root, name);
  address.sun_family = AF_UNIX;
  return read_line(path, address.sun_path, sizeof address.sun_path);
}

bool send_all(int socket, const void* bytes, size_t length) {
  const auto* from = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t sent = ::send(socket, from, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    length -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* bytes, size_t length) {
  auto* to = static_cast<char*>(bytes);
  while (length > 0) {
    const ssize_t got = ::recv(socket, to, length, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    length -= static_cast<size_t>(got);
  }
  return true;
}

// errno; 0: the daemon agrees.
int say_hello(int socket, const sockaddr_un& daemon, const Hello& hello) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon) < 0) return errno;
  uint32_t error;
  if (!send_all(socket, &hello, sizeof hello) || !receive_all(socket, &error, sizeof error)) return EIO;
  return static_cast<int>(error);
}

// The process's connection for commands. One NIC, one connection: all channels are the same daemon's.
class Commands {
 public:
  // errno; 0: `answer` is whole, and `bytes` have as much of what follows it as there is room for.
  int ask(int channel, const Header& header, const void* command, const void* extra, Answer& answer, void* bytes) {
    const std::lock_guard lock(mutex_);
    // A connection of earlier may be one to a daemon that is gone; the channel's may be there again.
    for (bool is_new = false; !is_new;) {
      is_new = socket_ < 0;
      if (is_new && !connect_like(channel)) return ENODEV;
      if (exchange(header, command, extra, answer, bytes)) return static_cast<int>(answer.error);
      close();
    }
    return ENODEV;
  }

  // A child has connections of its own, by which nobody else asks.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  bool connect_like(int channel) {
    sockaddr_un daemon{};
    socklen_t length = sizeof daemon;
    if (::getpeername(channel, reinterpret_cast<sockaddr*>(&daemon), &length) < 0) return false;
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && say_hello(socket_, daemon, {.role = 1, .key = 0}) == 0) return true;
    close();
    return false;
  }

  bool exchange(const Header& header, const void* command, const void* extra, Answer& answer, void* bytes) const {
    return send_all(socket_, &header, sizeof header) && send_all(socket_, command, header.length) &&
           send_all(socket_, extra, header.extra) && receive_all(socket_, &answer, sizeof answer) &&
           answer.length <= kMostAnswer && receive_all(socket_, bytes, answer.length);
  }

  std::mutex mutex_;
  int socket_ = -1;
};

Commands commands;

void mind_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork([] { commands.lock(); }, [] { commands.unlock(); },
                     [] {
                       commands.close();
                       commands.unlock();
                     });
  });
}

// Bytes whose events are gone.
void drop_bytes(int channel, uint32_t count) {
  char byte;
  while (count > 0 && ::recv(channel, &byte, 1, MSG_DONTWAIT) == 1) --count;
}

}  // namespace

int open_connection_channel(int flags) {
  sockaddr_un daemon{};
  if (!find_socket(daemon)) return errno = ENOENT, -1;
  const int channel = ::socket(AF_UNIX, SOCK_STREAM | ((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0), 0);
  if (channel < 0) return -1;
  Hello hello{.role = 0, .key = 0};
  if (::getrandom(&hello.key, sizeof hello.key, 0) != sizeof hello.key) hello.key = 0;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, kName, kNameBytes);
  char digits[kKeyDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hello.key));
  std::memcpy(name.sun_path + kNameBytes, digits, kKeyDigits);
  int error = ::bind(channel, reinterpret_cast<const sockaddr*>(&name), kNameLength) < 0 ? errno : 0;
  if (error == 0) error = say_hello(channel, daemon, hello);
  if (error == 0 && (flags & O_NONBLOCK) != 0 && ::fcntl(channel, F_SETFL, O_NONBLOCK) < 0) error = errno;
  if (error != 0) {
    ::close(channel);
    return errno = error, -1;
  }
  mind_forks();
  any_channel.store(true, std::memory_order_relaxed);
  return channel;
}

bool is_connection_channel(int descriptor) {
  return any_channel.load(std::memory_order_relaxed) && key_of(descriptor).has_value();
}

bool may_be_connection_command(const void* bytes, size_t length) {
  if (!any_channel.load(std::memory_order_relaxed)) return false;
  if (length < sizeof(CommandHeader) || length > kMostCommand) return false;
  const auto header = at<CommandHeader>(bytes, 0);
  return header.command <= kLastCommand && header.in == length - sizeof header;
}

std::optional<ssize_t> run_connection_command(int descriptor, const void* bytes, size_t length) {
  const auto key = key_of(descriptor);
  if (!key) return std::nullopt;
  const auto header = at<CommandHeader>(bytes, 0);
  const size_t response = response_offset(header.command);
  if (response != 0 && length < response + sizeof(uint64_t)) return errno = EINVAL, -1;

  // What the command points to comes along.
  char extra[kMostExtra];
  Header request{static_cast<uint32_t>(length), 0, *key};
  int other = descriptor;
  if (header.command == kSetOption && length >= 32) {
    request.extra = at<uint32_t>(bytes, 28);
    if (request.extra > sizeof extra) return errno = EINVAL, -1;
    std::memcpy(extra, reinterpret_cast<const void*>(at<uint64_t>(bytes, 8)), request.extra);
  } else if (header.command == kMigrateId && length >= 24) {
    other = at<int32_t>(bytes, 20);
    const auto from = key_of(other);
    if (!from) return errno = EBADF, -1;
    request.extra = sizeof *from;
    std::memcpy(extra, &*from, sizeof *from);
  }

  for (;;) {
    if (header.command == kGetEvent) {
      char waits;
      const ssize_t got = ::recv(descriptor, &waits, 1, 0);
      if (got < 0) return -1;
      if (got == 0) return errno = ENODEV, -1;
    }
    Answer answer;
    char out[kMostAnswer];
    const int error = commands.ask(descriptor, request, bytes, extra, answer, out);
    // Another thread has destroyed the id whose event it was.
    if (error == EAGAIN && header.command == kGetEvent) continue;
    if (error != 0) return errno = error, -1;
    drop_bytes(other, answer.taken);
    if (response != 0) {
      std::memcpy(reinterpret_cast<void*>(at<uint64_t>(bytes, response)), out, std::min<size_t>(answer.length, header.out));
    }
    return static_cast<ssize_t>(length);
  }
}

}  // namespace weir
