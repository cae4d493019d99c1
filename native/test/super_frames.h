// RoCEv2 packets, and the super-frames that they are joined to.
#pragma once

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "test/rig/frames.h"
#include "test/wire_fixtures.h"
#include "wire/roce_builder.h"
#include "wire/super_frame.h"

namespace weir::test {

// SENDs of one path with `payload` bytes, the last with `last`; PSNs and identifications are `first` and those that follow.
inline std::vector<Bytes> roce_packets(const RocePath& path, uint32_t count, uint32_t payload, uint32_t last,
                                       uint32_t first = 0) {
  std::vector<Bytes> packets;
  for (uint32_t i = 0; i < count; ++i) {
    Bytes data(i + 1 == count ? last : payload);
    for (size_t at = 0; at < data.size(); ++at) data[at] = static_cast<uint8_t>(at * 7 + i);
    const uint32_t number = first + i;
    packets.push_back(
        roce(kOpcodeRcSendOnly).on(path).to(0x11).psn(number).identification(number).payload(std::move(data)).bytes());
  }
  return packets;
}

struct SuperFrame {
  Bytes bytes;
  Offload offload;
};
// All of them, which must go together.
inline SuperFrame join_all(const std::vector<Bytes>& packets) {
  SuperFrameJoin join;
  REQUIRE(join.begin(packets[0].data(), static_cast<uint32_t>(packets[0].size())));
  for (size_t i = 1; i < packets.size(); ++i) REQUIRE(join.add(packets[i].data(), static_cast<uint32_t>(packets[i].size())));
  SuperFrame super{Bytes(join.header_length()), {}};
  join.finish(super.bytes.data(), super.offload);
  for (const Bytes& one : packets) super.bytes.insert(super.bytes.end(), one.begin() + join.header_length(), one.end());
  return super;
}

}  // namespace weir::test
