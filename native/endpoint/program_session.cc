#include "endpoint/program_session.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr time_t kPatience = 10;  // s; for the first answer

NativeError other_version() {
  return {"OTHER_VERSION", EPROTO, "", "the NIC's daemon is of another version of Weir", "restart weir nic after an update"};
}

}  // namespace

Session::Session(const std::string& path, bool direct) {
  try {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
      throw NativeError("INVALID_PATH", ENAMETOOLONG, "", path + ": too long for a socket", "107 characters at most");
    }
    path.copy(address.sun_path, path.size());
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
      throw NativeError::from_errno("connect", "the NIC does not answer at " + path,
                                    "start weir nic, as whoever may open its socket");
    }
    const timeval patience{kPatience, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ProgramRequest request;
    request.direct = direct ? 1 : 0;
    int descriptors[4] = {-1, -1, -1, -1};
    if (::send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request || !receive(hello_, descriptors, 4)) {
      throw NativeError("NO_ANSWER", EIO, "", "the NIC's daemon does not answer at " + path, "see its log");
    }
    constexpr timeval kWithoutEnd{0, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kWithoutEnd, sizeof kWithoutEnd);
    if (hello_.error == EPROTO) throw other_version();
    if (hello_.error != 0) {
      throw NativeError("REFUSED", static_cast<int>(hello_.error), "",
                        "the NIC takes no program: " + std::string(std::strerror(static_cast<int>(hello_.error))), "see its log");
    }
    wake_ = descriptors[1];
    path_ = {descriptors[2], descriptors[3]};
    void* at = hello_.layout != kProgramLayout || descriptors[0] < 0
                   ? MAP_FAILED
                   : ::mmap(nullptr, sizeof(ProgramMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[0], 0);
    if (descriptors[0] >= 0) ::close(descriptors[0]);
    if (at == MAP_FAILED) throw other_version();
    memory_ = static_cast<ProgramMemory*>(at);
    ::madvise(at, sizeof(ProgramMemory), MADV_DONTFORK);
  } catch (...) {
    release();
    throw;
  }
}

Session::~Session() { release(); }

void Session::release() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof *memory_);
  for (const int fd : {wake_, path_.config, path_.socket}) {
    if (fd >= 0) ::close(fd);
  }
  if (socket_ >= 0) ::close(socket_);
}

bool Session::receive(ProgramAnswer& answer, int* descriptors, size_t count) const {
  size_t got = 0;
  while (got < sizeof answer) {
    iovec bytes{reinterpret_cast<char*>(&answer) + got, sizeof answer - got};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t part = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    got += static_cast<size_t>(part);
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < sent; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        if (i < count) {
          descriptors[i] = fd;
        } else {
          ::close(fd);
        }
      }
    }
  }
  return true;
}

ProgramAnswer Session::ask(const ProgramRequest& request) {
  const std::lock_guard lock(mutex_);
  ProgramAnswer answer;
  if (::send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request || !receive(answer, nullptr, 0)) {
    answer.error = EIO;
  }
  return answer;
}

void Session::hang_up() const { ::shutdown(socket_, SHUT_RDWR); }

bool Session::ended() const {
  if (memory_->ended.load(std::memory_order_acquire) != 0) return true;
  char byte;
  const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void Session::wake_nic() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_->nic_sleeps.load(std::memory_order_relaxed) != 0) ::eventfd_write(wake_, 1);
}

void Session::tell_counters(const TransportCounters& counters) const {
  for (int i = 0; i < TransportCounters::kCount; ++i) {
    memory_->counted[i].store(counters.words()[i], std::memory_order_relaxed);
  }
}

void Session::ring_thread() const {
  memory_->bell.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &memory_->bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Session::wait_for_bell(uint32_t bell, Time duration) const {
  const timespec timeout{static_cast<time_t>(duration / kSecond), static_cast<long>(duration % kSecond)};
  ::syscall(SYS_futex, &memory_->bell, FUTEX_WAIT, bell, &timeout, nullptr, 0);
}

bool Session::ask_for_frames() const {
  memory_->returned_wanted.store(memory_->returned_written.load(std::memory_order_relaxed) + kProgramPackets,
                                 std::memory_order_relaxed);
  memory_->program_sleeps.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return memory_->frames_written.load(std::memory_order_acquire) != memory_->frames_read.load(std::memory_order_relaxed);
}

}  // namespace weir
