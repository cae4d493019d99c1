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

// Does the work of the daemon's broker, for one NIC. Peers are known by the last byte of their address.
class TestBroker {
 public:
  TestBroker(Turns& turns, size_t nic, std::string path) : turns_(turns), nic_(nic), path_(std::move(path)) {
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
    std::vector<uint32_t> handles;
    for (ProgramRequest request; ::recv(socket, &request, sizeof request, MSG_WAITALL) == sizeof request;) {
      ProgramAnswer answer;
      ProgramOpening opening;
      turns_.between([&](auto& nics) {
        try {
          serve(*nics[nic_], request, answer, program, opening, handles);
        } catch (const NativeError& refused) {
          answer.error = refused.error_number != 0 ? static_cast<uint32_t>(refused.error_number) : EINVAL;
        }
      });
      send(socket, answer, opening);
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
  void serve(NicDevice& nic, const ProgramRequest& request, ProgramAnswer& answer, uint32_t& program, ProgramOpening& opening,
             std::vector<uint32_t>& handles) const {
    const RocePath path = path_to(kMacs[request.gid[15] == static_cast<uint8_t>(kNicMac) ? 0 : 1], kMacs[nic_]);
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
        nic.soft_nic().applications().modify(request.object, static_cast<QueuePairState>(request.state), attributes, path, 3, 0);
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
  static void send(int socket, const ProgramAnswer& answer, const ProgramOpening& opening) {
    iovec bytes{const_cast<ProgramAnswer*>(&answer), sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (opening.number != 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(2 * sizeof(int));
      const int descriptors[2] = {opening.memory, opening.wake};
      std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    }
    (void)!::sendmsg(socket, &message, MSG_NOSIGNAL);
  }

  Turns& turns_;
  size_t nic_;
  std::string path_;
  int listening_ = -1;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> serving_;
};

}  // namespace weir::test
