// The daemon's end of a path that it lends to a program, and how the program reads what the daemon's NIC is like.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/struct_bytes.h"
#include "engine/lent_path.h"
#include "io/network_namespace.h"
#include "test/refusal.h"

namespace weir::test {
namespace {

struct LendingPort final : PacketPort {
  int lend(uint16_t blocks) override {
    if (!lends) return -1;
    lent = static_cast<uint16_t>(lent | blocks);
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  void take_back(uint16_t blocks) override { lent = static_cast<uint16_t>(lent & ~blocks); }

  bool lends = true;
  uint16_t lent = 0;
};

LentNicConfig named(const std::string& name) {
  LentNicConfig config;
  config.nic.name = name;
  config.packet_bytes = 4'096;
  return config;
}

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

TEST_CASE("lent path: it has the block of the port as long as it lives, and its descriptors") {
  LendingPort port;
  std::unique_ptr<LentPath> one = LentPath::lend(port, 9, named("a"));
  std::unique_ptr<LentPath> other = LentPath::lend(port, 15, named("a"));
  REQUIRE(one != nullptr);
  CHECK(one->block() == 9);
  CHECK(port.lent == (1u << 9 | 1u << 15));
  const int socket = one->socket();
  const int config = one->config();
  CHECK(is_open(socket));
  CHECK(is_open(config));
  // Nobody who is started has them by chance.
  CHECK((::fcntl(config, F_GETFD) & FD_CLOEXEC) != 0);
  one.reset();
  CHECK(port.lent == 1u << 15);
  CHECK_FALSE(is_open(socket));
  CHECK_FALSE(is_open(config));
  other.reset();
  CHECK(port.lent == 0);
}

TEST_CASE("lent path: a port that lends nothing has none") {
  LendingPort port;
  port.lends = false;
  CHECK(LentPath::lend(port, 9, named("a")) == nullptr);
  PacketPort plain_port;
  CHECK(LentPath::lend(plain_port, 9, named("a")) == nullptr);
}

TEST_CASE("lent path: the program reads what the NIC is like, also when that has become longer or shorter") {
  LendingPort port;
  const std::unique_ptr<LentPath> path = LentPath::lend(port, 9, named("a"));
  REQUIRE(path != nullptr);
  const MappedLentMemory program = map_lent_memory(path->config());
  CHECK(read_lent_config(*program).nic.name == "a");
  CHECK(read_lent_config(*program).packet_bytes == 4'096);
  for (const size_t length : {5'000, 3, 0}) {
    path->rewrite(named(std::string(length, 'x')));
    CHECK(read_lent_config(*program).nic.name == std::string(length, 'x'));
  }
}

TEST_CASE("lent path: what is not written yet, or only in part, is refused") {
  const auto memory = std::make_unique<LentMemory>();
  const auto refused = [&] { return refusal([&] { read_lent_config(*memory); }); };
  CHECK(refused() == "MALFORMED");
  ByteWriter writer;
  writer.put(named("a"));
  const uint64_t right = writer.bytes().size();
  memory->length = right;
  CHECK(refused() == "MALFORMED");
  std::ranges::copy(writer.bytes(), memory->config);
  CHECK(refused() == "");
  for (const uint64_t wrong : {uint64_t{0}, right - 1, right + 1, uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    CAPTURE(wrong);
    memory->length = wrong;
    CHECK(refused() == "MALFORMED");
  }
}

TEST_CASE("lent path: memory of another size is refused") {
  const Descriptor memory(::memfd_create("weir-test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memory.get(), sizeof(LentMemory) - 1) == 0);
  CHECK_THROWS_AS(map_lent_memory(memory.get()), NativeError);
}

}  // namespace
}  // namespace weir::test
