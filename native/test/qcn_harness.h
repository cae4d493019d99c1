// Common parts of tests of a NIC under QCN: its parameters, and CNMs to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "test/nic_harness.h"
#include "test/rates.h"
#include "wire/qcn.h"

namespace weir::test {

inline constexpr uint64_t kSwitchMac = 0x0257450000fe;

// Parameters without jitter, and with a flow for every queue pair.
inline NicParameters qcn_parameters(Rate rate) {
  NicParameters p = nic_parameters(rate);
  p.congestion = QcnParameters{};
  qcn(p).jitter = 0;
  p.grouping.most = 65'535;
  return p;
}

struct CnmShape {
  uint8_t feedback = 32;
  std::optional<uint16_t> flow = 1;  // flow of the CN-TAG
  uint8_t priority = 3;
  uint64_t to = kNicMac;
  uint64_t encapsulated_mac = kPeerMac;
  std::span<const uint8_t> msdu = {};
};

inline std::vector<uint8_t> cnm(const CnmShape& shape) {
  CongestionNotification notification;
  notification.quantized_feedback = shape.feedback;
  notification.priority = shape.priority;
  notification.congestion_point = 0x0102030405060708;
  notification.destination_mac = shape.encapsulated_mac;
  notification.msdu = shape.msdu;
  LinkHeader envelope;
  envelope.destination_mac = shape.to;
  envelope.source_mac = kSwitchMac;
  envelope.cn_flow = shape.flow;
  std::vector<uint8_t> bytes(kCnmMaxLength);
  bytes.resize(build_cnm(bytes.data(), envelope, notification));
  return bytes;
}

// Time of a frame on a link of 1 Gb/s.
inline Time wire_time(const SentFrame& frame) { return static_cast<Time>(wire_bytes(frame.packet.length)) * 8; }

// Sends to `remote_qpn` from a UDP source port of its own.
inline QueuePairParameters flow_sender(uint32_t remote_qpn, Time start = 0) {
  QueuePairParameters qp = sender(remote_qpn, start);
  qp.path.udp_source_port = static_cast<uint16_t>(0xc000 | (remote_qpn & 0x3fff));
  return qp;
}

}  // namespace weir::test
