// Frames: classification, checksums, building.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/bench_case.h"
#include "wire/checksum.h"
#include "wire/classify.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/roce_builder.h"

namespace weir::bench {
namespace {

constexpr size_t kFrames = 64;  // frames of different queue pairs and UDP ports, in turn

RocePath path(uint8_t ip_version, bool tagged) {
  RocePath path;
  path.destination_mac = 0x025745000002;
  path.source_mac = 0x025745000001;
  path.tagged = tagged;
  path.vlan_tci = 0x6005;
  path.ip_version = ip_version;
  path.source_ip[0] = path.destination_ip[0] = ip_version == 4 ? 10 : 0xfd;
  path.source_ip[3] = 1;
  path.destination_ip[3] = 2;
  path.dscp = 26;
  path.ecn = 2;
  path.udp_source_port = 0xc001;
  return path;
}

// The payload that makes a SEND of IPv4 without tag `length` bytes long.
uint32_t payload_of(uint32_t length) { return length - (kEthernetHeader + kIpv4Header + kUdpHeader + kBthHeader + kIcrc); }

DataHeader send_only(uint32_t i) {
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  header.destination_qp = 0x11 + i % kFrames;
  header.psn = i & 0xffffff;
  return header;
}

std::vector<uint8_t> roce_frame(RocePath path, uint32_t i, uint32_t length) {
  path.udp_source_port = static_cast<uint16_t>(0xc000 + i);
  std::vector<uint8_t> frame(kMaxHeaders + length);
  const std::vector<uint8_t> payload(payload_of(length), 0x5a);
  frame.resize(RoceTemplate(path).build_data(frame.data(), send_only(i), payload.data(), static_cast<uint32_t>(payload.size())));
  return frame;
}

std::vector<uint8_t> tcp_frame(uint32_t i, uint32_t length) {
  std::vector<uint8_t> frame = roce_frame(path(4, false), i, length);
  frame[kEthernetHeader + 9] = 6;
  frame[kEthernetHeader + 10] = frame[kEthernetHeader + 11] = 0;
  const uint16_t checksum = internet_checksum(frame.data() + kEthernetHeader, kIpv4Header);
  frame[kEthernetHeader + 10] = static_cast<uint8_t>(checksum >> 8);
  frame[kEthernetHeader + 11] = static_cast<uint8_t>(checksum);
  return frame;
}

std::vector<uint8_t> arp_frame() {
  std::vector<uint8_t> frame(60);
  std::memset(frame.data(), 0xff, 6);
  frame[6] = 2;
  frame[12] = 0x08;
  frame[13] = 0x06;
  return frame;
}

class Classify : public BenchCase {
 public:
  explicit Classify(const std::function<std::vector<uint8_t>(uint32_t)>& make) {
    for (uint32_t i = 0; i < kFrames; ++i) frames_.push_back(make(i));
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      const std::vector<uint8_t>& frame = frames_[i % kFrames];
      keep(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta_));
    }
  }

 private:
  std::vector<std::vector<uint8_t>> frames_;
  PacketMeta meta_;
};

class Icrc : public BenchCase {
 public:
  explicit Icrc(uint32_t length) : frame_(roce_frame(path(4, false), 0, length)) {}
  void run(uint64_t count) override {
    const auto end = static_cast<uint32_t>(frame_.size()) - kIcrc;
    for (uint64_t i = 0; i < count; ++i) keep(compute_icrc(frame_.data(), kEthernetHeader, end));
  }

 private:
  std::vector<uint8_t> frame_;
};

class Crc : public BenchCase {
 public:
  explicit Crc(CrcWay way) : way_(way) {}
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(way_.remainder(data_.data(), data_.size(), mask_));
  }

 private:
  CrcWay way_;
  CrcMask mask_;
  std::array<uint8_t, 1024> data_{};
};

class Checksum : public BenchCase {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(internet_checksum(data_.data(), data_.size()));
  }

 private:
  std::array<uint8_t, 1480> data_{};
};

class BuildData : public BenchCase {
 public:
  explicit BuildData(uint32_t length) : payload_(payload_of(length), 0x5a), out_(kMaxHeaders + length) {}
  void run(uint64_t count) override {
    const auto length = static_cast<uint32_t>(payload_.size());
    for (uint64_t i = 0; i < count; ++i) {
      keep(template_.build_data(out_.data(), send_only(static_cast<uint32_t>(i)), payload_.data(), length));
    }
  }

 private:
  RoceTemplate template_{path(4, false)};
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> out_;
};

class BuildCnp : public BenchCase {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(template_.build_cnp(out_.data(), 0x11 + i % kFrames, 48, 6));
  }

 private:
  RoceTemplate template_{path(4, false)};
  std::array<uint8_t, kMaxHeaders> out_{};
};

using MakeFrame = std::function<std::vector<uint8_t>(uint32_t)>;

}  // namespace

void define_wire_cases(BenchList& list) {
  define<Classify>(list, "classify RoCEv2 64 B", MakeFrame([](uint32_t i) { return roce_frame(path(4, false), i, 64); }));
  define<Classify>(list, "classify RoCEv2 1066 B", MakeFrame([](uint32_t i) { return roce_frame(path(4, false), i, 1'066); }));
  define<Classify>(list, "classify RoCEv2 IPv6 tagged",
                   MakeFrame([](uint32_t i) { return roce_frame(path(6, true), i, 1'066); }));
  define<Classify>(list, "classify TCP 1500 B", MakeFrame([](uint32_t i) { return tcp_frame(i, 1'500); }));
  define<Classify>(list, "classify ARP", MakeFrame([](uint32_t) { return arp_frame(); }));
  for (const uint32_t length : {64u, 1'066u, 4'154u}) define<Icrc>(list, "ICRC " + std::to_string(length) + " B", length);
  for (const CrcWay& way : crc32_ways()) define<Crc>(list, std::string("CRC-32 1024 B, ") + way.name, way);
  define<Checksum>(list, "Internet checksum 1480 B");
  for (const uint32_t length : {64u, 1'066u}) define<BuildData>(list, "build RoCEv2 " + std::to_string(length) + " B", length);
  define<BuildCnp>(list, "build CNP");
}

}  // namespace weir::bench
