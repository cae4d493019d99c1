#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/mac_control.h"

using namespace weir;
using namespace weir::test;

namespace {

// IEEE 802.3 annex 31D.2: destination, source, ethertype, opcode; class enable for 3 and 6; quanta of priorities 0 to 7, of which
// 3 is paused for longest and 6 resumes. Zero to 60 bytes.
const Bytes kPfc = [] {
  Bytes frame = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x57, 0x53, 0x00, 0x01, 0x02, 0x88, 0x08, 0x01, 0x01, 0x00,
                 0x48, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  frame.resize(60);
  return frame;
}();
// Annex 31B: PAUSE for 0x1234 quanta.
const Bytes kPause = [] {
  Bytes frame = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x57, 0x53, 0x00, 0x01, 0x02, 0x88, 0x08, 0x00, 0x01, 0x12, 0x34};
  frame.resize(60);
  return frame;
}();
constexpr uint64_t kSource = 0x025753000102;

}  // namespace

TEST_CASE("mac control: PFC byte for byte, and back") {
  PfcFrame frame;
  frame.enable = 0x48;
  frame.quanta[3] = 0xffff;
  Bytes out(60, 0xee);
  CHECK(build_pfc(out.data(), kSource, frame) == 60);
  CHECK(out == kPfc);

  PfcFrame parsed;
  REQUIRE(parse_pfc(kPfc.data(), 60, parsed));
  CHECK(parsed.enable == 0x48);
  for (int i = 0; i < 8; ++i) CHECK(parsed.quanta[i] == (i == 3 ? 0xffff : 0));
  PacketMeta meta;
  CHECK(classify(kPfc.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::pfc);
  CHECK(meta.destination_mac == kMacControlAddress);
  CHECK(meta.source_mac == kSource);
  CHECK(meta.ethertype == 0x8808);
}

TEST_CASE("mac control: every priority has its own quanta") {
  PfcFrame frame;
  frame.enable = 0xff;
  for (uint16_t i = 0; i < 8; ++i) frame.quanta[i] = static_cast<uint16_t>(0x1111 * (i + 1));
  uint8_t out[60];
  build_pfc(out, kSource, frame);
  PfcFrame parsed;
  REQUIRE(parse_pfc(out, sizeof out, parsed));
  CHECK(parsed.enable == 0xff);
  CHECK(std::equal(std::begin(frame.quanta), std::end(frame.quanta), std::begin(parsed.quanta)));
}

TEST_CASE("mac control: PAUSE") {
  uint16_t quanta = 0;
  REQUIRE(parse_pause(kPause.data(), 60, quanta));
  CHECK(quanta == 0x1234);
  PacketMeta meta;
  CHECK(classify(kPause.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::pause);
}

TEST_CASE("mac control: any destination, reserved vector bits ignored, other kinds refused") {
  PfcFrame parsed;
  uint16_t quanta;
  Bytes frame = kPfc;
  frame[0] = 0x02;
  frame[16] = 0xff;
  CHECK(parse_pfc(frame.data(), 60, parsed));
  CHECK(parsed.enable == 0x48);
  CHECK_FALSE(parse_pause(kPfc.data(), 60, quanta));
  CHECK_FALSE(parse_pfc(kPause.data(), 60, parsed));
  frame[12] = 0x08;
  CHECK_FALSE(parse_pfc(frame.data(), 60, parsed));
}

TEST_CASE("mac control: truncated at every length") {
  for (const Bytes& whole : {kPfc, kPause}) {
    const uint32_t needed = whole[14] == 0x01 ? kPfcLength : kPauseLength;
    for (uint32_t length = 0; length <= whole.size(); ++length) {
      CAPTURE(length);
      ExactFrame frame({whole.data(), length});
      PfcFrame pfc;
      uint16_t quanta;
      PacketMeta meta;
      const Refusal refusal = classify(frame.data(), length, meta);
      const bool parsed = parse_pfc(frame.data(), length, pfc) || parse_pause(frame.data(), length, quanta);
      CHECK(parsed == (length >= needed));
      CHECK(refusal == (length < 14 ? Refusal::runt : length < needed ? Refusal::truncated_mac_control : Refusal::none));
      if (length >= 14 && length < needed) CHECK(meta.kind == FrameKind::mac_control);
    }
  }
}

TEST_CASE("mac control: unknown opcodes and tagged frames are mac_control, never obeyed, never forwarded") {
  PacketMeta meta;
  Bytes unknown = kPfc;
  unknown[15] = 0x02;
  CHECK(classify(unknown.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::mac_control);
  Bytes tagged = kPfc;
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x60, 0x00});
  CHECK(classify(tagged.data(), 64, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::mac_control);
  PfcFrame parsed;
  CHECK_FALSE(parse_pfc(tagged.data(), 64, parsed));
  CHECK(classify(kPfc.data(), 60, meta, 0x6000) == Refusal::none);
  CHECK(meta.kind == FrameKind::mac_control);
}

TEST_CASE("mac control: a PAUSE frame that was built is read as it was meant (IEEE 802.3 annex 31B)") {
  uint8_t bytes[60];
  std::memset(bytes, 0xff, sizeof bytes);
  CHECK(build_pause(bytes, 0x0257450000'01, 0x1234) == 60);
  const uint8_t start[18] = {0x01, 0x80, 0xc2, 0, 0, 1, 0x02, 0x57, 0x45, 0, 0, 1, 0x88, 0x08, 0, 1, 0x12, 0x34};
  CHECK(std::memcmp(bytes, start, sizeof start) == 0);
  for (size_t i = sizeof start; i < sizeof bytes; ++i) CHECK(bytes[i] == 0);
  uint16_t quanta = 0;
  CHECK(parse_pause(bytes, 60, quanta));
  CHECK(quanta == 0x1234);
}
