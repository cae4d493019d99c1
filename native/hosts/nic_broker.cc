#include "hosts/nic_broker.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr int kBacklog = 64;
constexpr size_t kMostSaid = 4096;  // bytes that are handed on at once
// The first word of a session of librdmacm (src/daemon/programs/connections.ts); that of others is the length of a request.
constexpr uint32_t kConnectionHello = 0x6d637277;

uint32_t process_at(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ? 0 : static_cast<uint32_t>(peer.pid);
}

// Sends an answer, and with that to hello the descriptors of the memory and of the eventfd.
bool send_answer(int socket, const ProgramAnswer& answer, const ProgramOpening& opening) {
  iovec bytes{const_cast<ProgramAnswer*>(&answer), sizeof answer};
  const int descriptors[] = {opening.memory, opening.wake};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (opening.number != 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof answer);
}

}  // namespace

NicBroker::NicBroker(std::string socket, const Nic& nic, SoftNic& device, FindWay find_way, HandOn hand_on,
                     FindProcess find_process)
    : path_(std::move(socket)),
      nic_(nic),
      device_(device),
      find_way_(std::move(find_way)),
      hand_on_(std::move(hand_on)),
      find_process_(std::move(find_process)),
      applications_(device, no_ports_) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) {
    throw NativeError("INVALID_PATH", ENAMETOOLONG, "", path_ + ": too long for a socket", "107 characters at most");
  }
  path_.copy(address.sun_path, path_.size());
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening_ < 0 || ::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 ||
      ::listen(listening_, kBacklog) < 0) {
    if (listening_ >= 0) ::close(listening_);
    throw NativeError::from_errno("bind", "programs cannot be served at " + path_, "make room in that folder");
  }
}

NicBroker::~NicBroker() {
  for (auto& [number, session] : sessions_) end(session);
  ::close(listening_);
  ::unlink(path_.c_str());
}

bool NicBroker::serve() {
  bool any = false;
  for (int socket; (socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    sessions_[++last_session_].socket = socket;
  }
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    const uint32_t number = at->first;
    Session& session = at->second;
    flush(session);
    if (hear(number, session, any)) {
      ++at;
      continue;
    }
    if (session.connects) hand_on_({.kind = HostNews::Kind::gone, .session = number});
    end(session);
    at = sessions_.erase(at);
  }
  return any;
}

// Takes in what a program has said; false: its session is over.
bool NicBroker::hear(uint32_t number, Session& session, bool& any) {
  for (ProgramRequest request;;) {
    const ssize_t got = ::recv(session.socket, &request, sizeof request, MSG_DONTWAIT | MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    any = true;
    session.connects |=
        session.program == 0 && got >= static_cast<ssize_t>(sizeof kConnectionHello) && request.bytes == kConnectionHello;
    if (session.connects) {
      if (got <= 0 || !hear_connections(number, session)) return false;
      continue;
    }
    // A request is sent whole.
    if (got != static_cast<ssize_t>(sizeof request)) return false;
    (void)!::recv(session.socket, &request, sizeof request, MSG_DONTWAIT);
    ProgramOpening opening;
    const ProgramAnswer told = answer(session, request, opening);
    if (!send_answer(session.socket, told, opening)) return false;
  }
}

bool NicBroker::hear_connections(uint32_t number, Session& session) {
  HostNews news{.kind = HostNews::Kind::said, .session = number, .process = process_at(session.socket)};
  news.bytes.resize(kMostSaid);
  const ssize_t got = ::recv(session.socket, news.bytes.data(), news.bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return false;
  news.bytes.resize(static_cast<size_t>(got));
  hand_on_(std::move(news));
  return true;
}

void NicBroker::tell(uint32_t number, std::span<const uint8_t> bytes) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  session.unsent.insert(session.unsent.end(), bytes.begin(), bytes.end());
  flush(session);
}

void NicBroker::flush(Session& session) {
  if (session.unsent.empty()) return;
  const ssize_t sent = ::send(session.socket, session.unsent.data(), session.unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) session.unsent.erase(session.unsent.begin(), session.unsent.begin() + sent);
}

void NicBroker::end_session(uint32_t number) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  end(found->second);
  sessions_.erase(found);
}

