// Work that programs post: lists of pieces, inline data, neither of which takes memory that was not there with the queue.
#include <atomic>
#include <cstdlib>
#include <new>

#include "test/programs_bed.h"
#include "test/test_program.h"

namespace {

std::atomic<uint64_t> taken{0};  // times that memory was taken, by any thread

void* take(size_t bytes) {
  taken.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// These are the whole test program's.
void* operator new(size_t bytes) { return take(bytes); }
void* operator new[](size_t bytes) { return take(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return take(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return take(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace weir::test {
namespace {

// `bytes` of memory in pieces of these lengths, in turn.
std::vector<ibv_sge> pieces(std::vector<uint8_t>& bytes, uint32_t key, const std::vector<uint32_t>& lengths) {
  std::vector<ibv_sge> out;
  auto at = reinterpret_cast<uintptr_t>(bytes.data());
  for (const uint32_t length : lengths) {
    out.push_back({.addr = at, .length = length, .lkey = key});
    at += length;
  }
  return out;
}

// Memory that it may reach outlives it: on its way to its end it still serves its peer.
struct Posting {
  explicit Posting(double loss = 0) : bed(loss), c(bed) {}

  int send(ibv_wr_opcode opcode, std::vector<ibv_sge>& list, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.wr.rdma = {.remote_addr = remote, .rkey = remote_key};
    ibv_send_wr* bad = nullptr;
    return c.left.operations.post_send(c.qp[0], &wr, &bad);
  }
  int receive(std::vector<ibv_sge>& list) {
    ibv_recv_wr wr{};
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    return c.right.operations.post_recv(c.qp[1], &wr, &bad);
  }
  void expose(std::vector<uint8_t>& bytes) {
    remote = reinterpret_cast<uintptr_t>(bytes.data());
    remote_key = c.right.register_memory(bytes);
  }

  ProgramsBed bed;
  Connected c;
  uint64_t remote = 0;
  uint32_t remote_key = 0;
};

TEST_CASE("posting: lists of pieces are gathered and scattered packet by packet, also what is sent again") {
  for (const double loss : {0.0, 0.02}) {
    std::vector<uint8_t> here = drawn(50'000, 1);
    std::vector<uint8_t> there(here.size());
    std::vector<uint8_t> back(here.size());
    Posting p(loss);
    // Their borders are not those of packets.
    auto from = pieces(here, p.c.left.register_memory(here), {1, 1'023, 0, 48'976});
    auto to = pieces(there, p.c.right.register_memory(there), {30'001, 19'000, 999});
    p.expose(there);
    REQUIRE(p.receive(to) == 0);
    REQUIRE(p.send(IBV_WR_SEND, from) == 0);
    REQUIRE(p.c.left.wait().status == IBV_WC_SUCCESS);
    CHECK(p.c.right.wait().byte_len == here.size());
    CHECK(there == here);
    auto into = pieces(back, p.c.left.register_memory(back), {7, 49'993});
    REQUIRE(p.send(IBV_WR_RDMA_READ, into) == 0);
    REQUIRE(p.c.left.wait().status == IBV_WC_SUCCESS);
    CHECK(back == here);
    p.c.right.settle();
    std::fill(there.begin(), there.end(), 0);
    p.c.right.settle();
    REQUIRE(p.send(IBV_WR_RDMA_WRITE, from) == 0);
    REQUIRE(p.c.left.wait().status == IBV_WC_SUCCESS);
    p.c.right.settle();
    CHECK(there == here);
  }
}

TEST_CASE("posting: a piece that is nobody's memory fails the request that it is of") {
  for (const auto opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    CAPTURE(opcode);
    std::vector<uint8_t> here = drawn(3'000, 2);
    std::vector<uint8_t> there(here.size());
    Posting p;
    p.expose(there);
    auto list = pieces(here, p.c.left.register_memory(here), {2'000, 1'000});
    list[1].addr += 1;  // ends behind what is registered
    REQUIRE(p.send(opcode, list) == 0);
    CHECK(p.c.left.wait().status == IBV_WC_LOC_PROT_ERR);
  }
}

TEST_CASE("posting: as many as the queues hold wait at once, each with its own list or inline data") {
  constexpr uint32_t kDepth = 512;
  std::vector<uint8_t> here = drawn(kDepth * 8, 4);
  std::vector<uint8_t> there(kDepth * 8);
  Posting p;
  const uint32_t key = p.c.right.register_memory(there);
  for (uint32_t i = 0; i < kDepth; ++i) {
    const auto at = reinterpret_cast<uintptr_t>(there.data()) + i * 8;
    std::vector<ibv_sge> list = {{.addr = at, .length = 3, .lkey = key}, {.addr = at + 3, .length = 5, .lkey = key}};
    REQUIRE(p.receive(list) == 0);
    if (i + 1 == kDepth) CHECK(p.receive(list) == ENOMEM);
  }
  const uint32_t own = p.c.left.register_memory(here);
  for (uint32_t i = 0; i < kDepth; ++i) {
    const auto at = reinterpret_cast<uintptr_t>(here.data()) + i * 8;
    std::vector<ibv_sge> list = {{.addr = at, .length = 6, .lkey = own}, {.addr = at + 6, .length = 2, .lkey = own}};
    const unsigned flags = i % 2 == 0 ? IBV_SEND_SIGNALED : IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    REQUIRE(p.send(IBV_WR_SEND, list, flags) == 0);
  }
  for (uint32_t i = 0; i < kDepth; ++i) {
    REQUIRE(p.c.left.wait().status == IBV_WC_SUCCESS);
    REQUIRE(p.c.right.wait().status == IBV_WC_SUCCESS);
  }
  CHECK(there == here);
}

TEST_CASE("posting: neither posting nor polling takes memory, in the program and in the daemon") {
  std::vector<uint8_t> here = drawn(20'000, 5);
  std::vector<uint8_t> there(here.size());
  std::vector<uint8_t> inbox(here.size());
  Posting p;
  p.expose(there);
  auto whole = pieces(here, p.c.left.register_memory(here), {20'000});
  auto from = pieces(here, whole[0].lkey, {10'000, 5'000, 4'999, 1});
  auto little = pieces(here, whole[0].lkey, {20, 100});
  auto to = pieces(inbox, p.c.right.register_memory(inbox), {1'001, 18'999});
  const auto round = [&] {
    for (int i = 0; i < 4; ++i) REQUIRE(p.receive(to) == 0);
    REQUIRE(p.send(IBV_WR_SEND, little, IBV_SEND_INLINE) == 0);
    REQUIRE(p.send(IBV_WR_SEND, from, 0) == 0);
    REQUIRE(p.send(IBV_WR_SEND, whole, 0) == 0);
    REQUIRE(p.send(IBV_WR_RDMA_WRITE, from, 0) == 0);
    REQUIRE(p.send(IBV_WR_RDMA_READ, from, 0) == 0);
    REQUIRE(p.send(IBV_WR_SEND, little) == 0);
    REQUIRE(p.c.left.wait().status == IBV_WC_SUCCESS);
    for (int i = 0; i < 4; ++i) REQUIRE(p.c.right.wait().status == IBV_WC_SUCCESS);
  };
  for (int i = 0; i < 20; ++i) round();
  const uint64_t before = taken;
  for (int i = 0; i < 200; ++i) round();
  CHECK(taken - before == 0);
}

}  // namespace
}  // namespace weir::test
