// Memory of a program: what is registered, and what touching it does. test/live shows the effect of faults, for doctest handles
// the signals itself.
#include <sys/mman.h>

#include <vector>

#include "test/programs_bed.h"
#include "test/test_program.h"
#include "verbs/touch.h"

namespace weir::test {
namespace {

constexpr size_t kPage = 4'096;

// Pages with these protections, side by side.
struct Pages {
  explicit Pages(const std::vector<int>& protections) : bytes(protections.size() * kPage) {
    void* made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(made != MAP_FAILED);
    at = static_cast<uint8_t*>(made);
    for (size_t i = 0; i < protections.size(); ++i) protect(i, protections[i]);
  }
  ~Pages() { ::munmap(at, bytes); }
  void protect(size_t page, int protection) { REQUIRE(::mprotect(at + page * kPage, kPage, protection) == 0); }

  uint8_t* at = nullptr;
  size_t bytes;
};

TEST_CASE("touch: to write changes nothing, also while others write") {
  alignas(64) static std::atomic<uint8_t> bytes[2];
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) is_there(reinterpret_cast<uint8_t*>(bytes), 2, true);
  });
  for (uint32_t i = 0; i < 100'000; ++i) {
    const auto value = static_cast<uint8_t>(i);
    bytes[0].store(value);
    bytes[1].store(value);
    REQUIRE(bytes[0].load() == value);
    REQUIRE(bytes[1].load() == value);
  }
  ends = true;
  other.join();
}

struct Registering {
  Registering() : program(bed, 0) { add_memory_operations(program.operations); }
  // errno; 0: it was registered.
  int refused(const void* at, size_t length, int access) {
    auto* address = const_cast<void*>(at);
    ibv_mr* mr = program.operations.reg_mr(&program.domain.base, address, length, reinterpret_cast<uintptr_t>(at), access);
    if (mr == nullptr) return errno;
    mr->context = program.context;
    mr->pd = &program.domain.base;
    REQUIRE(program.operations.dereg_mr(reinterpret_cast<verbs_mr*>(mr)) == 0);
    return 0;
  }
  ProgramsBed bed;
  TestProgram program;
};

TEST_CASE("programs: memory is registered for what it may be used for") {
  Registering r;
  const Pages pages({PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE});
  const int writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  CHECK(r.refused(pages.at, 2 * kPage, writes) == 0);
  CHECK(r.refused(pages.at + 1, 2 * kPage - 1, IBV_ACCESS_LOCAL_WRITE) == 0);
  CHECK(r.refused(pages.at + 1, 2 * kPage, writes) == EFAULT);
  CHECK(r.refused(pages.at, 3 * kPage, IBV_ACCESS_REMOTE_READ) == 0);
  CHECK(r.refused(pages.at, 3 * kPage, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(r.refused(pages.at + 2 * kPage, kPage, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(r.refused(pages.at + 2 * kPage, kPage, IBV_ACCESS_MW_BIND) == EFAULT);
  CHECK(r.refused(pages.at + 2 * kPage, kPage, 0) == 0);
  CHECK(r.refused(pages.at, 4 * kPage, 0) == EFAULT);
  CHECK(r.refused(reinterpret_cast<void*>(0xffff'ffff'ffff'f000), 0x2000, 0) == EINVAL);
  CHECK(r.refused(pages.at, SIZE_MAX, 0) == EINVAL);
  CHECK(r.refused(reinterpret_cast<void*>(0xffff'0000'0000'0000), kPage, 0) == EFAULT);
  CHECK(r.refused(nullptr, kPage, 0) == EFAULT);
}

}  // namespace
}  // namespace weir::test
