// Two ends of selective repeat between which a switch trims packets: messages of one kind from the left, and their data either
// way.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "test/transport_harness.h"

namespace weir::test {

struct Trimming {
  static constexpr uint32_t kMtu = 256;

  // `operation`: WRITE or READ.
  Trimming(WorkOpcode operation, bool trim_naks, bool informs, uint64_t seed = 1)
      : reads(operation == WorkOpcode::read), pair(seed), operation(operation) {
    pair.both([&](QueueAttributes& a) {
      a.path_mtu = kMtu;
      a.recovery = LossRecovery::selective_repeat;
      a.trim_naks = trim_naks;
      a.informs = informs;
      a.max_rd_atomic = a.max_dest_rd_atomic = 16;
    });
    pair.connect();
    source = (reads ? pair.right : pair.left).make_region(200 * kMtu, 1);
    target = receiver().make_region(200 * kMtu, 2);
  }
  void post(uint32_t packets) {
    const Region& local = reads ? target : source;
    const Region& remote = reads ? source : target;
    pair.left.rc.post_send({0, operation, kSignaled, packets * kMtu, local.address, local.key, remote.key, remote.address});
  }
  // End that data come to.
  End& receiver() { return reads ? pair.left : pair.right; }
  // Returns how far behind the first PSN the packet is.
  uint32_t offset(const Frame& frame) const {
    return static_cast<uint32_t>(psn_distance(frame.psn(), pair.left_attributes.send_psn));
  }
  bool is_data(const End& from, const Frame& frame) const {
    return reads ? &from == &pair.right && is_read_response(frame.opcode()) : &from == &pair.left;
  }
  // Transmissions of these packets up to the `times`-th are trimmed, and their headers are at the receiver at once. Counts all.
  void trim(std::vector<uint32_t> at, uint32_t times) {
    pair.on_frame = [=, this](End& from, Frame& frame) {
      if (!is_data(from, frame)) return true;
      const bool trims = ++sent[offset(frame)] <= times && std::ranges::count(at, offset(frame)) > 0;
      if (trims) pair.trim(receiver(), frame);
      return !trims;
    };
  }
  bool arrived(uint32_t packets) const { return std::memcmp(target.data(), source.data(), packets * kMtu) == 0; }

  bool reads;
  Pair pair;
  WorkOpcode operation;
  Region source, target;
  std::map<uint32_t, uint32_t> sent;
};

}  // namespace weir::test
