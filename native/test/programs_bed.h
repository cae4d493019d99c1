// Programs on NICs, all in this process: a worker with two NICs joined by a link, a broker for each as the daemon has one in
// TypeScript, and libraries of programs that find them by their sockets. It runs in real time, in the threads that there would
// be.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "endpoint/program_protocol.h"
#include "engine/worker.h"
#include "test/memory_port.h"
#include "test/nic_harness.h"
#include "verbs/provider.h"

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
      if (program != 0) nic.close_program(program);
      for (const uint32_t handle : handles) nic.destroy_address_handle(handle);
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
        opening = nic.open_program();
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
        answer.object = nic.create_queue_pair(parameters);
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
        nic.destroy_queue_pair(request.object);
        return;
      case ProgramRequest::kCreateAddressHandle:
        handles.push_back(answer.object = nic.create_address_handle(path));
        return;
      default:
        nic.destroy_address_handle(request.object);
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

struct ProgramsBed {
  // `loss`: of the frames that each NIC receives.
  explicit ProgramsBed(double loss = 0, const CongestionParameters& congestion = nic_parameters().congestion)
      : worker(config(loss, congestion), factory()) {
    worker.open();
    worker.begin(monotonic_now());
    REQUIRE(eventually([&] { return worker.ready(); }));
    char made[] = "/tmp/weir-programs-XXXXXX";
    REQUIRE(::mkdtemp(made) != nullptr);
    folder = made;
    for (size_t nic : {0, 1}) brokers[nic] = std::make_unique<TestBroker>(turns, nic, folder + "/" + std::to_string(nic));
  }
  ~ProgramsBed() {
    for (auto& broker : brokers) broker.reset();
    worker.stop();
    ::rmdir(folder.c_str());
  }
  PortFactory factory() {
    return [this](const PortConfig&, const PortClock& clock, LentPackets&) -> std::unique_ptr<PacketPort> {
      if (other != nullptr) return std::move(other);
      auto [near, far] = make_memory_pair({1024, 2048}, clock, clock);
      other = std::move(far);
      return std::move(near);
    };
  }
  static WorkerConfig config(double loss, const CongestionParameters& congestion) {
    WorkerConfig config;
    config.name = "test";
    config.packets = 4096;
    config.polling = Polling::adaptive;
    for (int i : {0, 1}) {
      NicDeviceConfig nic;
      nic.name = i == 0 ? "a" : "b";
      nic.port.name = nic.port.interface = nic.name;
      nic.port.rate = 10'000'000'000;
      if (loss > 0) {
        nic.port.impairment.emplace();
        nic.port.impairment->parameters.loss = loss;
        nic.port.impairment->component = static_cast<uint64_t>(i);
      }
      nic.parameters = nic_parameters();
      nic.parameters.mac = kMacs[i];
      nic.parameters.congestion = congestion;
      nic.parameters.verbs_queue_pairs = 64;
      nic.parameters.addresses.push_back({4, {10, 0, 0, static_cast<uint8_t>(kMacs[i])}});
      nic.arrears = kMillisecond;
      config.nics.push_back(nic);
    }
    return config;
  }
  uint64_t refused(size_t nic) {
    uint64_t count = 0;
    turns.between([&](auto& nics) { count = nics[nic]->soft_nic().transport_counters().drop_program_packet; });
    return count;
  }

  std::unique_ptr<MemoryPort> other;
  Worker worker;
  Turns turns{worker};
  std::string folder;
  std::unique_ptr<TestBroker> brokers[2];
};

