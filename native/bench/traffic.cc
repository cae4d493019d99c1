#include "bench/traffic.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "base/native_error.h"
#include "bench/arrivals.h"
#include "bench/kernel_programs.h"
#include "bench/traffic_host.h"
#include "wire/roce_builder.h"

namespace weir::bench {
namespace {

constexpr uint32_t kSmallest = 64;
constexpr uint32_t kQpn = 0x11;
constexpr uint8_t kCongestionExperienced = 3;
constexpr Time kLost = 100 * kMillisecond;
constexpr Time kWarmUp = 100 * kMillisecond;

class Frame {
 public:
  Frame(const std::string& from, const std::string& to, uint32_t length, uint8_t ecn = 2)
      : template_(path(from, to, ecn)), bytes_(kMaxHeaders + length) {
    const uint32_t overhead = template_.bth_offset() + kBthHeader + kIcrc;
    if (length < overhead) throw std::invalid_argument("a frame is longer");
    payload_.resize(length - overhead);
    number(0);
  }
  // Writes the frame anew, with this PSN.
  void number(uint32_t psn) {
    DataHeader header;
    header.opcode = kOpcodeRcSendOnly;
    header.destination_qp = kQpn;
    header.psn = psn & 0xffffff;
    length_ = template_.build_data(bytes_.data(), header, payload_.data(), static_cast<uint32_t>(payload_.size()));
  }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), length_}; }

 private:
  static RocePath path(const std::string& from, const std::string& to, uint8_t ecn) {
    RocePath path;
    path.source_mac = parse_mac(from);
    path.destination_mac = parse_mac(to);
    path.source_ip[0] = path.destination_ip[0] = 10;
    path.source_ip[3] = 1;
    path.destination_ip[3] = 2;
    path.dscp = 26;
    path.ecn = ecn;
    path.udp_source_port = 0xc001;
    return path;
  }
  RoceTemplate template_;
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> bytes_;
  uint32_t length_ = 0;
};

uint64_t send_by_socket(int socket, std::span<const uint8_t> frame, Time end, double rate) {
  constexpr int64_t kBurst = 64;
  iovec vector{const_cast<uint8_t*>(frame.data()), frame.size()};
  std::array<mmsghdr, kBurst> messages{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
  }
  int64_t sent = 0;
  const Time start = now();
  for (Time at = start; at < end; at = now()) {
    int64_t burst = kBurst;
    if (rate > 0) burst = std::min(kBurst, static_cast<int64_t>(static_cast<double>(at - start) * rate / 1e9) - sent);
    if (burst <= 0) continue;
    const int taken = ::sendmmsg(socket, messages.data(), static_cast<unsigned>(burst), 0);
    if (taken < 0 && errno != ENOBUFS && errno != EAGAIN) throw NativeError::from_errno("sendmmsg", "cannot send", "");
    sent += std::max(taken, 0);
  }
  return static_cast<uint64_t>(sent);
}

int send(const Arguments& a) {
  come_first(std::stoi(a.at(4)));
  const Frame frame(a.at(5), a.at(6), static_cast<uint32_t>(std::stoul(a.at(7))));
  const auto duration = static_cast<Time>(std::stod(a.at(8)) * 1e9);
  const double rate = std::stod(a.at(9));
  if (a.at(1) != "xdp" && a.at(1) != "packet") throw std::invalid_argument(a.at(1) + ": not a source");
  in_namespace(a.at(2), [&] {
    uint64_t sent = 0;
    Time start = now();
    if (a.at(1) == "xdp") {
      LiveFrames frames(interface_index(a.at(3)), rate);
      start = now();
      sent = frames.run(frame.bytes(), start + duration);
    } else {
      const Descriptor socket(packet_socket(a.at(3), false));
      start = now();
      sent = send_by_socket(socket.get(), frame.bytes(), start + duration, rate);
    }
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(sent), static_cast<double>(now() - start) / 1e9);
  });
  return 0;
}

// Tells the present count for each line of input; ends with the input.
template <class Counter>
void tell_counts(const Counter& counter) {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%llu %lld\n", static_cast<unsigned long long>(counter.count()), static_cast<long long>(now()));
    std::fflush(stdout);
  }
}

int count(const Arguments& a) {
  in_namespace(a.at(1), [&] {
    if (a.at(3) != "xdp" && a.at(3) != "packet") throw std::invalid_argument(a.at(3) + ": not a sink");
    const DropCounter counter(interface_index(a.at(2)), a.at(3) == "xdp");
    tell_counts(counter);
  });
  return 0;
}

