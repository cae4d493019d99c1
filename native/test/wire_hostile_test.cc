// Hostile bytes through everything that reads a received frame: run under AddressSanitizer, in exact-size memory.
#include <set>

#include "base/random.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/mac_control.h"
#include "wire/qcn.h"
#include "wire/udp.h"

using namespace weir;
using namespace weir::test;

namespace {

// Runs everything that takes a classified frame.
void exercise(ExactFrame& frame) {
  PacketMeta meta;
  const Refusal refusal = classify(frame.data(), frame.length(), meta);
  REQUIRE(refusal < Refusal::kCount);
  if (refusal != Refusal::none) REQUIRE((meta.kind == FrameKind::other || meta.kind == FrameKind::mac_control));
  if (meta.kind == FrameKind::roce || meta.kind == FrameKind::cnp) {
    (void)icrc_ok(frame.data(), meta);
  }
  meta.ecn = 3;
  write_ecn(frame.data(), meta);
  PfcFrame pfc;
  uint16_t quanta;
  (void)parse_pfc(frame.data(), frame.length(), pfc);
  (void)parse_pause(frame.data(), frame.length(), quanta);
  CongestionNotification cnm;
  if (parse_cnm(frame.data(), frame.length(), cnm)) {
    REQUIRE(meta.kind == FrameKind::cnm);
    REQUIRE((cnm.msdu.data() >= frame.data() && cnm.msdu.data() + cnm.msdu.size() <= frame.data() + frame.length()));
  } else {
    REQUIRE(meta.kind != FrameKind::cnm);
  }
  (void)classify(frame.data(), frame.length(), meta, 0x6001);
}

// `frame` with a CN-TAG in front of its ethertype, in an 802.1Q tag or not.
Bytes with_cn_tag(const Bytes& frame, bool tagged) {
  Bytes bytes = frame;
  const Bytes tags = tagged ? Bytes{0x81, 0x00, 0x60, 0x05, 0x22, 0xe9, 0xbe, 0xef} : Bytes{0x22, 0xe9, 0xbe, 0xef};
  bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
  return bytes;
}

}  // namespace

TEST_CASE("classify: every capture truncated at every length is safe and refused for the right reason") {
  for (const char* name : kCaptures) {
    for (const Bytes& whole : read_capture(name)) {
      for (uint32_t length = 0; length < whole.size(); ++length) {
        ExactFrame frame({whole.data(), length});
        PacketMeta meta;
        const Refusal refusal = classify(frame.data(), length, meta);
        REQUIRE(refusal == (length < 14 ? Refusal::runt : Refusal::truncated_ip));
        exercise(frame);
      }
    }
  }
}

TEST_CASE("classify: datagrams cut at every length, with lengths made to agree, are safe") {
  std::set<Refusal> seen;
  for (const char* name : {"ops_rc", "ops_rc6", "cnp_injected", "ops_ud"}) {
    for (const Bytes& whole : read_capture(name)) {
      const bool ipv4 = whole[12] == 0x08;
      const uint32_t udp = ipv4 ? 34 : 54;
      for (uint32_t length = udp; length < std::min<size_t>(whole.size(), 140); ++length) {
        Bytes bytes(whole.begin(), whole.begin() + length);
        ip_set_length(bytes.data() + 14, static_cast<uint16_t>(length - 14));
        if (length >= udp + 8) store_be16(bytes.data() + udp + 4, static_cast<uint16_t>(length - udp));
        ExactFrame frame(bytes);
        PacketMeta meta;
        seen.insert(classify(frame.data(), length, meta));
        exercise(frame);
      }
    }
  }
  CHECK(seen == std::set<Refusal>{Refusal::none, Refusal::truncated_udp, Refusal::truncated_bth, Refusal::bad_transport_length});
}

TEST_CASE("classify: captures behind a CN-TAG are what they were; cut at every length they are refused for the right reason") {
  for (const char* name : kCaptures) {
    for (const Bytes& whole : read_capture(name)) {
      PacketMeta plain;
      REQUIRE(classify(whole.data(), static_cast<uint32_t>(whole.size()), plain) == Refusal::none);
      for (const bool tagged : {false, true}) {
        const Bytes bytes = with_cn_tag(whole, tagged);
        const uint32_t more = tagged ? 8 : 4;
        PacketMeta meta;
        REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
        REQUIRE((meta.kind == plain.kind && meta.flow_hash == plain.flow_hash && meta.psn == plain.psn));
        REQUIRE((meta.cn_tagged && meta.cn_flow == 0xbeef && meta.tagged == tagged));
        REQUIRE(meta.bth_offset == plain.bth_offset + more);
        for (uint32_t length = 0; length < std::min<size_t>(bytes.size(), 140); ++length) {
          ExactFrame frame({bytes.data(), length});
          const Refusal refusal = classify(frame.data(), length, meta);
          REQUIRE(refusal == (length < 14          ? Refusal::runt
                              : length < 10 + more ? Refusal::truncated_vlan
                              : length < 14 + more ? Refusal::truncated_cn_tag
                                                   : Refusal::truncated_ip));
          exercise(frame);
        }
      }
    }
  }
}

TEST_CASE("classify: random damage to golden frames is safe") {
  Random random(5);
  for (const char* name : {"ops_rc", "ops_rc6", "ops_ud6", "cnp_injected"}) {
    for (const Bytes& whole : read_capture(name)) {
      for (int round = 0; round < 40; ++round) {
        Bytes bytes = whole;
        if (round % 4 == 3) bytes = with_cn_tag(bytes, round % 8 == 3);
        bytes.resize(1 + random.next() % bytes.size());
        for (int flips = 0; flips < 3; ++flips) {
          bytes[random.next() % std::min<size_t>(bytes.size(), 80)] = static_cast<uint8_t>(random.next());
        }
        // Half of them get past the IPv4 checksum.
        if (round % 2 == 0 && bytes.size() >= 74) ip_set_length(bytes.data() + 14, static_cast<uint16_t>(bytes.size() - 14));
        ExactFrame frame(bytes);
        exercise(frame);
      }
    }
  }
}

TEST_CASE("classify: random CNMs, damaged and cut, are safe") {
  Random random(7);
  std::set<Refusal> seen;
  for (int round = 0; round < 50'000; ++round) {
    uint8_t out[kCnmMaxLength];
    Bytes msdu(random.next() % 65, 0x5a);
    CongestionNotification cnm;
    cnm.quantized_feedback = 1;
    cnm.msdu = msdu;
    LinkHeader envelope;
    envelope.tagged = random.next() % 2 == 0;
    if (random.next() % 2 == 0) envelope.cn_flow = 0xbeef;
    Bytes bytes(out, out + build_cnm(out, envelope, cnm));
    if (random.next() % 2 == 0) bytes.resize(random.next() % (bytes.size() + 1));
    for (uint64_t flips = random.next() % 4; flips > 0 && !bytes.empty(); --flips) {
      bytes[random.next() % std::min<size_t>(bytes.size(), 48)] = static_cast<uint8_t>(random.next());
    }
    ExactFrame frame(bytes);
    PacketMeta meta;
    seen.insert(classify(frame.data(), frame.length(), meta));
    exercise(frame);
  }
  for (const Refusal refusal : {Refusal::none, Refusal::runt, Refusal::truncated_vlan, Refusal::truncated_cn_tag,
                                Refusal::truncated_cnm, Refusal::bad_cnm_version, Refusal::bad_cnm_length}) {
    CAPTURE(static_cast<int>(refusal));
    CHECK(seen.contains(refusal));
  }
}
