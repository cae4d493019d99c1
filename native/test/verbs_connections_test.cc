// The preloaded library's work on librdmacm with several NICs, but for asking their daemons: which NIC reaches whom, what is
// known of ids, and how events of all come to one descriptor.
#include <doctest/doctest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "verbs/connection_ids.h"
#include "verbs/connection_nics.h"
#include "verbs/connection_pump.h"

namespace weir::test {
namespace {

NicAddress ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}; }
NicAddress ipv6(uint8_t net, uint8_t host) { return {0xfd, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}; }

struct Files {
  Files() {
    char made[] = "/tmp/weir-nics-XXXXXX";
    REQUIRE(::mkdtemp(made) != nullptr);
    root = made;
  }
  ~Files() { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  }
  void gid(const std::string& nic, int index, const std::string& text) const {
    write("class/infiniband/" + nic + "/ports/1/gids/" + std::to_string(index), text);
  }

  std::filesystem::path root;
};

// Files are as `weir run` writes them: NIC a has 10.66.0.1 and fd66::1, with a place between them that is free, and b 10.67.0.1.
// Addresses of these networks are of no host's kernel here.
const Files& files() {
  static const Files all;
  return all;
}
const std::vector<ConnectionNic>& two_nics() {
  static const bool written = [] {
    const Files& all = files();
    for (const std::string name : {"a", "b"}) {
      const std::string number = name == "a" ? "0" : "1";
      all.write("class/infiniband_verbs/uverbs" + number + "/ibdev", name);
      all.write("class/infiniband/" + name + "/weir_socket", "/run/" + name);
      all.gid(name, 0, "0000:0000:0000:0000:0000:ffff:0a4" + std::string(name == "a" ? "2" : "3") + ":0001");
    }
    all.gid("a", 1, "0000:0000:0000:0000:0000:0000:0000:0000");
    all.gid("a", 2, "fd66:0000:0000:0000:0000:0000:0000:0001");
    ::setenv("SYSFS_PATH", all.root.c_str(), 1);
    (void)connection_nics();
    ::unsetenv("SYSFS_PATH");
    return true;
  }();
  REQUIRE(written);
  return connection_nics();
}

TEST_CASE("connections: NICs are those of the files, and each is known by its addresses") {
  const std::vector<ConnectionNic>& nics = two_nics();
  REQUIRE(nics.size() == 2);
  CHECK(std::string(nics[0].daemon.sun_path) == "/run/a");
  CHECK(std::string(nics[1].daemon.sun_path) == "/run/b");
  CHECK(nic_with(ipv4(10, 66, 0, 1)) == 0);
  CHECK(nic_with(ipv4(10, 67, 0, 1)) == 1);
  CHECK(nic_with(ipv6(0x66, 1)) == 0);
  CHECK(!nic_with(ipv4(10, 67, 0, 2)).has_value());
}

TEST_CASE("connections: a NIC's addresses are those of now") {
  two_nics();
  CHECK(!nic_with(ipv4(10, 68, 0, 1)).has_value());
  files().gid("b", 1, "0000:0000:0000:0000:0000:ffff:0a44:0001");
  CHECK(nic_with(ipv4(10, 68, 0, 1)) == 1);
  CHECK(nic_towards(ipv4(10, 68, 9, 9)) == 1);
  files().gid("b", 1, "0000:0000:0000:0000:0000:0000:0000:0000");
  CHECK(!nic_with(ipv4(10, 68, 0, 1)).has_value());
}

TEST_CASE("connections: the NIC towards a peer has most in common with it, of the peer's version of IP") {
  two_nics();
  CHECK(nic_towards(ipv4(10, 66, 0, 1)) == 0);
  CHECK(nic_towards(ipv4(10, 66, 9, 9)) == 0);
  CHECK(nic_towards(ipv4(10, 67, 9, 9)) == 1);
  CHECK(nic_towards(ipv4(10, 66, 0, 0)) == 0);
  CHECK(nic_towards(ipv6(0x67, 9)) == 0);  // the only one of IPv6
  const NicAddress any{};
  CHECK(is_any(any));
  CHECK(is_any(ipv4(0, 0, 0, 0)));
  CHECK(is_any(ipv4(127, 0, 0, 1)));
  CHECK(!is_any(ipv4(10, 66, 0, 1)));
}