int arrivals(const Arguments& a) {
  const auto number = [&a](size_t index) { return static_cast<uint32_t>(std::stoul(a.at(index))); };
  in_namespace(a.at(1), [&] {
    const ArrivalRecorder recorder(interface_index(a.at(2)), number(3), number(4), number(5));
    tell_counts(recorder);
    std::ofstream file(a.at(6), std::ios::binary);
    const auto write = [&file](const auto& values) {
      file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof values[0]));
    };
    write(recorder.queue_pairs());
    write(recorder.stamps());
    if (!file.flush()) throw NativeError::from_errno("write", "cannot write " + a.at(6), "");
  });
  return 0;
}

bool is_reply(std::span<const uint8_t> got, std::span<const uint8_t> sent) {
  return got.size() >= sent.size() && std::equal(sent.begin(), sent.begin() + 12, got.begin()) &&
         std::equal(sent.end() - 22, sent.end() - 4, got.begin() + static_cast<ptrdiff_t>(sent.size()) - 22);
}

bool is_cnp(std::span<const uint8_t> got) {
  constexpr size_t kBthOffset = 42;
  return got.size() > kBthOffset && got[kBthOffset] == kOpcodeCnp;
}

// Measures from before send() of each frame to after recv() of its answer, spinning; prints "sent lost p50 p90 p99 p99.9 max".
template <class IsAnswer>
void measure(int sender, int receiver, Frame& frame, Time duration, Time gap, IsAnswer is_answer) {
  std::vector<Time> times;
  times.reserve(static_cast<size_t>(duration / gap) + 1);
  std::array<uint8_t, 2'048> buffer{};
  uint64_t sent = 0;
  uint64_t lost = 0;
  uint32_t psn = 0;
  Time next = now();
  const Time counted = next + kWarmUp;
  while (next < counted + duration) {
    frame.number(++psn);
    while (now() < next) continue;
    const Time before = now();
    if (::send(sender, frame.bytes().data(), frame.bytes().size(), 0) < 0)
      throw NativeError::from_errno("send", "cannot send", "");
    bool arrived = false;
    Time after = before;
    while (!arrived && after - before < kLost) {
      const ssize_t length = ::recv(receiver, buffer.data(), buffer.size(), MSG_DONTWAIT);
      after = now();
      arrived = length > 0 && is_answer(std::span<const uint8_t>(buffer.data(), static_cast<size_t>(length)));
    }
    next = std::max(next + gap, after);
    if (before < counted) continue;
    ++sent;
    if (arrived) times.push_back(after - before);
    if (!arrived) ++lost;
  }
  std::sort(times.begin(), times.end());
  std::printf("%llu %llu", static_cast<unsigned long long>(sent), static_cast<unsigned long long>(lost));
  for (const double quantile : {0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto index = static_cast<size_t>(static_cast<double>(times.size() - 1) * quantile);
    std::printf(" %.2f", times.empty() ? 0.0 : static_cast<double>(times[index]) / 1e3);
  }
  std::puts("");
}

int latency(const Arguments& a) {
  come_first(std::stoi(a.at(5)));
  int sender = -1;
  int receiver = -1;
  in_namespace(a.at(1), [&] { sender = packet_socket(a.at(2), false); });
  in_namespace(a.at(3), [&] { receiver = packet_socket(a.at(4), true); });
  Frame frame(a.at(6), a.at(7), kSmallest);
  measure(sender, receiver, frame, static_cast<Time>(std::stod(a.at(8)) * 1e9), static_cast<Time>(1e9 / std::stod(a.at(9))),
          [&frame](std::span<const uint8_t> got) { return is_reply(got, frame.bytes()); });
  return 0;
}

int cnp(const Arguments& a) {
  come_first(std::stoi(a.at(3)));
  int socket = -1;
  in_namespace(a.at(1), [&] { socket = packet_socket(a.at(2), true); });
  Frame frame(a.at(4), a.at(5), kSmallest, kCongestionExperienced);
  measure(socket, socket, frame, static_cast<Time>(std::stod(a.at(6)) * 1e9), static_cast<Time>(1e9 / std::stod(a.at(7))),
          is_cnp);
  return 0;
}

}  // namespace

int run_traffic(const Arguments& arguments) {
  const std::string& command = arguments.at(0);
  if (command == "send") return send(arguments);
  if (command == "count") return count(arguments);
  if (command == "arrivals") return arrivals(arguments);
  if (command == "latency") return latency(arguments);
  if (command == "cnp") return cnp(arguments);
  throw std::invalid_argument(command + ": no such command");
}

}  // namespace weir::bench
