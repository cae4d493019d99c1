// RoCEv2 packets joined to one frame, and taken apart again: each is what it was, byte for byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/rig/frames.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/qcn.h"
#include "wire/roce_builder.h"
#include "wire/segmentation.h"
#include "wire/super_frame.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint16_t kFirst = 0xfffd;  // so that identifications wrap

RocePath path(uint8_t version, bool tagged) {
  RocePath p = path_to(kPeerMac, kNicMac);
  p.ip_version = version;
  p.tagged = tagged;
  p.vlan_tci = 0x6064;
  return p;
}

Bytes packet(const RocePath& path, uint32_t psn, uint32_t payload, uint8_t opcode = kOpcodeRcSendOnly) {
  Bytes data(payload);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7 + psn);
  RoceFrame frame = roce(opcode).on(path).to(0x1234).psn(psn).ack_request(psn % 3 == 0);
  return frame.identification(kFirst + psn).payload(std::move(data)).bytes();
}

// Super-frame as an interface is given it.
struct Super {
  Bytes bytes;
  Offload offload;
  uint32_t packets = 0;
};
Super join_all(const std::vector<Bytes>& packets) {
  Super super;
  SuperFrameJoin join;
  if (!join.begin(packets[0].data(), static_cast<uint32_t>(packets[0].size()))) return super;
  while (join.packets() < packets.size()) {
    const Bytes& next = packets[join.packets()];
    if (!join.add(next.data(), static_cast<uint32_t>(next.size()))) break;
  }
  super.packets = join.packets();
  super.bytes.resize(join.header_length());
  join.finish(super.bytes.data(), super.offload);
  for (size_t i = 0; i < super.packets; ++i) {
    super.bytes.insert(super.bytes.end(), packets[i].begin() + join.header_length(), packets[i].end());
  }
  return super;
}

uint32_t joined(const std::vector<Bytes>& packets) { return join_all(packets).packets; }

}  // namespace

TEST_CASE("super-frames: what is cut or sliced of one is what was joined, ICRC and all") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    for (const bool tagged : {false, true}) {
      for (const uint32_t payload : {0u, 61u, 1'024u, 4'096u}) {
        CAPTURE(version);
        CAPTURE(tagged);
        CAPTURE(payload);
        const RocePath way = path(version, tagged);
        std::vector<Bytes> packets;
        const uint32_t count = std::min(64u, 65'000 / (payload + 20));
        for (uint32_t i = 0; i < count; ++i) packets.push_back(packet(way, i, payload));
        if (payload > 60) packets.back() = packet(way, count - 1, payload / 2);  // shorter
        Super super = join_all(packets);
        REQUIRE(super.packets == count);
        const auto length = static_cast<uint32_t>(super.bytes.size());
        Offload offload = super.offload;
        REQUIRE(check_offload(super.bytes.data(), length, offload));
        CHECK(offload.header_length == super.offload.header_length);
        CHECK(is_roce_super_frame(super.bytes.data(), offload));
        REQUIRE(segment_count(length, offload) == count);
        Bytes cut(offload.largest_segment(length));
        for (uint32_t i = 0; i < count; ++i) {
          cut.resize(offload.largest_segment(length));
          cut.resize(write_segment(super.bytes.data(), length, offload, i, cut.data()));
          CHECK(cut == packets[i]);
          PacketMeta meta;
          REQUIRE(classify(cut.data(), static_cast<uint32_t>(cut.size()), meta) == Refusal::none);
          CHECK(meta.psn == i);
          CHECK(icrc_ok(cut.data(), meta));
        }
        SuperFrameSlices slices(super.bytes.data(), length, offload);
        for (uint32_t i = 0; i < count; ++i) {
          uint32_t size = 0;
          const uint8_t* slice = slices.next(size);
          REQUIRE(slice != nullptr);
          CHECK(Bytes(slice, slice + size) == packets[i]);
        }
        uint32_t size = 0;
        CHECK(slices.next(size) == nullptr);
      }
    }
  }
}

