// Drives a SoftNic in virtual time and remembers the frames that left, parsed.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "endpoint/wire_nic.h"
#include "test/rig/frames.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/packet_pool.h"

namespace weir::test {

struct SentFrame {
  Time at = 0;  // when its last bit left, with NicHarness::run()
  Packet packet;
  std::vector<uint8_t> bytes;  // empty for PFC and PAUSE frames
  PacketMeta meta;             // as parsed from the bytes
  Bth bth;
};

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

// Gives the NIC a frame of its link that has the form of one.
inline SoftNic::Disposition give(WireNic& nic, Time at, const std::vector<uint8_t>& bytes) {
  PacketMeta meta;
  const auto length = static_cast<uint32_t>(bytes.size());
  REQUIRE(classify(bytes.data(), length, meta) == Refusal::none);
  return nic.receive(at, bytes.data(), length, meta, Refusal::none);
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
    return roce(kOpcodeRcSendOnly).to(kFirstQpn + index).psn(psn).ecn(ecn).payload(payload).bytes();
  }
  std::vector<uint8_t> cnp(uint32_t index = 0) const { return roce_cnp(kFirstQpn + index); }
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
