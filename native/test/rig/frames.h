// RoCEv2 frames with right checksums, as peers send them: roce(kOpcodeRcSendOnly).to(qpn).psn(3).ecn(3).payload(64).bytes().
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "wire/roce_builder.h"

namespace weir::test {

inline constexpr uint64_t kNicMac = 0x025745000001;   // the NIC under test
inline constexpr uint64_t kPeerMac = 0x025745000002;  // peer that it talks to
inline constexpr uint32_t kFirstQpn = 0x11;

inline RocePath path_to(uint64_t destination, uint64_t source) {
  RocePath path;
  path.destination_mac = destination;
  path.source_mac = source;
  path.source_ip[0] = path.destination_ip[0] = 10;
  path.source_ip[3] = static_cast<uint8_t>(source);
  path.destination_ip[3] = static_cast<uint8_t>(destination);
  path.dscp = 26;
  path.ecn = 2;
  path.udp_source_port = 0xc001;
  return path;
}

class RoceFrame {
 public:
  explicit RoceFrame(uint8_t opcode) { header_.opcode = opcode; }
  RoceFrame& on(const RocePath& path) { return path_ = path, *this; }
  RoceFrame& dscp(uint8_t codepoint) { return path_.dscp = codepoint, *this; }
  RoceFrame& ecn(uint8_t codepoint) { return path_.ecn = codepoint, *this; }
  RoceFrame& identification(uint32_t of_ip) { return identification_ = static_cast<uint16_t>(of_ip), *this; }
  RoceFrame& to(uint32_t qpn) { return header_.destination_qp = qpn, *this; }
  RoceFrame& psn(uint32_t number) { return header_.psn = number, *this; }
  RoceFrame& ack_request(bool asked = true) { return header_.ack_request = asked, *this; }
  RoceFrame& partition_key(uint16_t key) { return header_.partition_key = key, *this; }
  RoceFrame& deth(const Deth& deth) { return header_.deth = deth, *this; }
  RoceFrame& reth(const Reth& reth) { return header_.reth = reth, *this; }
  RoceFrame& aeth(const Aeth& aeth) { return header_.aeth = aeth, *this; }
  RoceFrame& immediate(uint32_t data) { return header_.immediate = data, *this; }
  RoceFrame& payload(size_t length, uint8_t filled_with = 0) { return payload(std::vector<uint8_t>(length, filled_with)); }
  RoceFrame& payload(std::vector<uint8_t> data) { return payload_ = std::move(data), *this; }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> frame(kMaxHeaders + payload_.size());
    const auto length = static_cast<uint32_t>(payload_.size());
    frame.resize(RoceTemplate(path_).build_data(frame.data(), header_, payload_.data(), length, identification_));
    return frame;
  }

 private:
  RocePath path_ = path_to(kNicMac, kPeerMac);
  DataHeader header_;
  std::vector<uint8_t> payload_;
  uint16_t identification_ = 0;
};

// A frame from the peer to the NIC under test, unless it is on another path.
inline RoceFrame roce(uint8_t opcode) { return RoceFrame(opcode); }

inline std::vector<uint8_t> roce_cnp(uint32_t qpn, const RocePath& path = path_to(kNicMac, kPeerMac)) {
  std::vector<uint8_t> frame(kMaxHeaders);
  frame.resize(RoceTemplate(path).build_cnp(frame.data(), qpn, 48, 6));
  return frame;
}

}  // namespace weir::test
