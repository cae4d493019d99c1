// The header for telemetry: how switches write into it, what is refused, and that packets with it are whole wherever they pass.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "test/rig/frames.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/roce_builder.h"
#include "wire/telemetry.h"

namespace weir {
namespace {

using Header = std::array<uint8_t, kTelemetryHeader>;

Header fresh() {
  Header header;
  store_telemetry(header.data());
  return header;
}

std::vector<uint8_t> frame_of(uint8_t ip_version, uint8_t opcode, uint32_t payload) {
  RocePath path = test::path_to(test::kNicMac, test::kPeerMac);
  path.ip_version = ip_version;
  return test::roce(opcode).on(path).to(0x11).payload(payload, 0x5a).bytes();
}

}  // namespace

TEST_CASE("telemetry: what switches write is read as they wrote it, hop by hop") {
  Header header = fresh();
  Telemetry read;
  REQUIRE(load_telemetry(header.data(), read));
  CHECK(read.hops == 0);
  for (uint32_t i = 0; i < kMostHops; ++i) {
    const TelemetryHop hop{.time = UINT32_MAX - i, .sent = 7 * i, .queue = 64'064 * i, .rate = Rate{1'000'000'000} << i};
    REQUIRE(write_hop(header.data(), hop) == HopWritten::written);
  }
  REQUIRE(load_telemetry(header.data(), read));
  REQUIRE(read.hops == kMostHops);
  for (uint32_t i = 0; i < kMostHops; ++i) {
    CHECK(read.hop[i].time == UINT32_MAX - i);
    CHECK(read.hop[i].sent == 7 * i);
    CHECK(read.hop[i].queue == 64'064 * i);
    CHECK(std::abs(static_cast<double>(read.hop[i].rate) / static_cast<double>(Rate{1'000'000'000} << i) - 1) < 1.0 / 4'096);
  }
  // There is no room for more, which is counted as far as a byte goes.
  const Header full = header;
  for (int i = 0; i < 300; ++i) CHECK(write_hop(header.data(), {.rate = 1}) == HopWritten::overflowed);
  CHECK(header[1] == 255);
  CHECK(std::memcmp(header.data() + 4, full.data() + 4, kTelemetryHeader - 4) == 0);
  REQUIRE(load_telemetry(header.data(), read));
  CHECK(read.hops == kMostHops);
}

TEST_CASE("telemetry: byte for byte") {
  Header header = fresh();
  write_hop(header.data(), {.time = 0x01020304, .sent = 0x05060708, .queue = 0x090a * 64 + 63, .rate = 40'000'000'000});
  // 40e9 is 2384.19 x 2^24.
  const uint8_t expected[16] = {0x11, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0a, 24 << 3 | 1, 0x50};
  CHECK(std::memcmp(header.data(), expected, sizeof expected) == 0);
  write_hop(header.data(), {.queue = 100'000'000, .rate = 0});
  Telemetry read;
  REQUIRE(load_telemetry(header.data(), read));
  CHECK(read.hop[0].rate == Rate{2384} << 24);
  CHECK(read.hop[1].queue == 65'535 * 64);
  CHECK(read.hop[1].rate == 2'048);
}

TEST_CASE("telemetry: rates are right to 1/4096, and never fall as they grow") {
  Rate last = 0;
  for (double rate = 2'048; rate < 8e12; rate *= 1.0007) {
    const Rate read = telemetry_rate_of(telemetry_rate(static_cast<Rate>(rate)));
    REQUIRE(std::abs(static_cast<double>(read) / rate - 1) <= 1.0 / 4'096 + 1e-3 / rate * 2'048);
    REQUIRE(read >= last);
    last = read;
  }
  for (const Rate rate : {Rate{0}, Rate{1}, Rate{2'048}, Rate{4'095}, Rate{4'096}, Rate{INT64_MAX}}) {
    const Rate read = telemetry_rate_of(telemetry_rate(rate));
    CHECK(read >= 2'048);
    CHECK(read <= Rate{4'095} << 31);
  }
}

TEST_CASE("telemetry: a header that is not of its form is left alone and read by nobody, whatever its bytes are") {
  const auto refused = [](uint32_t at, uint8_t value) {
    Header header = fresh();
    header[at] = value;
    const Header before = header;
    Telemetry read;
    read.hops = 77;
    const bool left = write_hop(header.data(), {.rate = 1}) == HopWritten::malformed && header == before;
    return left && !load_telemetry(header.data(), read) && read.hops == 77;
  };
  CHECK(refused(0, 0x00));
  CHECK(refused(0, 0x20));
  CHECK(refused(0, 0x16));
  CHECK(refused(0, 0x1f));
  CHECK(refused(1, 1));  // there was room
  CHECK(refused(2, 1));
  CHECK(refused(3, 0x80));
  Random random(3, 0, 0);
  for (int i = 0; i < 100'000; ++i) {
    Header header;
    for (uint8_t& byte : header) byte = static_cast<uint8_t>(random.next());
    if (i % 2 == 0) header[0] = static_cast<uint8_t>(0x10 | (header[0] & 7)), header[1] = header[2] = header[3] = 0;
    Telemetry read;
    const bool ok = load_telemetry(header.data(), read);
    REQUIRE((write_hop(header.data(), {.rate = 1}) != HopWritten::malformed) == ok);
    REQUIRE(read.hops <= kMostHops);
  }
}

TEST_CASE("telemetry: SENDs, WRITEs, READ responses and acknowledgements have it, and no other opcodes change") {
  uint32_t with = 0;
  for (uint32_t i = 0; i < 256; ++i) {
    const auto opcode = static_cast<uint8_t>(i);
    if (!has_telemetry(opcode)) {
      CHECK(plain_opcode(opcode) == opcode);
      CHECK((extensions(opcode) & kHasTelemetry) == 0);
      continue;
    }
    ++with;
    const uint8_t plain = plain_opcode(opcode);
    CHECK(extension_length(opcode) == extension_length(plain) + kTelemetryHeader);
    CHECK(telemetry_offset(opcode) == kBthHeader + extension_length(plain));
    CHECK(opcode_shape(plain).extensions + kHasTelemetry == extensions(opcode));
  }
  CHECK(with == 19);
  CHECK_FALSE(has_telemetry(kOpcodeTelemetry | kOpcodeRcReadRequest));
  CHECK_FALSE(has_telemetry(kOpcodeTelemetry | kOpcodeRcFetchAdd));
}

TEST_CASE("telemetry: switches change nothing that the ICRC covers, which covers all else") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    for (const uint8_t plain : {kOpcodeRcSendMiddle, kOpcodeRcWriteFirst, kOpcodeRcWriteOnlyImmediate, kOpcodeRcAcknowledge}) {
      const auto opcode = static_cast<uint8_t>(plain | kOpcodeTelemetry);
      std::vector<uint8_t> frame = frame_of(version, opcode, plain == kOpcodeRcAcknowledge ? 0 : 101);
      PacketMeta meta;
      REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
      CHECK(meta.kind == FrameKind::roce);
      CHECK(meta.payload_length == (plain == kOpcodeRcAcknowledge ? 0 : 101));
      REQUIRE(icrc_ok(frame.data(), meta));
      const uint32_t at = meta.bth_offset + telemetry_offset(opcode);
      REQUIRE(telemetry_ok(frame.data() + at));
      write_hop(frame.data() + at, {.time = 1, .sent = 2, .queue = 640, .rate = 1'000'000});
      CHECK(icrc_ok(frame.data(), meta));
      for (const uint32_t other : {meta.bth_offset + kBthHeader - 1, at - 1, at + kTelemetryHeader}) {
        frame[other] ^= 1;
        CHECK_FALSE(icrc_ok(frame.data(), meta));
        frame[other] ^= 1;
      }
      CHECK(icrc_ok(frame.data(), meta));
      // A packet without all of the header is no such packet.
      CHECK(classify(frame.data(), at + kTelemetryHeader, meta) != Refusal::none);
    }
  }
}

}  // namespace weir