// One program: what libibverbs would have of it.
struct TestProgram {
  TestProgram(ProgramsBed& bed, size_t at) : address(static_cast<uint8_t>(kMacs[at])) {
    REQUIRE(::pipe(events) == 0);
    nic = std::make_unique<ProgramNic>(bed.brokers[at]->path(), events[1]);
    own.nic = nic.get();
    own.verbs()->sz = sizeof(verbs_context);
    context = &own.verbs()->context;
    add_queue_operations(operations);
    add_posting_operations(operations);
    domain.base.context = context;
    domain.number = 1;
    completions = operations.create_cq(context, 4096, nullptr, 0);
    REQUIRE(completions != nullptr);
    completions->context = context;
  }
  ~TestProgram() {
    for (ibv_qp* qp : pairs) operations.destroy_qp(qp);
    operations.destroy_cq(completions);
    nic.reset();
    ::close(events[0]);
    ::close(events[1]);
  }
  ibv_qp* create(ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = completions;
    attributes.cap = {.max_send_wr = 512, .max_recv_wr = 512, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 256};
    attributes.qp_type = type;
    ibv_qp* qp = operations.create_qp(&domain.base, &attributes);
    REQUIRE(qp != nullptr);
    pairs.push_back(qp);
    return qp;
  }
  // Brings it to rts; a datagram queue pair has no peer.
  void connect(ibv_qp* qp, uint8_t peer_address = 0, uint32_t peer = 0) {
    const bool datagram = qp->qp_type == IBV_QPT_UD;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = 0x11111111;
    a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    REQUIRE(operations.modify_qp(qp, &a, init | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer;
    a.max_dest_rd_atomic = a.max_rd_atomic = 8;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    gid(a.ah_attr.grh.dgid, peer_address);
    const int rtr =
        IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    REQUIRE(operations.modify_qp(qp, &a, IBV_QP_STATE | (datagram ? 0 : rtr)) == 0);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 18;  // a second: the host may be busy
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    const int rts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    REQUIRE(operations.modify_qp(qp, &a, IBV_QP_STATE | (datagram ? IBV_QP_SQ_PSN : rts)) == 0);
  }
  static void gid(ibv_gid& out, uint8_t last) {
    const uint8_t bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
    std::memcpy(out.raw, bytes, sizeof bytes);
  }
  uint32_t address_handle(uint8_t peer_address) {
    ProgramRequest request;
    request.kind = ProgramRequest::kCreateAddressHandle;
    request.gid[15] = peer_address;
    return nic->ask(request).object;
  }
  uint32_t register_memory(std::vector<uint8_t>& bytes) {
    const std::lock_guard lock(nic->mutex());
    return nic->memory().add({bytes.data(), reinterpret_cast<uintptr_t>(bytes.data()), bytes.size(), 1,
                              kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic, nullptr});
  }
  static ibv_sge piece(std::vector<uint8_t>& bytes, uint32_t key) {
    return {.addr = reinterpret_cast<uintptr_t>(bytes.data()), .length = static_cast<uint32_t>(bytes.size()), .lkey = key};
  }
  int post(ibv_qp* qp, ibv_wr_opcode opcode, ibv_sge piece, uint64_t remote = 0, uint32_t key = 0, ibv_ah* ah = nullptr,
           uint32_t remote_qpn = 0, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.wr.rdma = {.remote_addr = remote, .rkey = key};
    if (ah != nullptr) wr.wr.ud = {.ah = ah, .remote_qpn = remote_qpn, .remote_qkey = 0x11111111};
    ibv_send_wr* bad = nullptr;
    return operations.post_send(qp, &wr, &bad);
  }
  int post_receive(ibv_qp* qp, ibv_sge piece, uint64_t id = 0) {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return operations.post_recv(qp, &wr, &bad);
  }
  // Accesses of the library's thread to the program's memory until now are behind it, later ones are ahead: nothing else tells a
  // program of its peer's accesses, but the peer.
  void settle() { const std::lock_guard lock(nic->mutex()); }
  // Polls without a pause, as most programs do.
  ibv_wc wait() {
    ibv_wc wc{};
    wc.status = IBV_WC_GENERAL_ERR;
    const Time patience = program_now() + 20 * kSecond;
    while (operations.poll_cq(completions, 1, &wc) == 0 && program_now() < patience) continue;
    return wc;
  }

  uint8_t address;
  int events[2] = {-1, -1};
  std::unique_ptr<ProgramNic> nic;
  ProviderContext own{};
  ibv_context* context = nullptr;
  verbs_context_ops operations{};
  ProviderDomain domain{};
  ibv_cq* completions = nullptr;
  std::vector<ibv_qp*> pairs;
};

// Two programs with a reliable connection.
struct Connected {
  Connected(ProgramsBed& bed, size_t left_nic = 0, size_t right_nic = 1) : left(bed, left_nic), right(bed, right_nic) {
    qp[0] = left.create();
    qp[1] = right.create();
    left.connect(qp[0], right.address, qp[1]->qp_num);
    right.connect(qp[1], left.address, qp[0]->qp_num);
  }
  TestProgram left;
  TestProgram right;
  ibv_qp* qp[2] = {};
};

inline std::vector<uint8_t> drawn(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> out(bytes);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>((seed = seed * 1'664'525 + 1'013'904'223) >> 24);
  return out;
}

}  // namespace weir::test
