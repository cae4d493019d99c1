#include <map>
#include <set>

#include "test/wire_fixtures.h"
#include "wire/bth.h"
#include "wire/classify.h"
#include "wire/extension_headers.h"
#include "wire/icrc.h"
#include "wire/ip.h"

using namespace weir;
using namespace weir::test;

namespace {

Refusal classify(Bytes& frame, PacketMeta& meta) {
  return weir::classify(frame.data(), static_cast<uint32_t>(frame.size()), meta);
}

// Must follow a deliberate change of an IPv4 header.
void fix_checksum(Bytes& frame) {
  uint8_t* ip = frame.data() + 14;
  store_be16(ip + 10, 0);
  store_be16(ip + 10, internet_checksum(ip, ip_header_length(ip)));
}

std::map<int, int> count_opcodes(const std::string& name) {
  std::map<int, int> count;
  for (Bytes& frame : read_capture(name)) {
    PacketMeta meta;
    REQUIRE(classify(frame, meta) == Refusal::none);
    ++count[meta.opcode];
  }
  return count;
}

}  // namespace

TEST_CASE("classify: the opcodes of the captures") {
  const std::map<int, int> rc = {{0x00, 4}, {0x01, 3},  {0x02, 3}, {0x03, 1}, {0x04, 7}, {0x05, 1}, {0x06, 4}, {0x07, 4},
                                 {0x08, 3}, {0x09, 1},  {0x0a, 6}, {0x0b, 2}, {0x0c, 9}, {0x0d, 3}, {0x0e, 2}, {0x0f, 3},
                                 {0x10, 6}, {0x11, 25}, {0x12, 2}, {0x13, 1}, {0x14, 1}, {0x17, 1}};
  CHECK(count_opcodes("ops_rc") == rc);
  CHECK(count_opcodes("ops_rc6") == rc);
  CHECK(count_opcodes("ops_ud6") == std::map<int, int>{{0x64, 7}, {0x65, 1}});
}

TEST_CASE("classify: payload adds up to what the RETHs of each capture ask for, and acknowledgements and atomics have none") {
  for (const char* name : {"ops_rc", "ops_rc6"}) {
    CAPTURE(name);
    uint32_t written = 0, to_write = 0, read = 0, to_read = 0;
    for (Bytes& frame : read_capture(name)) {
      PacketMeta meta;
      REQUIRE(classify(frame, meta) == Refusal::none);
      const Reth reth = extension_length(meta.opcode) >= kRethHeader ? load_reth(&frame[meta.bth_offset + kBthHeader]) : Reth{};
      switch (meta.opcode) {
        case kOpcodeRcWriteFirst:
        case kOpcodeRcWriteOnly:
        case kOpcodeRcWriteOnlyImmediate:
          to_write += reth.dma_length;
          [[fallthrough]];
        case kOpcodeRcWriteMiddle:
        case kOpcodeRcWriteLast:
        case kOpcodeRcWriteLastImmediate:
          written += meta.payload_length;
          break;
        case kOpcodeRcReadResponseFirst:
        case kOpcodeRcReadResponseMiddle:
        case kOpcodeRcReadResponseLast:
        case kOpcodeRcReadResponseOnly:
          read += meta.payload_length;
          break;
        case kOpcodeRcReadRequest:
          to_read += reth.dma_length;
          [[fallthrough]];
        case kOpcodeRcAcknowledge:
        case kOpcodeRcAtomicAcknowledge:
        case kOpcodeRcCompareSwap:
        case kOpcodeRcFetchAdd:
          CHECK(meta.payload_length == 0);
          break;
        default:
          break;
      }
    }
    CHECK(written > 0);
    CHECK(written == to_write);
    CHECK(read > 0);
    CHECK(read == to_read);
  }
}

