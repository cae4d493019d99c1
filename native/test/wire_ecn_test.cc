#include "base/random.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/ip.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("ecn: written for every codepoint, nothing else changes, checksum and ICRC stay right") {
  for (const char* name : {"ops_rc", "ops_rc6", "ce_marked"}) {
    for (const Bytes& original : read_capture(name)) {
      for (uint8_t ecn = 0; ecn < 4; ++ecn) {
        Bytes frame = original;
        const auto length = static_cast<uint32_t>(frame.size());
        PacketMeta before;
        REQUIRE(classify(frame.data(), length, before) == Refusal::none);
        PacketMeta meta = before;
        meta.ecn = ecn;
        write_ecn(frame.data(), meta);
        // A wrong checksum would be refused here.
        PacketMeta after;
        REQUIRE(classify(frame.data(), length, after) == Refusal::none);
        REQUIRE(after.ecn == ecn);
        REQUIRE(after.dscp == before.dscp);
        REQUIRE(icrc_ok(frame.data(), after));
        // Only the field and the IPv4 checksum differ.
        after.ecn = before.ecn;
        write_ecn(frame.data(), after);
        REQUIRE(frame == original);
      }
    }
  }
}

TEST_CASE("ecn: IPv6 keeps DSCP and flow label") {
  Bytes frame = read_capture("ops_rc6").front();
  store_be32(frame.data() + 14, 0x6fffffff);
  PacketMeta meta;
  REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
  meta.ecn = 0;
  write_ecn(frame.data(), meta);
  CHECK(load_be32(frame.data() + 14) == 0x6fcfffff);
  store_be32(frame.data() + 14, 0x60000000);
  meta.ecn = 3;
  write_ecn(frame.data(), meta);
  CHECK(load_be32(frame.data() + 14) == 0x60300000);
}

TEST_CASE("ecn: the incremental checksum equals recomputation for random IPv4 headers with options") {
  Random random(4);
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t ihl = 5 + static_cast<uint32_t>(random.next() % 11);
    Bytes frame(14 + ihl * 4);
    for (uint8_t& byte : frame) byte = static_cast<uint8_t>(random.next());
    store_be16(frame.data() + 12, 0x0800);
    uint8_t* ip = frame.data() + 14;
    ip[0] = static_cast<uint8_t>(0x40 | ihl);
    ip[9] = 1;
    ip_set_length(ip, static_cast<uint16_t>(ihl * 4));
    PacketMeta meta;
    REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
    meta.ecn = static_cast<uint8_t>(random.next() & 3);
    write_ecn(frame.data(), meta);
    const uint16_t incremental = load_be16(ip + 10);
    ip_set_length(ip, static_cast<uint16_t>(ihl * 4));
    REQUIRE(incremental == load_be16(ip + 10));
    REQUIRE((ip[1] & 3) == meta.ecn);
  }
}

TEST_CASE("ecn: a frame without a valid IP header is not touched") {
  Bytes frame = read_capture("ops_rc").front();
  frame[14 + 10] ^= 1;
  PacketMeta meta;
  REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::bad_ip_checksum);
  meta.ecn = 3;
  const Bytes before = frame;
  write_ecn(frame.data(), meta);
  CHECK(frame == before);
}
