#include <numeric>
#include <string>

#include "base/random.h"
#include "test/rig/frames.h"
#include "test/wire_fixtures.h"
#include "wire/bth.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/offload.h"
#include "wire/qcn.h"
#include "wire/roce_builder.h"
#include "wire/segmentation.h"

using namespace weir;
using namespace weir::test;

namespace {

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += text[i] == ' ' ? 1 : 2) {
    if (text[i] != ' ') bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Bytes by hand, from the tables of the standard: to 02-57-45-00-00-01 from 02-57-53-00-01-02.
const std::string kMacs = "025745000001 025753000102 ";
const std::string kVlan = "8100 e064 ";  // priority 7, VLAN 100
const std::string kCnTagBytes = "22e9 beef ";
// Feedback 42; CPID; offset 26,048 = 407 * 64; delta -64; priority 3; to 02-57-45-00-00-05; 8 octets of MSDU.
const std::string kPdu = "22e7 002a 0257530001020003 0197 ffff 6000 025745000005 0008 0800450000401234";

const Bytes kMsdu = from_hex("0800450000401234");
const CongestionNotification kCnm = {.quantized_feedback = 42,
                                     .priority = 3,
                                     .congestion_point = 0x0257530001020003,
                                     .queue_offset = 26'048,
                                     .queue_delta = -64,
                                     .destination_mac = 0x025745000005,
                                     .msdu = kMsdu};

struct Layout {
  bool tagged;
  bool cn_tagged;
};
constexpr Layout kLayouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};

Bytes expected(const Layout& layout) {
  Bytes bytes = from_hex(kMacs + (layout.tagged ? kVlan : "") + (layout.cn_tagged ? kCnTagBytes : "") + kPdu);
  if (bytes.size() < 60) bytes.resize(60);
  return bytes;
}

LinkHeader envelope(const Layout& layout) {
  LinkHeader envelope{.destination_mac = 0x025745000001, .source_mac = 0x025753000102};
  envelope.tagged = layout.tagged;
  envelope.vlan_tci = 0xe064;
  if (layout.cn_tagged) envelope.cn_flow = 0xbeef;
  return envelope;
}

void check_same(const CongestionNotification& a, const CongestionNotification& b) {
  CHECK(a.quantized_feedback == b.quantized_feedback);
  CHECK(a.priority == b.priority);
  CHECK(a.congestion_point == b.congestion_point);
  CHECK(a.queue_offset == b.queue_offset);
  CHECK(a.queue_delta == b.queue_delta);
  CHECK(a.destination_mac == b.destination_mac);
  CHECK(Bytes(a.msdu.begin(), a.msdu.end()) == Bytes(b.msdu.begin(), b.msdu.end()));
}

uint32_t size_of(const Bytes& bytes) { return static_cast<uint32_t>(bytes.size()); }

RocePath path(uint8_t ip_version, const Layout& layout) {
  RocePath path{{.destination_mac = 0x025745000002, .source_mac = 0x025745000001}};
  path.tagged = layout.tagged;
  path.vlan_tci = 0x6064;
  if (layout.cn_tagged) path.cn_flow = 0xbeef;
  path.ip_version = ip_version;
  path.source_ip[15] = path.source_ip[3] = 1;
  path.destination_ip[15] = path.destination_ip[3] = 2;
  path.dscp = 26;
  path.ecn = 2;
  path.udp_source_port = 0xc123;
  return path;
}

Bytes roce_frame(uint8_t ip_version, const Layout& layout, uint32_t payload_length) {
  Bytes payload(payload_length);
  std::iota(payload.begin(), payload.end(), uint8_t{0});
  return roce(kOpcodeRcSendMiddle).on(path(ip_version, layout)).to(0x11).psn(7).payload(payload).bytes();
}

