// A program on a NIC of a ProgramsBed: what libibverbs would have of it, without libibverbs.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "endpoint/program_protocol.h"
#include "test/programs_bed.h"
#include "verbs/provider.h"

namespace weir::test {

struct TestProgram {
  TestProgram(ProgramsBed& bed, size_t at) : address(static_cast<uint8_t>(kMacs[at])) {
    REQUIRE(::pipe(events) == 0);
    nic = std::make_unique<ProgramNic>(bed.brokers[at]->path(), events[1]);
    own.nic = nic.get();
    own.verbs()->sz = sizeof(verbs_context);
    context = &own.verbs()->context;
    add_queue_operations(operations);
    add_posting_operations(operations);
    add_shared_receive_operations(operations);
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
    const Time patience = monotonic_now() + 20 * kSecond;
    while (operations.poll_cq(completions, 1, &wc) == 0 && monotonic_now() < patience) continue;
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

// Many small messages, posted and polled without a pause: they arrive in their order.
inline void send_many(Connected& c) {
  constexpr uint32_t kMessages = 5'000;
  constexpr uint32_t kDepth = 128;
  std::vector<uint8_t> inbox(kDepth * 4);
  const uint32_t inbox_key = c.right.register_memory(inbox);
  const auto at = [&](uint32_t i) {
    return ibv_sge{.addr = reinterpret_cast<uintptr_t>(&inbox[i % kDepth * 4]), .length = 4, .lkey = inbox_key};
  };
  for (uint32_t i = 0; i < kDepth; ++i) REQUIRE(c.right.post_receive(c.qp[1], at(i), i) == 0);
  std::thread receiver([&] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const ibv_wc wc = c.right.wait();
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == i);
      uint32_t value;
      std::memcpy(&value, &inbox[i % kDepth * 4], sizeof value);
      REQUIRE(value == i);
      REQUIRE(c.right.post_receive(c.qp[1], at(i), i + kDepth) == 0);
    }
  });
  uint32_t under_way = 0;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const ibv_sge inlined{.addr = reinterpret_cast<uintptr_t>(&i), .length = 4, .lkey = 0};
    REQUIRE(c.left.post(c.qp[0], IBV_WR_SEND, inlined, 0, 0, nullptr, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0);
    for (++under_way; under_way == kDepth; --under_way) REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  }
  for (; under_way > 0; --under_way) REQUIRE(c.left.wait().status == IBV_WC_SUCCESS);
  receiver.join();
}

inline std::vector<uint8_t> drawn(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> out(bytes);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>((seed = seed * 1'664'525 + 1'013'904'223) >> 24);
  return out;
}

}  // namespace weir::test