TEST_CASE("super-frames: only equal packets of one path follow each other") {
  const RocePath way = path(4, false);
  const Bytes first = packet(way, 0, 1'000);
  const auto follows = [&](const Bytes& next) { return joined({first, next}) == 2; };
  CHECK(follows(packet(way, 1, 1'000)));
  CHECK(follows(packet(way, 1, 900)));
  CHECK_FALSE(follows(packet(way, 1, 1'004)));  // longer
  CHECK_FALSE(follows(packet(way, 2, 1'000)));  // its identification is not the next
  RocePath other = way;
  other.udp_source_port = 0xc124;
  CHECK_FALSE(follows(packet(other, 1, 1'000)));
  other = way;
  other.ecn = 3;
  CHECK_FALSE(follows(packet(other, 1, 1'000)));
  other = way;
  other.destination_ip[3] = 3;
  CHECK_FALSE(follows(packet(other, 1, 1'000)));
  other = way;
  other.destination_mac += 1;
  CHECK_FALSE(follows(packet(other, 1, 1'000)));
  CHECK_FALSE(follows(packet(path(4, true), 1, 1'000)));
  CHECK_FALSE(follows(packet(path(6, false), 1, 1'000)));
  Bytes summed = packet(way, 1, 1'000);
  summed[14 + 20 + 6] = 1;  // it has a UDP checksum
  CHECK_FALSE(follows(summed));
  Bytes padded = packet(way, 1, 900);
  padded.resize(padded.size() + 8);
  CHECK_FALSE(follows(padded));
  // Nothing behind a shorter one.
  CHECK(joined({first, packet(way, 1, 900), packet(way, 2, 900)}) == 2);
  // No datagram is longer than 65,535 bytes.
  std::vector<Bytes> many;
  for (uint32_t i = 0; i < 20; ++i) many.push_back(packet(way, i, 4'096));
  CHECK(joined(many) == 15);
}

TEST_CASE("super-frames: the shorter packet that ends one may be taken back") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    const RocePath way = path(version, false);
    const std::vector<Bytes> packets = {packet(way, 0, 1'000), packet(way, 1, 1'000), packet(way, 2, 900)};
    SuperFrameJoin join;
    REQUIRE(join.begin(packets[0].data(), static_cast<uint32_t>(packets[0].size())));
    REQUIRE(join.add(packets[1].data(), static_cast<uint32_t>(packets[1].size())));
    CHECK_FALSE(join.ended());
    const auto last = static_cast<uint32_t>(packets[2].size());
    REQUIRE(join.add(packets[2].data(), last));
    CHECK(join.ended());
    join.take_back(last);
    CHECK_FALSE(join.ended());
    CHECK(join.packets() == 2);
    const Super both = join_all({packets[0], packets[1]});
    Bytes headers(join.header_length());
    Offload offload;
    join.finish(headers.data(), offload);
    CHECK(headers == Bytes(both.bytes.begin(), both.bytes.begin() + join.header_length()));
    CHECK(offload.segment_size == both.offload.segment_size);
    // room_for() allows as many packets as fit into one datagram.
    for (const uint32_t payload : {16u, 1'024u, 4'096u}) {
      const Bytes one = packet(way, 0, payload);
      const uint32_t behind = static_cast<uint32_t>(one.size()) - join.header_length();
      const uint32_t datagram = join.header_length() - 14 + join.room_for(static_cast<uint32_t>(one.size())) * behind;
      CHECK(datagram <= 65'535);
      CHECK(datagram + behind > 65'535);
    }
  }
}

TEST_CASE("super-frames: what cannot begin one") {
  const auto begins = [](const Bytes& frame) {
    return SuperFrameJoin().begin(frame.data(), static_cast<uint32_t>(frame.size()));
  };
  const Bytes good = packet(path(4, false), 0, 100);
  CHECK(begins(good));
  Bytes frame = good;
  frame[14] = 0x46;  // IP options
  CHECK_FALSE(begins(frame));
  frame = good;
  frame[14 + 6] = 0x20;  // a fragment
  CHECK_FALSE(begins(frame));
  frame = good;
  frame[14 + 9] = kProtocolTcp;
  CHECK_FALSE(begins(frame));
  frame = good;
  frame[14 + 20 + 3] ^= 1;  // another port
  CHECK_FALSE(begins(frame));
  for (size_t length = 0; length < good.size(); ++length) CHECK_FALSE(begins(Bytes(good.begin(), good.begin() + length)));
}

TEST_CASE("super-frames: a datagram of neither IP version is none") {
  std::vector<Bytes> packets;
  for (uint32_t i = 0; i < 3; ++i) packets.push_back(packet(path(6, false), i, 100));
  Super super = join_all(packets);
  const auto length = static_cast<uint32_t>(super.bytes.size());
  CHECK(check_offload(super.bytes.data(), length, super.offload));
  super.bytes[14] = 0xb0;
  CHECK_FALSE(check_offload(super.bytes.data(), length, super.offload));
}

TEST_CASE("super-frames: any offload and any bytes are either refused or slices within the frame") {
  const RocePath way = path(4, false);
  std::vector<Bytes> packets;
  for (uint32_t i = 0; i < 6; ++i) packets.push_back(packet(way, i, 200));
  const Super super = join_all(packets);
  Random random(1, 2, 3);
  constexpr Refusal (*whole)(const uint8_t*, uint32_t, PacketMeta&) = classify;
  uint64_t accepted = 0, refused = 0, sliced = 0;
  for (int round = 0; round < 50'000; ++round) {
    Bytes bytes = super.bytes;
    Offload offload = super.offload;
    if (round % 2 == 0) bytes[random.next() % 60] = static_cast<uint8_t>(random.next());
    if (round % 3 == 0) bytes.resize(random.next() % bytes.size());
    if (round % 5 == 0) offload.segment_size = static_cast<uint16_t>(random.next() % 4 == 0 ? random.next() : random.next() % 40);
    if (round % 7 == 0) offload.checksum_start = static_cast<uint16_t>(random.next() % 80);
    ExactFrame frame(bytes);
    if (!check_offload(frame.data(), frame.length(), offload) || !is_roce_super_frame(frame.data(), offload)) {
      ++refused;
      continue;
    }
    ++accepted;
    CHECK(offload.segment_size >= kLeastRoceSegment);
    Bytes writable(bytes);
    SuperFrameSlices slices(writable.data(), frame.length(), offload);
    uint32_t length = 0;
    uint32_t behind = 0;
    PacketMeta meta;
    for (const uint8_t* slice = slices.next(length); slice != nullptr; slice = slices.next(length)) {
      CHECK(slice >= writable.data());
      CHECK(slice + length <= writable.data() + writable.size());
      behind += length - offload.header_length;
      PacketMeta alone;
      const Refusal refusal = classify(slice, length, alone);
      CHECK((meta.bth_offset != 0 ? classify_next_slice : whole)(slice, length, meta) == refusal);
      CHECK(meta == alone);
      sliced += meta.bth_offset != 0;
    }
    CHECK(behind + offload.header_length == writable.size());
  }
  CHECK(accepted > 1'000);
  CHECK(refused > 1'000);
  CHECK(sliced > 1'000);
}