void NicBroker::end(Session& session) {
  if (session.program != 0) applications_.close_program(session.program);
  processes_.erase(session.program);
  for (const uint32_t handle : session.handles) applications_.destroy_address_handle(handle);
  ::close(session.socket);
}

ProgramAnswer NicBroker::answer(Session& session, const ProgramRequest& request, ProgramOpening& opening) {
  ProgramAnswer told;
  const auto kind = known<ProgramRequest::Kind>(request.kind);
  if (request.bytes != sizeof request || !kind || (session.program == 0) != (*kind == ProgramRequest::kHello)) {
    told.error = EPROTO;
    return told;
  }
  const bool owns = session.program != 0 && applications_.owner(request.object) == session.program;
  try {
    switch (*kind) {
      case ProgramRequest::kHello:
        opening = applications_.open_program();
        session.program = opening.number;
        processes_[opening.number] = find_process_();
        told.layout = kProgramLayout;
        told.path_mtu = nic_.path_mtu;
        told.mac = nic_.mac;
        told.rate = static_cast<uint64_t>(nic_.rate);
        break;
      case ProgramRequest::kCreateQueuePair: {
        VerbsQueuePairParameters parameters;
        parameters.datagram = request.datagram != 0;
        parameters.unreliable = request.unreliable != 0;
        parameters.send_depth = parameters.receive_depth = 1;
        parameters.program = session.program;
        told.object = applications_.create_queue_pair(parameters);
        break;
      }
      case ProgramRequest::kModifyQueuePair:
        if (!owns) {
          told.error = ENOENT;
          break;
        }
        return modify(request);
      case ProgramRequest::kDestroyQueuePair:
        if (owns) applications_.destroy_queue_pair(request.object);
        told.error = owns ? 0 : ENOENT;
        break;
      case ProgramRequest::kCreateAddressHandle: {
        const std::optional<Way> way = find_way_(request, session.program);
        if (!way) {
          told.error = EHOSTUNREACH;
        } else if (session.handles.size() >= kProgramAddressHandles) {
          told.error = ENOMEM;
        } else {
          told.object = applications_.create_address_handle(way->path);
          told.mac = way->path.destination_mac;
          session.handles.insert(told.object);
        }
        break;
      }
      case ProgramRequest::kDestroyAddressHandle:
        if (session.handles.erase(request.object) == 0) {
          told.error = ENOENT;
        } else {
          applications_.destroy_address_handle(request.object);
        }
        break;
      default:
        // Groups: switches of a simulation have none.
        told.error = EOPNOTSUPP;
    }
  } catch (const NativeError& refused) {
    told.error = refused.code == "NO_RESOURCES" ? ENOMEM
                 : refused.error_number != 0    ? static_cast<uint32_t>(refused.error_number)
                                                : EINVAL;
  }
  return told;
}

ProgramAnswer NicBroker::modify(const ProgramRequest& request) {
  ProgramAnswer told;
  const auto state = known<QueuePairState>(request.state);
  const QueuePair* const pair = device_.applications().find(request.object);
  if (!state || pair == nullptr || request.remote_qpn > 0xffffff || request.partition_key > 0xffff) {
    told.error = EINVAL;
    return told;
  }
  Way way;
  way.priority = static_cast<uint8_t>(request.service_level % kPriorities);
  way.path.source_mac = nic_.mac;
  std::memcpy(way.path.source_ip, nic_.ip, sizeof nic_.ip);
  if (*state == QueuePairState::rtr && !pair->datagram()) {
    const std::optional<Way> found = find_way_(request, request.object);
    if (!found || request.path_mtu > nic_.path_mtu) {
      told.error = found ? EINVAL : EHOSTUNREACH;
      return told;
    }
    way = *found;
  }
  // Attributes that concern the transport alone are the program's own.
  QueueAttributes attributes;
  attributes.path_mtu = request.path_mtu;
  attributes.remote_qpn = request.remote_qpn;
  attributes.partition_key = static_cast<uint16_t>(request.partition_key);
  attributes.receive_psn = request.receive_psn & 0xffffff;
  device_.applications().modify(request.object, *state, attributes, way.path, way.priority, 0);
  return told;
}

}  // namespace weir