// A packet of a pool with these bytes, classified.
PacketId put(PacketPool& pool, const Bytes& frame) {
  const PacketId id = pool.has_payload() ? pool.allocate(size_of(frame)) : pool.allocate();
  REQUIRE(id != kNoPacket);
  Packet& packet = pool[id];
  packet.reset();
  packet.length = size_of(frame);
  REQUIRE(classify(frame.data(), packet.length, packet.meta) == Refusal::none);
  std::copy_n(frame.begin(), std::min<size_t>(frame.size(), pool.room(id)), pool.data(id));
  return id;
}

Bytes bytes_of(const PacketPool& pool, PacketId id) { return {pool.data(id), pool.data(id) + pool[id].length}; }

void check_same(const PacketMeta& a, const PacketMeta& b) {
  CHECK(a.kind == b.kind);
  CHECK(a.ethertype == b.ethertype);
  CHECK(a.tagged == b.tagged);
  CHECK(a.vlan_tci == b.vlan_tci);
  CHECK(a.cn_tagged == b.cn_tagged);
  CHECK(a.cn_flow == b.cn_flow);
  CHECK(a.l3_offset == b.l3_offset);
  CHECK(a.bth_offset == b.bth_offset);
  CHECK(a.flow_hash == b.flow_hash);
}

}  // namespace

