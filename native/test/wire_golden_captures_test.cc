// Everything that a stock Linux Soft-RoCE was seen to put on the wire: each of its captures, whole or in part.
#include <map>

#include "test/reference_checksum.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/icrc.h"

using namespace weir;
using namespace weir::test;

namespace {

struct Capture {
  const char* name;
  std::map<unsigned, size_t> frames;  // numbers of frames by BTH opcode
};

const Capture kGolden[] = {
    {"big_write", {{0x06, 1}, {0x07, 4}, {0x11, 1}}},
    {"ce_marked", {{0x06, 1}, {0x07, 7}}},
    {"cm_reject", {{0x64, 2}}},
    {"cnp_injected", {{0x04, 2}, {0x11, 2}, {0x81, 10}}},
    {"ib_read_bw", {{0x0c, 4}, {0x0d, 3}, {0x0e, 4}, {0x0f, 2}}},
    {"ib_read_bw_R", {{0x04, 8}, {0x0c, 3}, {0x0d, 2}, {0x0e, 4}, {0x0f, 1}, {0x11, 8}, {0x64, 6}}},
    {"ib_send_bw", {{0x00, 3}, {0x01, 4}, {0x02, 2}, {0x11, 1}}},
    {"ib_send_bw_R", {{0x00, 2}, {0x01, 4}, {0x02, 1}, {0x04, 8}, {0x11, 8}, {0x64, 6}}},
    {"ib_write_bw", {{0x06, 3}, {0x07, 4}, {0x08, 2}, {0x11, 2}}},
    {"ib_write_bw_R", {{0x04, 8}, {0x06, 2}, {0x07, 4}, {0x08, 1}, {0x11, 8}, {0x64, 6}}},
    {"ibv_rc_pingpong", {{0x00, 8}, {0x01, 8}, {0x02, 8}, {0x11, 8}}},
    {"ibv_uc_pingpong", {{0x20, 8}, {0x21, 8}, {0x22, 8}}},
    {"ibv_ud_pingpong", {{0x64, 8}}},
    {"lost_ack", {{0x04, 2}, {0x11, 2}}},
    {"lost_all_acks", {{0x06, 2}, {0x07, 4}, {0x11, 2}}},
    {"lost_read_request", {{0x0c, 5}, {0x0d, 3}, {0x0e, 3}, {0x0f, 3}, {0x11, 1}}},
    {"lost_write_last", {{0x06, 2}, {0x07, 4}, {0x08, 1}, {0x11, 4}}},
    {"lost_write_middle", {{0x06, 1}, {0x07, 4}, {0x08, 2}, {0x11, 2}}},
    {"nak_access", {{0x0a, 1}, {0x11, 1}}},
    {"nak_access_read", {{0x0c, 1}, {0x11, 1}}},
    {"ops_rc",
     {{0x00, 4}, {0x01, 3}, {0x02, 3}, {0x03, 1}, {0x04, 7}, {0x05, 1}, {0x06, 4},  {0x07, 4}, {0x08, 3}, {0x09, 1}, {0x0a, 6},
      {0x0b, 2}, {0x0c, 9}, {0x0d, 3}, {0x0e, 2}, {0x0f, 3}, {0x10, 6}, {0x11, 25}, {0x12, 2}, {0x13, 1}, {0x14, 1}, {0x17, 1}}},
    {"ops_rc6",
     {{0x00, 4}, {0x01, 3}, {0x02, 3}, {0x03, 1}, {0x04, 7}, {0x05, 1}, {0x06, 4},  {0x07, 4}, {0x08, 3}, {0x09, 1}, {0x0a, 6},
      {0x0b, 2}, {0x0c, 9}, {0x0d, 3}, {0x0e, 2}, {0x0f, 3}, {0x10, 6}, {0x11, 25}, {0x12, 2}, {0x13, 1}, {0x14, 1}, {0x17, 1}}},
    {"ops_rc_mtu256",
     {{0x00, 4}, {0x01, 3}, {0x02, 3}, {0x03, 1}, {0x04, 7}, {0x05, 1}, {0x06, 4},  {0x07, 4}, {0x08, 3}, {0x09, 1}, {0x0a, 6},
      {0x0b, 2}, {0x0c, 9}, {0x0d, 3}, {0x0e, 2}, {0x0f, 3}, {0x10, 6}, {0x11, 25}, {0x12, 2}, {0x13, 1}, {0x14, 1}, {0x17, 1}}},
    {"ops_uc",
     {{0x20, 4},
      {0x21, 3},
      {0x22, 3},
      {0x23, 1},
      {0x24, 7},
      {0x25, 1},
      {0x26, 4},
      {0x27, 4},
      {0x28, 3},
      {0x29, 1},
      {0x2a, 6},
      {0x2b, 2}}},
    {"ops_ud", {{0x64, 7}, {0x65, 1}}},
    {"ops_ud6", {{0x64, 7}, {0x65, 1}}},
    {"psn_wrap", {{0x06, 3}, {0x07, 6}, {0x08, 3}, {0x11, 3}}},
    {"rnr_nak", {{0x04, 39}, {0x05, 1}, {0x11, 40}}},
    {"rping", {{0x04, 40}, {0x0a, 10}, {0x0c, 10}, {0x10, 10}, {0x11, 50}, {0x64, 5}}},
    {"rping6", {{0x04, 20}, {0x0a, 5}, {0x0c, 5}, {0x10, 5}, {0x11, 25}, {0x64, 5}}},
    {"ucmatose", {{0x04, 12}, {0x11, 12}, {0x64, 10}}},
};

}  // namespace

TEST_CASE("golden captures: every frame is understood, and its ICRC is right") {
  for (const Capture& capture : kGolden) {
    CAPTURE(capture.name);
    std::map<unsigned, size_t> seen;
    for (const Bytes& frame : read_capture(capture.name)) {
      ExactFrame exact(frame);
      PacketMeta meta;
      REQUIRE(classify(exact.data(), exact.length(), meta) == Refusal::none);
      CHECK(meta.kind == (meta.opcode == 0x81 ? FrameKind::cnp : FrameKind::roce));
      CHECK(icrc_ok(exact.data(), meta));
      CHECK(udp_checksum_ok(exact.data(), meta));
      ++seen[meta.opcode];
    }
    CHECK(seen == capture.frames);
  }
}
