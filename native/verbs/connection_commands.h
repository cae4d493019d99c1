// Carries librdmacm's commands to a NIC's daemon, and its answers back; src/daemon/programs/connections.ts has the messages.
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace weir {

inline constexpr size_t kMostCommand = 512;
inline constexpr size_t kMostExtra = 512;
inline constexpr size_t kMostAnswer = 512;

struct ConnectionAnswer {
  int error = 0;       // errno
  uint32_t taken = 0;  // bytes of a channel that have no event any more
  std::vector<uint8_t> bytes;
};

// A socket to the daemon, as what `hello` says. errno; 0: it agrees.
int open_daemon(const sockaddr_un& daemon, uint32_t role, uint64_t key, int socket);
inline constexpr uint32_t kRoleChannel = 0;
inline constexpr uint32_t kRoleCommands = 1;

// The process's connection to one daemon for commands of all channels.
class ConnectionCommands {
 public:
  // `error` is ENODEV when the daemon is gone. `extra` is what the command points to.
  ConnectionAnswer ask(const sockaddr_un& daemon, uint64_t key, const std::vector<uint8_t>& command,
                       const std::vector<uint8_t>& extra);

  // A child has connections of its own, by which nobody else asks.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void close();

 private:
  struct Header {
    uint32_t length;
    uint32_t extra;
    uint64_t key;
  };
  bool connect(const sockaddr_un& daemon);
  bool exchange(const Header& header, const std::vector<uint8_t>& command, const std::vector<uint8_t>& extra,
                ConnectionAnswer& answer) const;

  std::mutex mutex_;
  int socket_ = -1;
};

}  // namespace weir
