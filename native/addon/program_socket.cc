#include "addon/program_socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "addon/wrap.h"
#include "endpoint/program_protocol.h"
#include "engine/nic_programs.h"
#include "transport/program_rings.h"

namespace weir {
namespace {

constexpr size_t kMostDescriptors = 4;

PeerCredentials peer_credentials(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
    throw NativeError::from_errno("getsockopt", "the socket does not tell who has connected", "use a unix socket");
  }
  return {static_cast<uint32_t>(peer.pid), peer.uid, peer.gid};
}

// Unlike opening it under /proc, this is the same for sockets, too.
int take_descriptor(int pid, int number) {
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const int taken = process < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_getfd, process, number, 0));
  const int error = errno;
  if (process >= 0) ::close(process);
  errno = error;
  if (taken < 0) {
    throw NativeError::from_errno("pidfd_getfd", "standard streams of another process cannot be had",
                                  "Linux 5.6 or later, and a process that may trace the other one");
  }
  return taken;
}

double request_bytes() { return sizeof(ProgramRequest); }

double most_programs() { return NicPrograms::kMost; }

ProgramRequest read_request(std::span<uint8_t> bytes) {
  ProgramRequest request;
  std::memcpy(&request, bytes.data(), std::min(bytes.size(), sizeof request));
  return request;
}

// False if it could not be sent whole.
bool answer(int socket, ProgramAnswer answer, const std::vector<int>& descriptors) {
  answer.layout = kProgramLayout;
  iovec bytes{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (const size_t count = std::min(descriptors.size(), kMostDescriptors); count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), count * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof answer;
}

}  // namespace

void define_program_socket(Napi::Object& exports) {
  add_function<&peer_credentials, "peerCredentials(socket)">(exports);
  add_function<&take_descriptor, "takeDescriptor(pid, number)">(exports);
  add_function<&request_bytes, "programRequestBytes()">(exports);
  add_function<&most_programs, "mostPrograms()">(exports);
  add_function<&read_request, "readProgramRequest(bytes)">(exports);
  add_function<&answer, "answerProgram(socket, answer, descriptors)">(exports);
}

}  // namespace weir