TEST_CASE("connections: an address is read from a command as it is there") {
  uint8_t bytes[40] = {};
  CHECK(!address_at(bytes, 8).has_value());
  bytes[8] = 2;  // AF_INET
  bytes[12] = 10;
  bytes[15] = 7;
  CHECK(address_at(bytes, 8) == ipv4(10, 0, 0, 7));
  bytes[8] = 10;  // AF_INET6
  std::copy_n(ipv6(0x66, 5).begin(), 16, bytes + 16);
  CHECK(address_at(bytes, 8) == ipv6(0x66, 5));
}

TEST_CASE("connections: ids have numbers of their own with several NICs, and each is told once that its only one is gone") {
  two_nics();
  ConnectionIds ids;
  const uint32_t everywhere = ids.add({.key = 1, .uid = 10, .numbers = {5, 6}});
  const uint32_t first = ids.add({.key = 1, .uid = 20, .numbers = {7}});
  const uint32_t second = ids.add({.key = 1, .uid = 30, .numbers = {0, 7}});
  ids.add({.key = 1, .uid = 0, .numbers = {0, 8}});  // asked for, and not accepted
  ids.add({.key = 2, .uid = 40, .numbers = {0, 9}});
  const uint32_t group = ids.add({.key = 1, .uid = 50, .owner = second, .numbers = {0, 10}});
  CHECK(first != second);
  CHECK(ids.find(everywhere)->places() == 2);
  CHECK(ids.find(second)->nic() == 1);
  CHECK(ids.untold(1, 0) == 1);
  CHECK(ids.untold(1, 1) == 1);
  CHECK(ids.tell(1, 1) == second);
  CHECK(ids.tell(1, 1) == 0);
  CHECK(ids.untold(1, 1) == 0);
  ids.move(second, 2);
  CHECK(ids.find(group)->key == 2);
  ids.remove(second);
  CHECK(ids.find(group) == nullptr);
  CHECK(ids.find(first)->uid == 20);
}

TEST_CASE("connections: what daemons say comes to one descriptor with the number of the NIC, their ends too") {
  static ConnectionPump& pump = *new ConnectionPump([](uint64_t key, size_t nic) { return key == 7 && nic == 1 ? 3u : 0u; });
  int ends[2];
  int daemons[2][2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  for (auto& pair : daemons) REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  REQUIRE(pump.add(7, ends[1], {daemons[0][1], daemons[1][1]}) == 0);
  const auto read = [&](size_t count) {
    std::vector<uint8_t> bytes;
    for (uint8_t byte; bytes.size() < count && ::recv(ends[0], &byte, 1, 0) == 1;) bytes.push_back(byte);
    return bytes;
  };
  REQUIRE(::write(daemons[1][0], "..", 2) == 2);
  CHECK(read(2) == std::vector<uint8_t>{1, 1});
  REQUIRE(::write(daemons[0][0], ".", 1) == 1);
  CHECK(read(1) == std::vector<uint8_t>{0});
  // More than the program reads for a while: nothing is lost.
  const std::vector<uint8_t> many(4'000, '.');
  for (int i = 0; i < 25; ++i) REQUIRE(::write(daemons[0][0], many.data(), many.size()) == 4'000);
  CHECK(read(100'000) == std::vector<uint8_t>(100'000, 0));
  ::close(daemons[1][0]);
  CHECK(read(3) == std::vector<uint8_t>(3, 1 | kGone));
  ::close(daemons[0][0]);
  CHECK(read(1).empty());  // its end
  ::close(ends[0]);

  // One that the program closes ends for the daemons.
  for (auto& pair : daemons) REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  REQUIRE(pump.add(8, ends[1], {daemons[0][1], daemons[1][1]}) == 0);
  ::close(ends[0]);
  for (auto& pair : daemons) {
    char byte;
    CHECK(::recv(pair[0], &byte, 1, 0) == 0);
    ::close(pair[0]);
  }
}

}  // namespace
}  // namespace weir::test
