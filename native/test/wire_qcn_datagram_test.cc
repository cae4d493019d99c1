// CNMs in IP and UDP. test/fixtures/pcaps/qcn_datagram.pcap has one of IPv4 and one of IPv6, written by hand from wire/qcn.h.
#include <array>
#include <cstring>

#include "base/random.h"
#include "test/wire_fixtures.h"
#include "wire/bytes.h"
#include "wire/classify.h"
#include "wire/qcn.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kMsduOf[] = {42, 62};
constexpr uint32_t kUdpOf[] = {kEthernetHeader + kIpv4Header, kEthernetHeader + kIpv6Header};

// Returns 10.0.1.9 or fd00:1::9.
IpAddress source_of(uint8_t version) {
  if (version == 4) return {.version = 4, .bytes = {10, 0, 1, 9}};
  return {.version = 6, .bytes = {0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
}
// 10.9.0.1 or fd00:9::1.
IpAddress router_of(uint8_t version) {
  if (version == 4) return {.version = 4, .bytes = {10, 9, 0, 1}};
  return {.version = 6, .bytes = {0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
}
uint32_t size_of(const Bytes& bytes) { return static_cast<uint32_t>(bytes.size()); }

// A CNM of layer 2 with the content of the datagram.
PacketId put_cnm(PacketPool& pool, const Bytes& datagram, const LinkHeader& link, size_t which) {
  const uint8_t* const pdu = datagram.data() + kUdpOf[which] + kUdpHeader;
  CongestionNotification content;
  REQUIRE(parse_cnm_pdu(pdu, kCnmPdu + kMsduOf[which], content) == Refusal::none);
  const PacketId id = pool.allocate();
  pool[id].reset();
  pool[id].length = build_cnm(pool.data(id), link, content);
  classify(pool.data(id), pool[id].length, pool[id].meta);
  REQUIRE(pool[id].meta.kind == FrameKind::cnm);
  return id;
}

constexpr LinkHeader kPlain{.destination_mac = 0x025745000001, .source_mac = 0x025753000102};

}  // namespace

TEST_CASE("qcn datagram: byte for byte, from a CNM with any tags, and back") {
  const std::vector<Bytes> frames = read_capture("qcn_datagram");
  REQUIRE(frames.size() == 2);
  for (size_t which = 0; which < 2; ++which) {
    const uint8_t version = which == 0 ? 4 : 6;
    const Bytes& frame = frames[which];
    for (const bool tags : {false, true}) {
      PacketPool pool(1, kTelemetryStride);
      LinkHeader link = kPlain;
      link.tagged = tags;
      link.vlan_tci = 0xc064;
      if (tags) link.cn_flow = 7;
      const PacketId id = put_cnm(pool, frame, link, which);
      REQUIRE(wrap_cnm(pool, id, router_of(version), 48, 64));
      CHECK(Bytes(pool.data(id), pool.data(id) + pool[id].length) == frame);
      const PacketMeta& meta = pool[id].meta;
      CHECK(meta.kind == FrameKind::cnm);
      CHECK(meta.ip_version == version);
      CHECK(meta.dscp == 48);
      CHECK(!meta.tagged);
      CHECK(!meta.cn_tagged);
    }
    PacketMeta meta;
    REQUIRE(classify(frame.data(), size_of(frame), meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::cnm);
    CHECK(is_to_cnm_port(frame.data(), meta));
    CongestionNotification cnm;
    REQUIRE(parse_cnm_datagram(frame.data(), meta, cnm) == Refusal::none);
    CHECK(cnm.quantized_feedback == 42);
    CHECK(cnm.priority == 3);
    CHECK(cnm.congestion_point == 0x0257530001020003);
    CHECK(cnm.queue_offset == 26'048);
    CHECK(cnm.queue_delta == -64);
    CHECK(cnm.msdu.size() == kMsduOf[which]);
    CHECK(cnm.msdu.size() == known_by(version));
    CHECK(sampled_source(cnm.msdu) == source_of(version));
  }
}

TEST_CASE("qcn datagram: none is made from another IP version, of what is no IP packet, or where there is no room") {
  const std::vector<Bytes> frames = read_capture("qcn_datagram");
  PacketPool pool(1, kTelemetryStride);
  const PacketId id = put_cnm(pool, frames[0], kPlain, 0);
  const Bytes before(pool.data(id), pool.data(id) + pool[id].length);
  CHECK(!wrap_cnm(pool, id, router_of(6), 48, 64));
  CHECK(Bytes(pool.data(id), pool.data(id) + pool[id].length) == before);
  pool.data(id)[kEthernetHeader + kCnmPdu + 1] = 0x06;  // ARP
  CHECK(!wrap_cnm(pool, id, router_of(4), 48, 64));
  PacketPool narrow(1, kHeaderStride);
  CHECK(!wrap_cnm(narrow, put_cnm(narrow, frames[1], kPlain, 1), router_of(6), 48, 64));
}

TEST_CASE("qcn datagram: at every length that cuts it, and for every field that is wrong, it is no CNM, and refused") {
  for (size_t which = 0; which < 2; ++which) {
    const Bytes frame = read_capture("qcn_datagram")[which];
    const uint32_t at = kUdpOf[which];
    const auto judged = [&](Bytes bytes, bool keeps_checksum = false) {
      if (!keeps_checksum) store_be16(bytes.data() + at + 6, 0);
      PacketMeta meta;
      REQUIRE(classify(bytes.data(), size_of(bytes), meta) == Refusal::none);
      REQUIRE(is_to_cnm_port(bytes.data(), meta));
      CongestionNotification cnm;
      const Refusal refusal = parse_cnm_datagram(bytes.data(), meta, cnm);
      if (!keeps_checksum) CHECK((meta.kind == FrameKind::cnm) == (refusal == Refusal::none));
      return refusal;
    };
    const auto with16 = [&](uint32_t offset, uint16_t value) {
      Bytes bytes = frame;
      store_be16(bytes.data() + at + offset, value);
      return bytes;
    };
    CHECK(judged(frame, true) == Refusal::none);
    CHECK(judged(frame) == Refusal::none);
    CHECK(judged(with16(10, 0x1234), true) == Refusal::bad_cnm_length);  // the checksum
    for (uint16_t length = 8; length < kUdpHeader + kCnmPdu; ++length) {
      CHECK(judged(with16(4, length)) == Refusal::truncated_cnm);
    }
    for (uint16_t length = kUdpHeader + kCnmPdu; length < kUdpHeader + kCnmPdu + kMsduOf[which]; ++length) {
      CHECK(judged(with16(4, length)) == Refusal::bad_cnm_length);
    }
    CHECK(judged(with16(8, 0x102a)) == Refusal::bad_cnm_version);
    CHECK(judged(with16(kUdpHeader + 22, 65)) == Refusal::bad_cnm_length);
    // Another port, a fragment, and what ends before its UDP header are other datagrams.
    PacketMeta meta;
    const auto is_cnm = [&](const Bytes& bytes) {
      classify(bytes.data(), size_of(bytes), meta);
      return meta.kind == FrameKind::cnm || is_to_cnm_port(bytes.data(), meta);
    };
    CHECK(!is_cnm(with16(2, 1022)));
    for (uint32_t length = kEthernetHeader; length < frame.size(); ++length) {
      CHECK(!is_cnm(Bytes(frame.begin(), frame.begin() + length)));
    }
    Bytes fragment = frame;
    if (which == 0) {
      fragment[kEthernetHeader + 6] |= 0x20;
      ip_set_length(fragment.data() + kEthernetHeader, static_cast<uint16_t>(frame.size() - kEthernetHeader));
      CHECK(!is_cnm(fragment));
    }
  }
}

TEST_CASE("qcn datagram: any bytes are safe") {
  Random random(11);
  const std::vector<Bytes> frames = read_capture("qcn_datagram");
  uint64_t parsed = 0;
  for (int round = 0; round < 50'000; ++round) {
    Bytes bytes = frames[random.next() % 2];
    bytes.resize(kEthernetHeader + random.next() % bytes.size());
    for (uint64_t n = random.next() % 4; n > 0; --n) bytes[12 + random.next() % (bytes.size() - 12)] ^= 1u << random.next() % 8;
    PacketMeta meta;
    classify(bytes.data(), size_of(bytes), meta);
    if (!is_to_cnm_port(bytes.data(), meta)) continue;
    CongestionNotification cnm;
    if (parse_cnm_datagram(bytes.data(), meta, cnm) != Refusal::none) continue;
    ++parsed;
    REQUIRE(cnm.msdu.size() <= kCnmMaxMsdu);
    REQUIRE(cnm.msdu.data() + cnm.msdu.size() <= bytes.data() + bytes.size());
    (void)sampled_source(cnm.msdu);
  }
  CHECK(parsed > 100);
}