TEST_CASE("classify: a WRITE with its RETH and the NAK that answers it, as read from the bytes by hand") {
  std::vector<Bytes> frames = read_capture("nak_access");
  PacketMeta meta;
  REQUIRE(classify(frames[0], meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::roce);
  CHECK(meta.destination_mac == 0x52540a4d0001);
  CHECK(meta.source_mac == 0x52540a4d0002);
  CHECK(meta.ethertype == 0x0800);
  CHECK_FALSE(meta.tagged);
  CHECK(meta.ip_version == 4);
  CHECK(meta.dscp == 0);
  CHECK(meta.ecn == 0);
  CHECK(meta.l3_offset == 14);
  CHECK(meta.bth_offset == 42);
  CHECK(meta.udp_source_port == 0xc930);
  CHECK(meta.opcode == kOpcodeRcWriteOnly);
  CHECK(meta.destination_qp == 0x30);
  CHECK(meta.psn == 0x100000);
  CHECK(meta.ack_request);
  CHECK_FALSE(meta.becn);
  CHECK(meta.payload_length == 64);
  const Reth reth = load_reth(frames[0].data() + meta.bth_offset + kBthHeader);
  CHECK(reth.virtual_address == 0x7f38de1a7000);
  CHECK(reth.rkey == 0x7709);
  CHECK(reth.dma_length == 64);

  REQUIRE(classify(frames[1], meta) == Refusal::none);
  CHECK(meta.opcode == kOpcodeRcAcknowledge);
  CHECK(meta.destination_qp == 0x31);
  CHECK(meta.payload_length == 0);
  const Aeth aeth = load_aeth(frames[1].data() + meta.bth_offset + kBthHeader);
  CHECK(aeth.syndrome == 0x62);
  CHECK(aeth.msn == 0);
}

TEST_CASE("classify: UD over IPv6 with every pad count") {
  std::vector<Bytes> frames = read_capture("ops_ud6");
  const uint16_t payload[] = {0, 1, 2, 3, 64, 1024, 32, 33};
  const uint8_t pad[] = {0, 3, 2, 1, 0, 0, 0, 3};
  for (uint32_t i = 0; i < frames.size(); ++i) {
    CAPTURE(i);
    PacketMeta meta;
    REQUIRE(classify(frames[i], meta) == Refusal::none);
    CHECK(meta.ip_version == 6);
    CHECK(meta.bth_offset == 62);
    CHECK(meta.psn == 0x100000 + i);
    CHECK(meta.destination_qp == 0x2d);
    CHECK(meta.payload_length == payload[i]);
    CHECK(meta.pad_count == pad[i]);
    const Deth deth = load_deth(frames[i].data() + meta.bth_offset + kBthHeader);
    CHECK(deth.queue_key == 0x11111111);
    CHECK(deth.source_qp == 0x2e);
  }
}

TEST_CASE("classify: CE marks and CNPs") {
  for (Bytes& frame : read_capture("ce_marked")) {
    PacketMeta meta;
    REQUIRE(classify(frame, meta) == Refusal::none);
    CHECK(meta.ecn == 3);
  }
  int cnps = 0;
  for (Bytes& frame : read_capture("cnp_injected")) {
    PacketMeta meta;
    REQUIRE(classify(frame, meta) == Refusal::none);
    if (meta.kind != FrameKind::cnp) continue;
    ++cnps;
    CHECK(meta.opcode == kOpcodeCnp);
    CHECK(meta.becn);
    CHECK(meta.destination_qp == 0x3c);
    CHECK(meta.psn == 0);
    CHECK(meta.payload_length == 0);
  }
  CHECK(cnps == 10);
}

TEST_CASE("classify: a tag in the frame, and a tag that was stripped") {
  Bytes frame = read_capture("ops_rc").front();
  PacketMeta plain;
  REQUIRE(classify(frame, plain) == Refusal::none);
  PacketMeta stripped;
  REQUIRE(weir::classify(frame.data(), static_cast<uint32_t>(frame.size()), stripped, 0x7064) == Refusal::none);
  frame.insert(frame.begin() + 12, {0x81, 0x00, 0x70, 0x64});
  PacketMeta tagged;
  REQUIRE(classify(frame, tagged) == Refusal::none);
  CHECK(icrc_ok(frame.data(), tagged));
  for (const PacketMeta& meta : {stripped, tagged}) {
    CHECK(meta.tagged);
    CHECK(meta.pcp() == 3);
    CHECK(meta.vlan() == 0x064);
    CHECK(meta.ethertype == 0x0800);
    CHECK(meta.kind == FrameKind::roce);
    CHECK(meta.psn == plain.psn);
    CHECK(meta.payload_length == plain.payload_length);
    CHECK(meta.flow_hash == plain.flow_hash);
  }
  CHECK(stripped.bth_offset == 42);
  CHECK(tagged.bth_offset == 46);

  frame[12] = 0x88;  // 802.1ad: not looked into
  frame[13] = 0xa8;
  REQUIRE(classify(frame, tagged) == Refusal::none);
  CHECK(tagged.kind == FrameKind::other);
  CHECK(tagged.ethertype == 0x88a8);
  CHECK(tagged.destination_mac == plain.destination_mac);
  CHECK(tagged.l3_offset == 0);
}

TEST_CASE("classify: each refusal of the IP part leaves the MACs and no IP fields") {
  const Bytes good4 = read_capture("ops_rc").front();
  const Bytes good6 = read_capture("ops_rc6").front();
  const auto refused = [](Bytes frame, Refusal expected) {
    PacketMeta meta;
    CHECK(classify(frame, meta) == expected);
    CHECK(meta.kind == FrameKind::other);
    CHECK(meta.destination_mac == 0x52540a4d0001);
    CHECK(meta.source_mac == 0x52540a4d0002);
    CHECK((meta.ethertype == 0x0800 || meta.ethertype == 0x86dd));
    CHECK(meta.flow_hash != 0);
    CHECK(meta.l3_offset == 0);
    CHECK(meta.ip_version == 0);
    CHECK(meta.bth_offset == 0);
  };
  Bytes frame = good4;
  frame[14] = 0x65;
  refused(frame, Refusal::bad_ip_header);
  frame[14] = 0x44;
  refused(frame, Refusal::bad_ip_header);
  frame = good4;
  store_be16(frame.data() + 16, 19);
  refused(frame, Refusal::bad_ip_header);
  store_be16(frame.data() + 16, static_cast<uint16_t>(frame.size() - 14 + 1));
  refused(frame, Refusal::truncated_ip);
  frame = good4;
  frame[22] ^= 1;
  refused(frame, Refusal::bad_ip_checksum);
  frame = good6;
  frame[14] = 0x40;
  refused(frame, Refusal::bad_ip_header);
  frame = good6;
  store_be16(frame.data() + 18, static_cast<uint16_t>(load_be16(frame.data() + 18) + 1));
  refused(frame, Refusal::truncated_ip);
  frame = good4;
  frame.resize(33);
  refused(frame, Refusal::truncated_ip);
}

TEST_CASE("classify: each refusal above IP leaves what a switch needs to queue and mark the frame") {
  const auto refused = [](Bytes frame, Refusal expected) {
    fix_checksum(frame);
    PacketMeta meta;
    CHECK(classify(frame, meta) == expected);
    CHECK(meta.kind == FrameKind::other);
    CHECK(meta.l3_offset == 14);
    CHECK(meta.ip_version == 4);
    CHECK(meta.dscp == 26);
    CHECK(meta.ecn == 2);
    CHECK(meta.bth_offset == 0);
    CHECK(meta.opcode == 0);
    CHECK(meta.payload_length == 0);
  };
  Bytes good = read_capture("nak_access").front();
  good[15] = 26 << 2 | 2;
  const auto with_ip_payload = [&](uint16_t length) {
    Bytes frame = good;
    store_be16(frame.data() + 16, static_cast<uint16_t>(20 + length));
    if (length >= 8) store_be16(frame.data() + 38, length);
    return frame;
  };
  Bytes frame = good;
  frame[20] = 0x20;  // MF
  refused(frame, Refusal::ip_fragment);
  frame[20] = 0x00;
  frame[21] = 0x08;  // an offset
  refused(frame, Refusal::ip_fragment);
  refused(with_ip_payload(7), Refusal::truncated_udp);
  frame = good;
  store_be16(frame.data() + 38, 7);
  refused(frame, Refusal::bad_udp_length);
  store_be16(frame.data() + 38, static_cast<uint16_t>(load_be16(good.data() + 38) + 1));
  refused(frame, Refusal::bad_udp_length);
  store_be16(frame.data() + 38, static_cast<uint16_t>(load_be16(good.data() + 38) - 4));
  refused(frame, Refusal::bad_udp_length);
  refused(with_ip_payload(8 + 15), Refusal::truncated_bth);
  frame = good;
  frame[43] |= 1;
  refused(frame, Refusal::bad_transport_version);
  frame = with_ip_payload(8 + 16);
  frame[42] = kOpcodeRcAcknowledge;
  refused(frame, Refusal::bad_transport_length);
  frame[42] = kOpcodeRcSendOnly;
  frame[43] = 0x10;  // pad 1
  refused(frame, Refusal::bad_transport_length);
  frame = with_ip_payload(8 + 12 + 16 + 3);
  frame[42] = kOpcodeCnp;
  refused(frame, Refusal::truncated_bth);
}

TEST_CASE("classify: accepted oddities") {
  Bytes frame = read_capture("ops_rc").front();
  PacketMeta plain;
  REQUIRE(classify(frame, plain) == Refusal::none);
  PacketMeta meta;

  SUBCASE("IPv4 options") {
    frame.insert(frame.begin() + 34, {1, 1, 1, 0});
    frame[14] = 0x46;
    store_be16(frame.data() + 16, static_cast<uint16_t>(frame.size() - 14));
    fix_checksum(frame);
    REQUIRE(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::roce);
    CHECK(meta.bth_offset == 46);
    CHECK(meta.payload_length == plain.payload_length);
    CHECK(meta.flow_hash == plain.flow_hash);
    write_icrc(frame.data(), meta.l3_offset, static_cast<uint32_t>(frame.size()) - 4);
    CHECK(icrc_ok(frame.data(), meta));
  }
  SUBCASE("an opcode that we do not know: all behind the BTH is payload") {
    frame[42] = 0xa0;
    REQUIRE(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::roce);
    CHECK(meta.payload_length == frame.size() - 42 - 12 - 4 - plain.pad_count);
  }
  SUBCASE("UDP to another port") {
    frame[37] ^= 1;
    REQUIRE(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::other);
    CHECK(meta.udp_source_port == plain.udp_source_port);
    CHECK(meta.bth_offset == 0);
  }
  SUBCASE("a fragment of something else than UDP") {
    frame[20] = 0x20;
    frame[23] = 1;
    fix_checksum(frame);
    CHECK(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::other);
  }
  SUBCASE("IPv6 extension headers are not RoCEv2") {
    frame = read_capture("ops_rc6").front();
    frame[20] = 0;  // hop-by-hop options
    CHECK(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::other);
    CHECK(meta.ip_version == 6);
  }
  SUBCASE("not IP at all") {
    frame[12] = 0x08;
    frame[13] = 0x06;
    CHECK(classify(frame, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::other);
    CHECK(meta.ethertype == 0x0806);
    CHECK(meta.flow_hash != 0);
  }
}

TEST_CASE("classify: the IPv6 traffic class") {
  Bytes frame = read_capture("ops_rc6").front();
  store_be16(frame.data() + 14, 0x6000 | (26 << 2 | 1) << 4 | 0x0f);
  PacketMeta meta;
  REQUIRE(classify(frame, meta) == Refusal::none);
  CHECK(meta.dscp == 26);
  CHECK(meta.ecn == 1);
}

TEST_CASE("classify: the flow hash takes the five-tuple and nothing else, and spreads well") {
  for (const char* name : {"ops_rc", "ops_rc6"}) {
    CAPTURE(name);
    Bytes frame = read_capture(name).front();
    PacketMeta meta;
    REQUIRE(classify(frame, meta) == Refusal::none);
    const uint32_t hash = meta.flow_hash;
    const bool ipv4 = meta.ip_version == 4;
    const uint32_t udp = meta.bth_offset - 8u;
    for (uint32_t offset = 0; offset < frame.size(); ++offset) {
      const bool address = ipv4 ? offset >= 26 && offset < 34 : offset >= 22 && offset < 54;
      const bool tuple = address || (offset >= udp && offset < udp + 4);
      const bool structural = (offset >= 12 && offset < 14) || (offset >= 14 && offset < udp && !address && offset != 15);
      if (structural) continue;
      Bytes changed = frame;
      changed[offset] ^= 0x20;
      if (ipv4) fix_checksum(changed);
      PacketMeta other;
      classify(changed, other);
      CAPTURE(offset);
      CHECK((other.flow_hash != hash) == tuple);
    }
    // 16 next hops, 4096 consecutive source ports: each gets its share by the low and by the high bits.
    int low[16] = {};
    int high[16] = {};
    for (uint16_t port = 0; port < 4096; ++port) {
      store_be16(frame.data() + udp, static_cast<uint16_t>(0xc000 + port));
      REQUIRE(classify(frame, meta) == Refusal::none);
      ++low[meta.flow_hash & 15];
      ++high[meta.flow_hash >> 28];
    }
    for (int i = 0; i < 16; ++i) {
      CHECK(std::abs(low[i] - 256) < 80);  // 5 standard deviations
      CHECK(std::abs(high[i] - 256) < 80);
    }
  }
}

TEST_CASE("classify: fragments of one datagram share a hash") {
  Bytes frame = read_capture("ops_rc").front();
  frame[20] = 0x20;
  fix_checksum(frame);
  PacketMeta first;
  classify(frame, first);
  frame[20] = 0x00;
  frame[21] = 0x10;
  frame[34] ^= 0xff;  // payload where the ports of the first fragment are
  fix_checksum(frame);
  PacketMeta second;
  classify(frame, second);
  CHECK(first.flow_hash == second.flow_hash);
}

TEST_CASE("classify: a truncated tag") {
  Bytes frame = read_capture("ops_rc").front();
  frame.insert(frame.begin() + 12, {0x81, 0x00, 0x70, 0x64});
  for (uint32_t length = 0; length <= 18; ++length) {
    CAPTURE(length);
    ExactFrame cut({frame.data(), length});
    PacketMeta meta;
    const Refusal refusal = weir::classify(cut.data(), length, meta);
    CHECK(refusal == (length < 14 ? Refusal::runt : length < 18 ? Refusal::truncated_vlan : Refusal::truncated_ip));
    if (length >= 14) CHECK(meta.destination_mac == 0x52540a4d0001);
    if (length >= 14 && length < 18) CHECK(meta.ethertype == 0x8100);
  }
}
