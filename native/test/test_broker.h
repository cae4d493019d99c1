// Does for a NIC what the daemon's broker for programs does in TypeScript.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "endpoint/program_protocol.h"
#include "engine/worker.h"
#include "test/nic_harness.h"

namespace weir::test {

inline bool eventually(const std::function<bool()>& done) {
  for (int i = 0; i < 20'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

inline constexpr uint64_t kMacs[2] = {kNicMac, kPeerMac};

// The daemon asks the worker for something from one thread, this process from several.
class Turns {
 public:
  explicit Turns(Worker& worker) : worker_(worker) {}
  void between(const std::function<void(std::vector<std::unique_ptr<NicDevice>>&)>& action) {
    const std::lock_guard lock(mutex_);
    worker_.between_turns([&] { action(worker_.nics()); });
  }

 private:
  Worker& worker_;
  std::mutex mutex_;
};

// Does the work of the daemon's broker, for one NIC. Peers are known by the last byte of their address. `lends`: programs that
// ask for paths of their own get them, as long as there are any.
class TestBroker {
 public:
  TestBroker(Turns& turns, size_t nic, std::string path, bool lends = false)
      : turns_(turns), nic_(nic), path_(std::move(path)), lends_(lends) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listening_, 16) == 0);
    thread_ = std::thread([this] { accept(); });
  }
  ~TestBroker() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    hang_up();
    for (std::thread& one : serving_) one.join();
    ::close(listening_);
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  // Ends as when all of its programs had ended, or it had.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }

 private:
  void accept() {
    for (int socket; (socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket);
      serving_.emplace_back([this, socket] { serve(socket); });
    }
  }
  void serve(int socket) {
    uint32_t program = 0;
    int block = -1;
    std::vector<uint32_t> handles;
    for (ProgramRequest request; ::recv(socket, &request, sizeof request, MSG_WAITALL) == sizeof request;) {
      ProgramAnswer answer;
      ProgramOpening opening;
      LentDescriptors lent;
      turns_.between([&](auto& nics) {
        try {
          NicDevice& nic = *nics[nic_];
          serve(nic, request, answer, program, opening, handles);
          if (opening.number != 0 && lends_ && request.direct != 0) lent = nic.lend_path(program);
          if (lent.block >= 0) block = lent.block;
          // Its own path leads to others on the wire alone.
          const bool connects = request.kind == ProgramRequest::kModifyQueuePair && request.datagram == 0 &&
                                static_cast<QueuePairState>(request.state) == QueuePairState::rtr;
          const RocePath path = way_to(request);
          if (connects && block == static_cast<int>(lent_block_of(request.object)) && path.destination_mac != kMacs[nic_]) {
            answer.direct = 1;
            answer.priority = kPriority;
            answer.path = path;
          }
        } catch (const NativeError& refused) {
          answer.error = refused.error_number != 0 ? static_cast<uint32_t>(refused.error_number) : EINVAL;
        }
      });
      send(socket, answer, opening, lent);
    }
    turns_.between([&](auto& nics) {
      NicDevice& nic = *nics[nic_];
      if (program != 0) nic.applications()->close_program(program);
      for (const uint32_t handle : handles) nic.applications()->destroy_address_handle(handle);
    });
    const std::lock_guard lock(mutex_);
    std::erase(sockets_, socket);
    ::close(socket);
  }
  RocePath way_to(const ProgramRequest& request) const {
    return path_to(kMacs[request.gid[15] == static_cast<uint8_t>(kNicMac) ? 0 : 1], kMacs[nic_]);
  }
  void serve(NicDevice& nic, const ProgramRequest& request, ProgramAnswer& answer, uint32_t& program, ProgramOpening& opening,
             std::vector<uint32_t>& handles) const {
    const RocePath path = way_to(request);
    switch (request.kind) {
      case ProgramRequest::kHello:
        opening = nic.applications()->open_program();
        program = opening.number;
        answer.layout = kProgramLayout;
        answer.path_mtu = 1024;
        answer.mac = kMacs[nic_];
        answer.rate = nic.soft_nic().line_rate();
        return;
      case ProgramRequest::kCreateQueuePair: {
        VerbsQueuePairParameters parameters;
        parameters.datagram = request.datagram != 0;
        parameters.send_depth = parameters.receive_depth = 1;
        parameters.program = program;
        answer.object = nic.applications()->create_queue_pair(parameters);
        return;
      }
      case ProgramRequest::kModifyQueuePair: {
        QueueAttributes attributes;
        attributes.path_mtu = request.path_mtu;
        attributes.remote_qpn = request.remote_qpn;
        nic.soft_nic().applications().modify(request.object, static_cast<QueuePairState>(request.state), attributes, path,
                                             kPriority, 0);
        return;
      }
      case ProgramRequest::kDestroyQueuePair:
        nic.applications()->destroy_queue_pair(request.object);
        return;
      case ProgramRequest::kCreateAddressHandle:
        handles.push_back(answer.object = nic.applications()->create_address_handle(path));
        return;
      default:
        nic.applications()->destroy_address_handle(request.object);
        std::erase(handles, request.object);
    }
  }
  static void send(int socket, const ProgramAnswer& answer, const ProgramOpening& opening, const LentDescriptors& lent) {
    iovec bytes{const_cast<ProgramAnswer*>(&answer), sizeof answer};
    const int descriptors[4] = {opening.memory, opening.wake, lent.config, lent.socket};
    const size_t passed = (lent.block >= 0 ? 4 : 2) * sizeof(int);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (opening.number != 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(passed);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(passed);
      std::memcpy(CMSG_DATA(header), descriptors, passed);
    }
    (void)!::sendmsg(socket, &message, MSG_NOSIGNAL);
  }

  static constexpr uint8_t kPriority = 3;

  Turns& turns_;
  size_t nic_;
  std::string path_;
  bool lends_;
  int listening_ = -1;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> serving_;
};

}  // namespace weir::test
