#include <doctest/doctest.h>

#include <vector>

#include "base/random.h"
#include "test/reference_checksum.h"
#include "wire/checksum.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("internet checksum: the example of RFC 1071 section 3") {
  const uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  CHECK(checksum_fold(checksum_add(0, data, sizeof data)) == 0xddf2);
  CHECK(internet_checksum(data, sizeof data) == 0x220d);
  CHECK(checksum_add(0, data, 3) == 0x0001 + 0xf200);
}

TEST_CASE("internet checksum: the sum is that of 16-bit words, for every length at every alignment") {
  Random random(2);
  std::vector<uint8_t> bytes(70'000);
  const auto check = [&](size_t from, size_t length) {
    const std::vector<uint8_t> exact(bytes.begin() + from, bytes.begin() + from + length);  // ASan sees the end
    REQUIRE(checksum_fold(checksum_add(0, exact.data(), length)) == reference_sum(exact));
    REQUIRE(checksum_add(0, &bytes[from], length) <= 0xffff);
    REQUIRE(checksum_add(5, &bytes[from], length) == 5 + checksum_add(0, exact.data(), length));
  };
  for (const int kind : {0, 1, 2, 3}) {  // zeros, ones, random, mostly ones: carries everywhere
    for (uint8_t& byte : bytes) {
      const uint8_t any = static_cast<uint8_t>(random.next() >> 32);
      byte = kind == 0 ? 0 : kind == 1 ? 0xff : kind == 2 ? any : any < 8 ? any : 0xff;
    }
    for (size_t length = 0; length <= 200; ++length) {
      for (size_t from = 0; from < 9; ++from) check(from, length);
    }
    for (const size_t length : {1'500u, 9'001u, 65'535u, 66'000u}) check(1, length);
  }
}

TEST_CASE("internet checksum: the example of RFC 1624 section 4") { CHECK(checksum_update(0xdd2f, 0x5555, 0x3285) == 0x0000); }

TEST_CASE("internet checksum: an update equals recomputation for random IPv4 headers") {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    uint8_t header[20];
    for (uint8_t& byte : header) byte = static_cast<uint8_t>(random.next());
    header[0] = 0x45;
    store_be16(header + 10, 0);
    store_be16(header + 10, internet_checksum(header, sizeof header));
    REQUIRE(internet_checksum(header, sizeof header) == 0);

    const uint16_t before = load_be16(header);
    const uint16_t after = static_cast<uint16_t>((before & 0xff00) | (random.next() & 0xff));
    const uint16_t updated = checksum_update(load_be16(header + 10), before, after);
    store_be16(header, after);
    store_be16(header + 10, 0);
    REQUIRE(updated == internet_checksum(header, sizeof header));
  }
}