TEST_CASE("qcn: a CNM byte for byte, and back, with and without its tags") {
  for (const Layout& layout : kLayouts) {
    CAPTURE(layout.tagged);
    CAPTURE(layout.cn_tagged);
    const Bytes frame = expected(layout);
    Bytes out(kCnmMaxLength, 0xee);
    const uint32_t length = build_cnm(out.data(), envelope(layout), kCnm);
    CHECK(Bytes(out.begin(), out.begin() + length) == frame);

    CongestionNotification cnm;
    REQUIRE(parse_cnm(frame.data(), size_of(frame), cnm));
    check_same(cnm, kCnm);
    PacketMeta meta;
    CHECK(classify(frame.data(), size_of(frame), meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::cnm);
    CHECK(meta.ethertype == 0x22e7);
    CHECK(meta.destination_mac == 0x025745000001);
    CHECK(meta.source_mac == 0x025753000102);
    CHECK(meta.tagged == layout.tagged);
    if (layout.tagged) CHECK(meta.vlan_tci == 0xe064);
    CHECK(meta.cn_tagged == layout.cn_tagged);
    CHECK(meta.cn_flow == (layout.cn_tagged ? 0xbeef : 0));
    CHECK(meta.ip_version == 0);

    // The kernel has taken the 802.1Q tag.
    if (!layout.tagged) {
      PacketMeta stripped;
      CHECK(classify(frame.data(), size_of(frame), stripped, 0xe064) == Refusal::none);
      CHECK(stripped.kind == FrameKind::cnm);
      CHECK(stripped.tagged);
      CHECK(stripped.vlan_tci == 0xe064);
      CHECK(stripped.cn_tagged == layout.cn_tagged);
      CHECK(stripped.cn_flow == meta.cn_flow);
    }
  }
}

TEST_CASE("qcn: the frames that other programs dissect are those that are built here") {
  const std::vector<Bytes> frames = read_capture("qcn");
  REQUIRE(frames.size() == 6);
  for (size_t i = 0; i < 4; ++i) CHECK(frames[i] == expected(kLayouts[i]));
  for (const bool tagged : {false, true}) {
    PacketPool pool(1, 2048);
    Bytes bare = read_capture(tagged ? "ops_rc6" : "ops_rc").front();
    const Bytes tag = from_hex("8100 6064");
    if (tagged) bare.insert(bare.begin() + 12, tag.begin(), tag.end());
    const PacketId id = put(pool, bare);
    REQUIRE(insert_cn_tag(pool, id, 0xbeef));
    CHECK(bytes_of(pool, id) == frames[tagged ? 5 : 4]);
    CHECK(icrc_ok(pool.data(id), pool[id].meta));
  }
}

TEST_CASE("qcn: any CNM that is built is parsed as it was, up to the unit of its quantities") {
  Random random(33);
  for (int round = 0; round < 20'000; ++round) {
    Bytes msdu(random.next() % 65);
    for (uint8_t& octet : msdu) octet = static_cast<uint8_t>(random.next());
    CongestionNotification cnm;
    cnm.quantized_feedback = static_cast<uint8_t>(random.next() % 64);
    cnm.priority = static_cast<uint8_t>(random.next() % 8);
    cnm.congestion_point = random.next();
    cnm.queue_offset = 64 * static_cast<int16_t>(random.next());
    cnm.queue_delta = 64 * static_cast<int16_t>(random.next());
    cnm.destination_mac = random.next() >> 16;
    cnm.msdu = msdu;
    const Layout& layout = kLayouts[random.next() % 4];
    Bytes out(kCnmMaxLength, 0xee);
    const uint32_t length = build_cnm(out.data(), envelope(layout), cnm);
    REQUIRE(length == std::max(60u, 14u + 24u + size_of(msdu) + 4u * layout.tagged + 4u * layout.cn_tagged));
    const uint32_t end = 14 + 24 + size_of(msdu) + 4u * layout.tagged + 4u * layout.cn_tagged;
    for (uint32_t i = end; i < length; ++i) REQUIRE(out[i] == 0);
    CongestionNotification parsed;
    REQUIRE(parse_cnm(out.data(), length, parsed));
    check_same(parsed, cnm);
  }
}

TEST_CASE("qcn: what does not fit its field becomes the nearest that does") {
  const auto rebuilt = [](CongestionNotification cnm) {
    uint8_t out[kCnmMaxLength];
    const uint32_t length = build_cnm(out, {}, cnm);
    CongestionNotification parsed;
    REQUIRE(parse_cnm(out, length, parsed));
    parsed.msdu = {parsed.msdu.data(), parsed.msdu.size()};
    return parsed;
  };
  struct Quantity {
    int64_t octets, stored;
  };
  for (const Quantity& q : {Quantity{63, 0},
                            {64, 64},
                            {127, 64},
                            {-63, 0},
                            {-64, -64},
                            {-127, -64},
                            {2'097'088, 2'097'088},
                            {2'097'152, 2'097'088},
                            {-2'097'152, -2'097'152},
                            {-2'097'216, -2'097'152},
                            {INT64_MAX, 2'097'088},
                            {INT64_MIN, -2'097'152}}) {
    CAPTURE(q.octets);
    CHECK(rebuilt({.queue_offset = q.octets}).queue_offset == q.stored);
    CHECK(rebuilt({.queue_delta = q.octets}).queue_delta == q.stored);
  }
  CHECK(rebuilt({.quantized_feedback = 64}).quantized_feedback == 63);
  CHECK(rebuilt({.quantized_feedback = 255}).quantized_feedback == 63);
  CHECK(rebuilt({.priority = 11}).priority == 3);
  const Bytes long_msdu(65, 0x5a);
  CHECK(rebuilt({.msdu = long_msdu}).msdu.size() == 64);
}

TEST_CASE("qcn: a CNM is refused at every length that cuts it, and for every field that is wrong") {
  for (const Layout& layout : kLayouts) {
    CAPTURE(layout.tagged);
    CAPTURE(layout.cn_tagged);
    Bytes whole = expected(layout);
    const uint32_t pdu = 14 + 4u * layout.tagged + 4u * layout.cn_tagged;
    whole.resize(pdu + 24 + 8);  // without padding
    for (uint32_t length = 0; length <= whole.size(); ++length) {
      CAPTURE(length);
      ExactFrame frame({whole.data(), length});
      PacketMeta meta;
      const Refusal refusal = classify(frame.data(), length, meta);
      const uint32_t behind_vlan = layout.tagged ? 18 : 14;
      const Refusal due = length < 14                                         ? Refusal::runt
                          : length < behind_vlan                              ? Refusal::truncated_vlan
                          : layout.cn_tagged && length < behind_vlan + kCnTag ? Refusal::truncated_cn_tag
                          : length < pdu + 24                                 ? Refusal::truncated_cnm
                          : length < whole.size()                             ? Refusal::bad_cnm_length
                                                                              : Refusal::none;
      REQUIRE(refusal == due);
      CHECK(meta.kind == (due == Refusal::none ? FrameKind::cnm : FrameKind::other));
      CHECK(meta.cn_tagged == (layout.cn_tagged && length >= behind_vlan + kCnTag));
      CongestionNotification cnm;
      CHECK(parse_cnm(frame.data(), length, cnm) == (due == Refusal::none));
    }
    const auto with = [&](uint32_t at, uint8_t value) {
      Bytes bytes = whole;
      bytes[pdu + at] = value;
      PacketMeta meta;
      const Refusal refusal = classify(bytes.data(), size_of(bytes), meta);
      CongestionNotification cnm;
      CHECK(parse_cnm(bytes.data(), size_of(bytes), cnm) == (refusal == Refusal::none));
      CHECK((meta.kind == FrameKind::cnm) == (refusal == Refusal::none));
      return refusal;
    };
    for (uint8_t version = 1; version < 16; ++version)
      CHECK(with(0, static_cast<uint8_t>(version << 4)) == Refusal::bad_cnm_version);
    CHECK(with(0, 0x0f) == Refusal::none);   // reserved bits
    CHECK(with(1, 0xea) == Refusal::none);   // the same
    CHECK(with(14, 0x7f) == Refusal::none);  // those below the encapsulated priority
    CHECK(with(1, 0x00) == Refusal::none);   // no feedback
    CHECK(with(23, 9) == Refusal::bad_cnm_length);
    CHECK(with(22, 1) == Refusal::bad_cnm_length);
    CHECK(with(23, 7) == Refusal::none);  // the bytes behind it are padding
    Bytes roomy = whole;
    roomy.resize(whole.size() + 200);
    PacketMeta meta;
    roomy[pdu + 23] = 64;
    CHECK(classify(roomy.data(), size_of(roomy), meta) == Refusal::none);
    roomy[pdu + 23] = 65;
    CHECK(classify(roomy.data(), size_of(roomy), meta) == Refusal::bad_cnm_length);
  }
}

TEST_CASE("qcn: a RoCEv2 frame with a CN-TAG is the same frame, four octets further") {
  for (const uint8_t ip_version : {uint8_t{4}, uint8_t{6}}) {
    for (const Layout& layout : kLayouts) {
      if (!layout.cn_tagged) continue;
      CAPTURE(ip_version);
      CAPTURE(layout.tagged);
      Bytes bare = roce_frame(ip_version, {layout.tagged, false}, 33);
      Bytes frame = roce_frame(ip_version, layout, 33);
      const uint32_t at = layout.tagged ? 16 : 12;
      Bytes inserted = bare;
      const Bytes tag = from_hex(kCnTagBytes);
      inserted.insert(inserted.begin() + at, tag.begin(), tag.end());
      CHECK(frame == inserted);

      PacketMeta meta, plain;
      REQUIRE(classify(frame.data(), size_of(frame), meta) == Refusal::none);
      REQUIRE(classify(bare.data(), size_of(bare), plain) == Refusal::none);
      CHECK(meta.kind == FrameKind::roce);
      CHECK(meta.cn_tagged);
      CHECK(meta.cn_flow == 0xbeef);
      CHECK_FALSE(plain.cn_tagged);
      CHECK(meta.ethertype == (ip_version == 4 ? 0x0800 : 0x86dd));
      CHECK(meta.l3_offset == plain.l3_offset + 4);
      CHECK(meta.bth_offset == plain.bth_offset + 4);
      CHECK(meta.payload_length == 33);
      CHECK(meta.dscp == 26);
      CHECK(meta.flow_hash == plain.flow_hash);  // it takes the same path
      CHECK(icrc_ok(frame.data(), meta));

      if (!layout.tagged) {
        PacketMeta stripped;
        REQUIRE(classify(frame.data(), size_of(frame), stripped, 0x6064) == Refusal::none);
        CHECK(stripped.kind == FrameKind::roce);
        CHECK(stripped.tagged);
        CHECK(stripped.cn_flow == 0xbeef);
        CHECK(stripped.l3_offset == meta.l3_offset);
      }
    }
  }
}

TEST_CASE("qcn: a CNP on a path with a CN-TAG changes the priority of its 802.1Q tag only") {
  for (const Layout& layout : kLayouts) {
    const Bytes frame = roce_cnp(0x12, path(4, layout));
    PacketMeta meta;
    REQUIRE(classify(frame.data(), size_of(frame), meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::cnp);
    CHECK(meta.tagged == layout.tagged);
    CHECK(meta.vlan_tci == (layout.tagged ? 0xc064 : 0));
    CHECK(meta.cn_tagged == layout.cn_tagged);
    CHECK(meta.cn_flow == (layout.cn_tagged ? 0xbeef : 0));
    CHECK(icrc_ok(frame.data(), meta));
  }
}

TEST_CASE("qcn: a CN-TAG is looked through once, and only where it belongs") {
  PacketMeta meta;
  // PAUSE is never tagged.
  Bytes frame = from_hex("0180c2000001 025753000102 22e9 0001 8808 0001 ffff");
  frame.resize(60);
  CHECK(classify(frame.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::mac_control);
  CHECK(meta.cn_tagged);
  // Two of them.
  frame = from_hex(kMacs + "22e9 0001 22e9 0002 0800");
  frame.resize(60);
  CHECK(classify(frame.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::other);
  CHECK(meta.cn_flow == 1);
  CHECK(meta.ethertype == 0x22e9);
  // It is in front of the 802.1Q tag.
  frame = from_hex(kMacs + "22e9 0001 8100 6064 0800");
  frame.resize(60);
  CHECK(classify(frame.data(), 60, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::other);
  CHECK_FALSE(meta.tagged);
  CHECK(meta.cn_tagged);
  CHECK(meta.ethertype == 0x8100);
}

TEST_CASE("qcn: a CN-TAG put into a packet and taken out leaves what was there") {
  for (const uint32_t stride : {2048u, kHeaderStride, 0u}) {
    for (const uint8_t ip_version : {uint8_t{4}, uint8_t{6}}) {
      for (const bool tagged : {false, true}) {
        CAPTURE(stride);
        PacketPool pool(2, stride);
        const Bytes bare = roce_frame(ip_version, {tagged, false}, 1000);
        Bytes frame = roce_frame(ip_version, {tagged, true}, 1000);
        const PacketId id = put(pool, bare);
        const PacketMeta before = pool[id].meta;
        const auto headers = [&](const Bytes& bytes) {
          return Bytes(pool.data(id), pool.data(id) + pool.present(id)) == Bytes(bytes.begin(), bytes.begin() + pool.present(id));
        };
        pool[id].offload.checksum_start = before.bth_offset - 8;
        REQUIRE(insert_cn_tag(pool, id, 0xbeef));
        PacketMeta after;
        REQUIRE(classify(frame.data(), size_of(frame), after) == Refusal::none);
        check_same(pool[id].meta, after);
        CHECK(pool[id].length == frame.size());
        CHECK(pool[id].offload.checksum_start == after.bth_offset - 8);
        CHECK(headers(frame));
        CHECK_FALSE(insert_cn_tag(pool, id, 1));
        CHECK(pool[id].meta.cn_flow == 0xbeef);

        remove_cn_tag(pool, id);
        check_same(pool[id].meta, before);
        CHECK(pool[id].length == bare.size());
        CHECK(pool[id].offload.checksum_start == before.bth_offset - 8);
        CHECK(headers(bare));
        remove_cn_tag(pool, id);
        CHECK(pool[id].length == bare.size());
      }
    }
  }
}

TEST_CASE("qcn: a CN-TAG goes on and off a CNM, and not into a packet that is full") {
  for (const uint32_t stride : {512u, kHeaderStride}) {
    PacketPool pool(2, stride);
    const PacketId id = put(pool, expected({true, false}));
    REQUIRE(insert_cn_tag(pool, id, 0xbeef));
    PacketMeta meta;
    CongestionNotification cnm;
    Bytes frame = bytes_of(pool, id);
    CHECK(classify(frame.data(), size_of(frame), meta) == Refusal::none);
    check_same(pool[id].meta, meta);
    REQUIRE(parse_cnm(frame.data(), size_of(frame), cnm));
    check_same(cnm, kCnm);
    remove_cn_tag(pool, id);
    CHECK(bytes_of(pool, id) == expected({true, false}));
  }
  PacketPool pool(1, 256);
  Bytes frame = expected({false, false});
  frame.resize(253);
  const PacketId id = put(pool, frame);
  CHECK_FALSE(insert_cn_tag(pool, id, 1));
  CHECK(bytes_of(pool, id) == frame);
  pool[id].length = 252;
  CHECK(insert_cn_tag(pool, id, 1));
}

TEST_CASE("qcn: a CN-TAG in a super-frame's packet") {
  PacketMemory memory({2, 256, 0, 1});
  PacketPool pool(memory);
  Bytes frame = expected({true, true});
  frame.resize(30'000, 0x5a);
  const PacketId id = put(pool, frame);
  remove_cn_tag(pool, id);
  Bytes bare = frame;
  bare.erase(bare.begin() + 16, bare.begin() + 20);
  CHECK(bytes_of(pool, id) == bare);
  CHECK(insert_cn_tag(pool, id, 0xbeef));
  CHECK(bytes_of(pool, id) == frame);
}

TEST_CASE("qcn: a CNM encapsulates a frame from its ethertype behind all tags on, as far as it is there") {
  for (const uint32_t stride : {2048u, kHeaderStride}) {
    for (const uint8_t ip_version : {uint8_t{4}, uint8_t{6}}) {
      for (const Layout& layout : kLayouts) {
        PacketPool pool(2, stride);
        const Bytes frame = roce_frame(ip_version, layout, 1000);
        const PacketId id = put(pool, frame);
        const uint32_t at = pool[id].meta.l3_offset - 2u;
        const auto is = [&](std::span<const uint8_t> msdu, size_t length) {
          return Bytes(msdu.begin(), msdu.end()) ==
                 Bytes(frame.begin() + at, frame.begin() + at + static_cast<ptrdiff_t>(length));
        };
        CHECK(is(msdu_of(pool, id, 0), 0));
        CHECK(is(msdu_of(pool, id, 40), 40));
        // A SEND in simulation ends behind its BTH.
        const uint32_t headers = pool[id].meta.bth_offset + 12u - at;
        CHECK(is(msdu_of(pool, id, 64), stride > kHeaderStride ? 64 : headers));
        CHECK(pool.present(id) == (stride > kHeaderStride ? frame.size() : at + headers));
      }
    }
  }
  PacketPool none(1, 0);
  CHECK(msdu_of(none, put(none, roce_frame(4, {}, 100)), 64).empty());
  PacketPool pool(2, 512);
  const Bytes shortest = from_hex(kMacs + "88b5");
  CHECK(msdu_of(pool, put(pool, shortest), 64).size() == 2);
}

TEST_CASE("qcn: what looks for the payload of a frame finds it behind a CN-TAG") {
  for (const Layout& layout : kLayouts) {
    const Bytes frame = roce_frame(4, layout, 8);
    CHECK(network_offset(frame.data(), size_of(frame)) == 14 + 4u * layout.tagged + 4u * layout.cn_tagged);
    for (uint32_t length = 0; length < 30; ++length) {
      ExactFrame cut({frame.data(), length});
      CHECK(network_offset(cut.data(), length) <= length);
    }
  }
}
