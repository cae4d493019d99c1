#include <algorithm>

#include "test/reference_checksum.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/ip.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("icrc: right on every frame of every capture, wrong after any covered bit flips") {
  size_t frames = 0;
  for (const char* name : kCaptures) {
    for (Bytes& frame : read_capture(name)) {
      CAPTURE(name);
      PacketMeta meta;
      REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
      REQUIRE(meta.bth_offset != 0);
      const Bytes before = frame;
      REQUIRE(icrc_ok(frame.data(), meta));
      REQUIRE(udp_checksum_ok(frame.data(), meta));
      REQUIRE(frame == before);
      const uint32_t icrc_offset = static_cast<uint32_t>(frame.size()) - 4;
      write_icrc(frame.data(), meta.l3_offset, icrc_offset);
      REQUIRE(frame == before);
      for (uint32_t offset = meta.bth_offset; offset < frame.size(); offset += 5) {
        if (offset == meta.bth_offset + 4u) continue;  // FECN and BECN are not covered
        frame[offset] ^= 0x10;
        CHECK_FALSE(icrc_ok(frame.data(), meta));
        frame[offset] ^= 0x10;
      }
      ++frames;
    }
  }
  CHECK(frames == 92 + 92 + 39 + 8 + 8 + 2 + 8 + 14);
}

TEST_CASE("icrc: IPv4 options are covered") {
  const Bytes plain = read_capture("ops_rc").front();
  const uint32_t ip = 14;
  Bytes frame(plain.begin(), plain.begin() + ip + kIpv4Header);
  const uint8_t options[] = {1, 1, 1, 1, 0x44, 4, 5, 0};  // no-operations, and a timestamp without room
  for (const uint8_t byte : options) frame.push_back(byte);
  frame.insert(frame.end(), plain.begin() + ip + kIpv4Header, plain.end());
  frame[ip] = 0x47;
  store_be16(frame.data() + ip + 2, static_cast<uint16_t>(load_be16(frame.data() + ip + 2) + sizeof options));
  const uint32_t icrc_offset = static_cast<uint32_t>(frame.size()) - 4;

  // The definition, field by field: annex A17.
  Bytes covered(8 + icrc_offset - ip, 0xff);
  std::copy(frame.begin() + ip, frame.begin() + icrc_offset, covered.begin() + 8);
  for (const size_t field : {1, 8, 10, 11, 28 + 6, 28 + 7, 36 + 4}) covered[8 + field] = 0xff;
  const uint32_t expected = crc32(covered.data(), covered.size(), 0);
  CHECK(compute_icrc(frame.data(), ip, icrc_offset) == expected);
  frame[ip + kIpv4Header + 2] ^= 1;
  CHECK(compute_icrc(frame.data(), ip, icrc_offset) != expected);
}

TEST_CASE("icrc: does not cover what routers and switches may change") {
  struct Field {
    const char* capture;
    std::vector<uint32_t> offsets;  // they count from the IP header
  };
  const Field fields[] = {{"ops_rc", {1, 8, 10, 11, 26, 27, 32}}, {"ops_rc6", {1, 2, 3, 7, 46, 47, 52}}};
  for (const Field& field : fields) {
    Bytes frame = read_capture(field.capture).front();
    PacketMeta meta;
    REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
    for (uint32_t offset = 0; offset < (meta.ip_version == 6 ? 60u : 40u); ++offset) {
      CAPTURE(field.capture);
      CAPTURE(offset);
      // The version and length fields steer the computation itself.
      if (offset == 0 || (meta.ip_version == 4 ? offset == 2 || offset == 3 : offset == 4 || offset == 5)) continue;
      const bool covered = std::find(field.offsets.begin(), field.offsets.end(), offset) == field.offsets.end();
      frame[meta.l3_offset + offset] ^= 0x81;
      CHECK(icrc_ok(frame.data(), meta) == !covered);
      frame[meta.l3_offset + offset] ^= 0x81;
    }
  }
}

TEST_CASE("icrc: Ethernet padding behind the datagram is left out") {
  Bytes frame = read_capture("ops_rc").front();
  frame.insert(frame.end(), 6, 0xaa);
  PacketMeta meta;
  REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
  CHECK(icrc_ok(frame.data(), meta));
}

TEST_CASE("udp checksum: none and right ones pass, wrong ones fail") {
  for (const char* name : {"ops_rc", "ops_rc6"}) {
    Bytes frame = read_capture(name).front();
    PacketMeta meta;
    REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
    uint8_t* ip = frame.data() + meta.l3_offset;
    uint8_t* udp = frame.data() + meta.bth_offset - kUdpHeader;
    const uint16_t length = load_be16(udp + 4);
    // The pseudo header as RFC 768 and RFC 8200 section 8.1 lay it out.
    Bytes covered;
    if (meta.ip_version == 4) {
      covered.assign(ip + 12, ip + 20);
      covered.insert(covered.end(), {0, 17, udp[4], udp[5]});
    } else {
      covered.assign(ip + 8, ip + 40);
      covered.insert(covered.end(), {0, 0, udp[4], udp[5], 0, 0, 0, 17});
    }
    covered.insert(covered.end(), udp, udp + length);
    const uint16_t checksum = internet_checksum(covered.data(), covered.size());
    REQUIRE(checksum != 0);
    store_be16(udp + 6, checksum);
    CHECK(udp_checksum_ok(frame.data(), meta));
    CHECK(icrc_ok(frame.data(), meta));
    store_be16(udp + 6, static_cast<uint16_t>(checksum ^ 0x0100));
    CHECK_FALSE(udp_checksum_ok(frame.data(), meta));
  }
}
