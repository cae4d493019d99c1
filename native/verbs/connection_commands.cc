#include "verbs/connection_commands.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weir {
namespace {

struct Hello {
  uint32_t magic = 0x6d637277;
  uint32_t role;
  uint64_t key;
};
struct Answer {
  uint32_t error;
  uint32_t length;
  uint32_t taken;
  uint32_t reserved;
};

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

}  // namespace

int open_daemon(const sockaddr_un& daemon, uint32_t role, uint64_t key, int socket) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon) < 0) return errno;
  const Hello hello{.role = role, .key = key};
  uint32_t error;
  if (!send_all(socket, &hello, sizeof hello) || !receive_all(socket, &error, sizeof error)) return EIO;
  return static_cast<int>(error);
}

ConnectionAnswer ConnectionCommands::ask(const sockaddr_un& daemon, uint64_t key, const std::vector<uint8_t>& command,
                                         const std::vector<uint8_t>& extra) {
  const std::lock_guard lock(mutex_);
  const Header header{static_cast<uint32_t>(command.size()), static_cast<uint32_t>(extra.size()), key};
  ConnectionAnswer answer;
  // A connection of earlier may be one to a daemon that is gone, and there may be another.
  for (bool is_new = false; !is_new;) {
    is_new = socket_ < 0;
    if (is_new && !connect(daemon)) break;
    if (exchange(header, command, extra, answer)) return answer;
    close();
  }
  answer.error = ENODEV;
  return answer;
}

void ConnectionCommands::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool ConnectionCommands::connect(const sockaddr_un& daemon) {
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ >= 0 && open_daemon(daemon, kRoleCommands, 0, socket_) == 0) return true;
  close();
  return false;
}

bool ConnectionCommands::exchange(const Header& header, const std::vector<uint8_t>& command, const std::vector<uint8_t>& extra,
                                  ConnectionAnswer& out) const {
  Answer answer;
  if (!send_all(socket_, &header, sizeof header) || !send_all(socket_, command.data(), command.size()) ||
      !send_all(socket_, extra.data(), extra.size()) || !receive_all(socket_, &answer, sizeof answer) ||
      answer.length > kMostAnswer) {
    return false;
  }
  out.error = static_cast<int>(answer.error);
  out.taken = answer.taken;
  out.bytes.resize(answer.length);
  return receive_all(socket_, out.bytes.data(), out.bytes.size());
}

}  // namespace weir
