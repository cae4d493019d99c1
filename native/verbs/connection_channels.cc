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
#include <utility>

#include "verbs/connection_nics.h"
#include "verbs/connection_pump.h"
#include "verbs/connection_requests.h"

namespace weir {
namespace {

// A channel's socket has a name of its own, in the abstract namespace, with the key by which commands name the channel: so
// whoever has a descriptor knows what it is, also after dup and fork, and nothing has to be remembered.
constexpr char kName[] = "\0weir-rdma-cm-";
constexpr size_t kNameBytes = sizeof kName - 1;
constexpr size_t kKeyDigits = 16;
constexpr socklen_t kNameLength = offsetof(sockaddr_un, sun_path) + kNameBytes + kKeyDigits;

std::atomic<bool> any_channel{false};
// It is never destroyed, as threads of the program run while it ends.
ConnectionPump& pump = *new ConnectionPump(untold_removals);

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

// Locks are taken in the order in which the pump takes them when it hands events on.
void mind_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(
        [] {
          pump.lock();
          lock_connection_requests();
        },
        [] {
          unlock_connection_requests(false);
          pump.unlock();
        },
        [] {
          unlock_connection_requests(true);
          pump.forked();
          pump.unlock();
        });
  });
}

// Names a socket by a key that nobody has: processes whose random numbers are alike, as in virtual time, may draw the same.
// errno; 0: it has a name.
int take_name(int socket, uint64_t& key) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, kName, kNameBytes);
  do {
    if (::getrandom(&key, sizeof key, 0) != sizeof key) return EAGAIN;
    char digits[kKeyDigits + 1];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(key));
    std::memcpy(name.sun_path + kNameBytes, digits, kKeyDigits);
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), kNameLength) == 0) return 0;
  } while (errno == EADDRINUSE);
  return errno;
}

// Bytes whose events are gone. With several NICs they are on their way yet: a reader of them finds that nothing waits.
void drop_bytes(int channel, uint32_t count) {
  char byte;
  while (count > 0 && !has_several_nics() && ::recv(channel, &byte, 1, MSG_DONTWAIT) == 1) --count;
}

// Returns the event that waits on a channel, or comes next. An errno of recv(2), or ENODEV when nothing more will.
ConnectionAnswer wait_for_event(int descriptor, uint64_t key) {
  const bool several = has_several_nics();
  if (several) pump.ensure();
  for (;;) {
    uint8_t waits;
    const ssize_t got = ::recv(descriptor, &waits, 1, 0);
    if (got < 0) return {.error = errno, .taken = 0, .bytes = {}};
    if (got == 0) return several ? ConnectionAnswer{.error = ENODEV, .taken = 0, .bytes = {}} : connection_removal(key, 0);
    const size_t nic = several ? waits & ~kGone : 0;
    const bool is_gone = several && (waits & kGone) != 0;
    ConnectionAnswer answer = is_gone ? connection_removal(key, nic) : next_connection_event(key, nic);
    if (answer.error == ENODEV && !several) return connection_removal(key, nic);
    // Another thread has destroyed the id whose event it was, or it is said elsewhere that the NIC is gone.
    if (answer.error != EAGAIN && answer.error != ENODEV) return answer;
  }
}

}  // namespace

int open_connection_channel(int flags) {
  const std::vector<ConnectionNic>& nics = connection_nics();
  if (nics.empty()) return errno = ENOENT, -1;
  const int type = SOCK_STREAM | SOCK_CLOEXEC;
  int ends[2] = {-1, -1};
  if (has_several_nics() ? ::socketpair(AF_UNIX, type, 0, ends) < 0 : (ends[0] = ::socket(AF_UNIX, type, 0)) < 0) return -1;
  uint64_t key = 0;
  int error = take_name(ends[0], key);
  if (error == 0 && has_several_nics()) {
    // The NICs that answer are those that there are.
    std::vector<int> sockets(nics.size(), -1);
    error = ENODEV;
    for (size_t nic = 0; nic < nics.size(); ++nic) {
      const int socket = ::socket(AF_UNIX, type, 0);
      const int refused = socket < 0 ? errno : open_daemon(nics[nic].daemon, kRoleChannel, key, socket);
      if (refused == 0) {
        sockets[nic] = socket;
        error = 0;
      } else if (socket >= 0) {
        ::close(socket);
      }
    }
    if (error == 0) error = pump.add(key, std::exchange(ends[1], -1), sockets);
  } else if (error == 0) {
    error = open_daemon(nics[0].daemon, kRoleChannel, key, ends[0]);
  }
  if (error == 0 && (flags & O_CLOEXEC) == 0 && ::fcntl(ends[0], F_SETFD, 0) < 0) error = errno;
  if (error == 0 && (flags & O_NONBLOCK) != 0 && ::fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) error = errno;
  if (error != 0) {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
    return errno = error, -1;
  }
  mind_forks();
  any_channel.store(true, std::memory_order_relaxed);
  return ends[0];
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
  const uint32_t command = header.command;
  const size_t response = response_offset(command);
  const size_t id = id_offset(command);
  if ((response != 0 && length < response + sizeof(uint64_t)) || (id != 0 && length < id + sizeof(uint32_t))) {
    return errno = EINVAL, -1;
  }
  const auto answered = [&](const ConnectionAnswer& answer) -> ssize_t {
    if (answer.error != 0) return errno = answer.error, -1;
    const size_t room = std::min<size_t>(answer.bytes.size(), header.out);
    if (response != 0) std::memcpy(reinterpret_cast<void*>(at<uint64_t>(bytes, response)), answer.bytes.data(), room);
    return static_cast<ssize_t>(length);
  };
  if (command == kGetEvent) return answered(wait_for_event(descriptor, *key));

  const auto* from = static_cast<const uint8_t*>(bytes);
  ConnectionRequest request{*key, header, Bytes(from, from + length), {}};
  if (id != 0) request.id = at<uint32_t>(bytes, id);
  int other = descriptor;  // channel whose events go
  // The data that the command points to come along.
  if (command == kSetOption && length >= 32) {
    const auto count = at<uint32_t>(bytes, 28);
    if (count > kMostExtra) return errno = EINVAL, -1;
    const auto* value = reinterpret_cast<const uint8_t*>(at<uint64_t>(bytes, 8));
    request.extra.assign(value, value + count);
  } else if (command == kMigrateId && length >= 24) {
    other = at<int32_t>(bytes, 20);
    const auto from_key = key_of(other);
    if (!from_key) return errno = EBADF, -1;
    request.extra.resize(sizeof *from_key);
    put(request.extra, 0, *from_key);
  }
  const ConnectionAnswer answer = run_connection_request(request);
  if (answer.error == 0) drop_bytes(other, answer.taken);
  return answered(answer);
}

}  // namespace weir
