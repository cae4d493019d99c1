#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/native_error.h"
#include "io/tcp_socket.h"

using namespace weir;

namespace {

sockaddr_in name_of(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0);
  return name;
}

// Blocking: on the loopback interface both ends are one machine.
void block(int fd) { REQUIRE(::fcntl(fd, F_SETFL, 0) == 0); }

}  // namespace

TEST_CASE("tcp socket: bound, of its congestion control and class, and told of once it is connected") {
  const int listener = open_tcp_socket("127.0.0.1", "reno", 0, 0, "");
  const int sender = open_tcp_socket("127.0.0.1", "reno", 26, 8'000'000, "");
  std::array<char, 16> control{};
  socklen_t size = control.size();
  REQUIRE(::getsockopt(sender, IPPROTO_TCP, TCP_CONGESTION, control.data(), &size) == 0);
  CHECK(std::string(control.data()) == "reno");
  int traffic_class = 0;
  size = sizeof traffic_class;
  REQUIRE(::getsockopt(sender, IPPROTO_IP, IP_TOS, &traffic_class, &size) == 0);
  CHECK(traffic_class == 26 << 2);
  uint64_t pacing = 0;
  size = sizeof pacing;
  REQUIRE(::getsockopt(sender, SOL_SOCKET, SO_MAX_PACING_RATE, &pacing, &size) == 0);
  CHECK(pacing == 1'000'000);

  block(listener);
  block(sender);
  REQUIRE(::listen(listener, 1) == 0);
  const sockaddr_in to = name_of(listener);
  CHECK(ntohs(to.sin_port) != 0);
  REQUIRE(::connect(sender, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  const int receiver = ::accept(listener, nullptr, nullptr);
  REQUIRE(receiver >= 0);
  std::vector<char> sent(5000), received(5000);
  REQUIRE(::send(sender, sent.data(), sent.size(), 0) == 5000);
  REQUIRE(::recv(receiver, received.data(), received.size(), MSG_WAITALL) == 5000);
  std::array<double, kTcpInfoWords> words{};
  REQUIRE(ask_tcp_info(sender, words));
  CHECK(words[0] >= 1);
  CHECK(words[3] > 0);
  CHECK(words[4] >= 1);
  CHECK_FALSE(ask_tcp_info(-1, words));
  CHECK_FALSE(ask_tcp_info(sender, std::span(words).first(1)));
  for (const int fd : {receiver, sender, listener}) ::close(fd);
}

TEST_CASE("tcp socket: an unknown congestion control, or an address that is none or not here, is refused") {
  const auto code_of = [](const std::string& address, const std::string& control) {
    try {
      ::close(open_tcp_socket(address, control, 0, 0, ""));
    } catch (const NativeError& error) {
      return error.code;
    }
    return std::string();
  };
  CHECK(code_of("127.0.0.1", "nosuch") == "ENOENT");
  CHECK(code_of("192.0.2.1", "reno") == "EADDRNOTAVAIL");
  CHECK(code_of("fe80::1", "reno") == "INVALID_CONFIG");
}
