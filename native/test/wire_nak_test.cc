#include <doctest/doctest.h>

#include <cstring>

#include "test/rig/frames.h"
#include "wire/bth.h"
#include "wire/classify.h"
#include "wire/extension_headers.h"
#include "wire/icrc.h"
#include "wire/nak.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint8_t kRemoteAccess = 0x62;  // IBTA volume 1, table 46

PacketMeta classified(const std::vector<uint8_t>& frame) {
  PacketMeta meta;
  classify(frame.data(), static_cast<uint32_t>(frame.size()), meta);
  return meta;
}

RocePath over_ipv6() {
  RocePath path = path_to(kNicMac, kPeerMac);
  path.ip_version = 6;
  return path;
}

}  // namespace

TEST_CASE("NAK made of an answer: it has the answer's PSN and queue pair, and is a packet like any other") {
  RoceFrame answer = roce(kOpcodeRcAcknowledge).aeth({0x1f, 77});
  SUBCASE("an acknowledgement") {}
  SUBCASE("the only response to a READ") { answer = roce(kOpcodeRcReadResponseOnly).aeth({0x1f, 77}).payload(1000, 0x5a); }
  SUBCASE("one with a pad") { answer = roce(kOpcodeRcReadResponseOnly).aeth({0x1f, 77}).payload(3, 0x5a); }
  SUBCASE("the first response to a READ, over IPv6") {
    answer = roce(kOpcodeRcReadResponseFirst).on(over_ipv6()).aeth({0x1f, 77}).payload(1024, 0x5a);
  }
  std::vector<uint8_t> frame = answer.to(0x1234).psn(0xabcdef).bytes();
  PacketMeta meta = classified(frame);
  REQUIRE(can_nak(meta, static_cast<uint32_t>(frame.size())));
  auto length = static_cast<uint32_t>(frame.size());
  make_nak(frame.data(), length, meta, kRemoteAccess);
  frame.resize(length);
  const PacketMeta seen = classified(frame);
  CHECK(seen == meta);
  CHECK(seen.opcode == kOpcodeRcAcknowledge);
  CHECK(seen.destination_qp == 0x1234);
  CHECK(seen.psn == 0xabcdef);
  CHECK(seen.payload_length == 0);
  CHECK(icrc_ok(frame.data(), seen));
  const Aeth aeth = load_aeth(frame.data() + seen.bth_offset + kBthHeader);
  CHECK(aeth.syndrome == kRemoteAccess);
  CHECK(aeth.msn == 77);
  CHECK(length == seen.bth_offset + kBthHeader + kAethHeader + 4);
}

TEST_CASE("NAK made of an answer: there is none of what has no AETH, or not all of it") {
  const auto can = [](const std::vector<uint8_t>& frame) {
    return can_nak(classified(frame), static_cast<uint32_t>(frame.size()));
  };
  CHECK_FALSE(can(roce(kOpcodeRcSendOnly).payload(64).bytes()));
  CHECK_FALSE(can(roce_cnp(17)));
  CHECK_FALSE(can(std::vector<uint8_t>(64, 0)));
  std::vector<uint8_t> cut = roce(kOpcodeRcAcknowledge).aeth({0x1f, 77}).bytes();
  CHECK(can(cut));
  PacketMeta meta = classified(cut);
  for (uint32_t length = 0; length < cut.size(); ++length) CHECK_FALSE(can_nak(meta, length));
}
