// Drives a SoftNic in virtual time and remembers the frames that left, parsed.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "endpoint/wire_nic.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/packet_pool.h"

namespace weir::test {

inline constexpr uint64_t kNicMac = 0x025745000001;   // the NIC under test
inline constexpr uint64_t kPeerMac = 0x025745000002;  // peer that it talks to
inline constexpr uint32_t kFirstQpn = 0x11;

struct SentFrame {
  Time at = 0;  // when its last bit left, with NicHarness::run()
  Packet packet;
  std::vector<uint8_t> bytes;  // empty for PFC and PAUSE frames
  PacketMeta meta;             // as parsed from the bytes
  Bth bth;
};

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

inline NicParameters nic_parameters(Rate rate = 10'000'000'000) {
  NicParameters p;
  p.rate = rate;
  p.mac = kNicMac;
  p.first_qpn = kFirstQpn;
  p.priority_map.dscp[26] = 3;
  p.priority_map.dscp[48] = 6;
  return p;
}

// Sets its congestion control, and returns its parameters.
template <class Parameters>
Parameters& under(NicParameters& p) {
  if (!std::holds_alternative<Parameters>(p.congestion)) p.congestion = Parameters{};
  return std::get<Parameters>(p.congestion);
}
inline DcqcnParameters& dcqcn(NicParameters& p) { return under<DcqcnParameters>(p); }
inline QcnParameters& qcn(NicParameters& p) { return under<QcnParameters>(p); }
inline DctcpParameters& dctcp(NicParameters& p) { return under<DctcpParameters>(p); }

// Sends from `start` on, as fast as it may.
inline QueuePairParameters sender(uint32_t remote_qpn = 0x21, Time start = 0) {
  QueuePairParameters qp;
  qp.remote_qpn = remote_qpn;
  qp.path = path_to(kPeerMac, kNicMac);
  qp.start = start;
  return qp;
}

inline QueuePairParameters receiver(uint32_t remote_qpn = 0x21) {
  QueuePairParameters qp = sender(remote_qpn);
  qp.start = kNever;
  return qp;
}

class NicHarness {
 public:
  NicHarness(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, uint32_t packets = 64)
      : pool(packets, 4'096 + 128), nic(parameters, queue_pairs, pool) {}

  // Called for every frame instead of keeping it, when set.
  std::function<void(const SentFrame&)> on_frame;

  void collect() {
    for (PacketId id = nic.transmit(); id != kNoPacket; id = nic.transmit()) {
      SentFrame frame;
      frame.at = nic.now();
      frame.packet = pool[id];
      if (!is_flow_control(frame.packet.meta.kind)) {
        frame.bytes.assign(pool.data(id), pool.data(id) + frame.packet.length);
        REQUIRE(classify(frame.bytes.data(), frame.packet.length, frame.meta) == Refusal::none);
        frame.bth = load_bth(frame.bytes.data() + frame.meta.bth_offset);
      } else {
        frame.meta = frame.packet.meta;
      }
      nic.left(id);
      pool.free(id);
      if (on_frame) {
        on_frame(frame);
      } else {
        frames.push_back(frame);
      }
    }
  }
  void run(Time until) {
    uint64_t events = 0;
    for (Time at = nic.next_deadline(); at <= until; at = nic.next_deadline()) {
      REQUIRE(++events < 10'000'000);
      nic.advance(at);
      collect();
    }
    nic.advance(until);
    collect();
  }
  SoftNic::Disposition receive(Time now, const std::vector<uint8_t>& bytes) {
    if (now > nic.now()) run(now);
    PacketMeta meta;
    const uint32_t length = static_cast<uint32_t>(bytes.size());
    const Refusal refusal = classify(bytes.data(), length, meta);
    return nic.receive(now, bytes.data(), length, meta, refusal);
  }
  void pfc(Time now, uint8_t enable, uint16_t quanta) {
    if (now > nic.now()) run(now);
    std::array<uint16_t, kPriorities> all;
    all.fill(quanta);
    nic.receive_pfc(now, enable, all);
  }
  // A SEND ONLY to QP number `index` here.
  std::vector<uint8_t> data(uint32_t psn, uint8_t ecn = 2, uint32_t index = 0, uint32_t payload = 1'000) const {
    RocePath path = path_to(kNicMac, kPeerMac);
    path.ecn = ecn;
    std::vector<uint8_t> bytes(kMaxHeaders + payload);
    const std::vector<uint8_t> zeros(payload);
    DataHeader header;
    header.opcode = kOpcodeRcSendOnly;
    header.destination_qp = kFirstQpn + index;
    header.psn = psn;
    bytes.resize(RoceTemplate(path).build_data(bytes.data(), header, zeros.data(), payload));
    return bytes;
  }
  std::vector<uint8_t> cnp(uint32_t index = 0) const {
    std::vector<uint8_t> bytes(kMaxHeaders);
    bytes.resize(RoceTemplate(path_to(kNicMac, kPeerMac)).build_cnp(bytes.data(), kFirstQpn + index, 48, 6));
    return bytes;
  }
  std::vector<SentFrame> of_kind(FrameKind kind) const {
    std::vector<SentFrame> found;
    for (const SentFrame& frame : frames) {
      if (frame.meta.kind == kind) found.push_back(frame);
    }
    return found;
  }

  PacketPool pool;
  WireNic nic;
  std::vector<SentFrame> frames;
};

}  // namespace weir::test
