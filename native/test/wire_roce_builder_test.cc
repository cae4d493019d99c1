#include "test/wire_fixtures.h"
#include "wire/checksum.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/roce_builder.h"

using namespace weir;
using namespace weir::test;

namespace {

RocePath path(uint8_t ip_version, bool tagged) {
  RocePath path;
  path.destination_mac = 0x025745000002;
  path.source_mac = 0x025745000001;
  path.tagged = tagged;
  path.vlan_tci = 3 << 13 | 1 << 12 | 100;  // with DEI
  path.ip_version = ip_version;
  const uint8_t source[16] = {10, 87, 0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::memcpy(path.source_ip, source, 16);
  std::memcpy(path.destination_ip, source, 16);
  path.destination_ip[3] = 2;
  path.dscp = 26;
  path.ecn = 2;
  path.udp_source_port = 0xc123;
  return path;
}

// Checks what is the same in every frame of path().
PacketMeta parse(Bytes& frame, uint8_t ip_version, bool tagged) {
  PacketMeta meta;
  REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
  CHECK(icrc_ok(frame.data(), meta));
  CHECK(meta.destination_mac == 0x025745000002);
  CHECK(meta.source_mac == 0x025745000001);
  CHECK(meta.tagged == tagged);
  CHECK(meta.ip_version == ip_version);
  CHECK(meta.udp_source_port == 0xc123);
  const uint8_t* ip = frame.data() + meta.l3_offset;
  if (ip_version == 4) {
    CHECK(load_be16(ip + 4) == 0);       // identification
    CHECK(load_be16(ip + 6) == 0x4000);  // DF
    CHECK(ip[8] == 64);
  } else {
    CHECK((load_be32(ip) & 0xfffff) == 0);  // flow label
    CHECK(ip[7] == 64);
  }
  CHECK(load_be16(frame.data() + meta.bth_offset - 2) == 0);  // UDP checksum
  return meta;
}

}  // namespace

TEST_CASE("roce builder: every length of payload on every kind of path, parsed back") {
  Bytes payload(70);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(7 * i + 1);
  for (const uint8_t ip_version : {uint8_t{4}, uint8_t{6}}) {
    for (const bool tagged : {false, true}) {
      const RoceTemplate roce(path(ip_version, tagged));
      for (uint32_t length = 0; length <= payload.size(); ++length) {
        CAPTURE(length);
        DataHeader header;
        header.opcode = kOpcodeRcSendMiddle;
        header.destination_qp = 0xabcdef;
        header.psn = 0xfffffe;
        Bytes frame(kMaxHeaders + length, 0xee);
        frame.resize(roce.build_data(frame.data(), header, payload.data(), length));
        const PacketMeta meta = parse(frame, ip_version, tagged);
        CHECK(meta.kind == FrameKind::roce);
        CHECK(meta.dscp == 26);
        CHECK(meta.ecn == 2);
        CHECK(meta.opcode == kOpcodeRcSendMiddle);
        CHECK(meta.destination_qp == 0xabcdef);
        CHECK(meta.psn == 0xfffffe);
        CHECK_FALSE(meta.ack_request);
        CHECK(meta.payload_length == length);
        CHECK(meta.l3_offset == roce.l3_offset());
        CHECK(meta.bth_offset == roce.bth_offset());
        const uint8_t* body = frame.data() + meta.bth_offset + kBthHeader;
        CHECK(std::equal(body, body + length, payload.begin()));
        CHECK(frame.size() == meta.bth_offset + kBthHeader + (length + 3) / 4 * 4 + kIcrc);
        for (uint32_t i = 0; i < meta.pad_count; ++i) CHECK(body[length + i] == 0);
        if (tagged) CHECK(meta.vlan_tci == (3 << 13 | 1 << 12 | 100));
      }
    }
  }
}

TEST_CASE("roce builder: another class changes DSCP and PCP, and the frame is as right as before") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    for (const bool tagged : {false, true}) {
      const RoceTemplate headers(path(version, tagged));
      DataHeader header;
      header.opcode = kOpcodeRcSendOnly;
      const std::vector<uint8_t> payload(100, 7);
      Bytes frame(kMaxHeaders + payload.size());
      frame.resize(headers.build_data(frame.data(), header, payload.data(), 100, 0));
      PacketMeta expected = parse(frame, version, tagged);
      headers.set_class(frame.data(), 48, 6);
      const PacketMeta meta = parse(frame, version, tagged);
      if (version == 4) CHECK(internet_checksum(frame.data() + meta.l3_offset, kIpv4Header) == 0);
      expected.dscp = 48;
      if (tagged) expected.vlan_tci = 6 << 13 | 1 << 12 | 100;
      CHECK(meta == expected);
    }
  }
}

TEST_CASE("roce builder: an entropy value moves the UDP source port, within its quarter, and nothing else") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    const RoceTemplate headers(path(version, false));
    DataHeader header;
    header.opcode = kOpcodeRcSendOnly;
    Bytes plain(kMaxHeaders + 64);
    plain.resize(headers.build_data(plain.data(), header, nullptr, 0));
    PacketMeta shape = parse(plain, version, false);
    for (const auto& [entropy, port] : {std::pair{1, 0xc124}, {0x3edc, 0xffff}, {0x3edd, 0xc000}, {0x3fff, 0xc122}}) {
      CAPTURE(entropy);
      header.entropy = static_cast<uint16_t>(entropy);
      Bytes sprayed(kMaxHeaders + 64);
      sprayed.resize(headers.build_data(sprayed.data(), header, nullptr, 0));
      PacketMeta meta;
      REQUIRE(classify(sprayed.data(), static_cast<uint32_t>(sprayed.size()), meta) == Refusal::none);
      CHECK(icrc_ok(sprayed.data(), meta));
      CHECK(meta.udp_source_port == port);
      CHECK(meta.flow_hash != shape.flow_hash);
      // Headers alone say the same in simulation.
      PacketMeta described = shape;
      take_source_port(sprayed.data(), described);
      CHECK(described == meta);
    }
  }
}

TEST_CASE("roce builder: RETH, immediate and telemetry, in that order, within kMaxHeaders") {
  RocePath longest = path(6, true);
  longest.cn_flow = 0xbeef;
  const RoceTemplate roce(longest);
  DataHeader header;
  header.opcode = kOpcodeRcWriteOnlyImmediate | kOpcodeTelemetry;
  header.destination_qp = 0x11;
  header.psn = 5;
  header.ack_request = true;
  header.solicited = true;
  header.partition_key = 0x8001;
  header.reth = {0x0123456789abcdef, 0xdeadbeef, 1};
  header.immediate = 0xcafe0001;
  const uint8_t payload = 0x5a;
  // The largest header there is: an exact allocation proves kMaxHeaders.
  const std::unique_ptr<uint8_t[]> out(new uint8_t[kMaxHeaders + 1]);
  const uint32_t length = roce.build_data(out.get(), header, &payload, 1);
  CHECK(length == kMaxHeaders + 1);
  Bytes frame(out.get(), out.get() + length);
  const PacketMeta meta = parse(frame, 6, true);
  CHECK(meta.ack_request);
  CHECK(meta.payload_length == 1);
  const uint8_t* bth = frame.data() + meta.bth_offset;
  CHECK(load_bth(bth).solicited);
  CHECK(load_bth(bth).partition_key == 0x8001);
  const Reth reth = load_reth(bth + kBthHeader);
  CHECK(reth.virtual_address == 0x0123456789abcdef);
  CHECK(reth.rkey == 0xdeadbeef);
  CHECK(reth.dma_length == 1);
  CHECK(load_be32(bth + kBthHeader + kRethHeader) == 0xcafe0001);
}

TEST_CASE("roce builder: byte for byte what rxe sent, but for the IPv4 identification") {
  int compared = 0;
  for (const char* name : {"ops_rc", "ops_rc6", "ops_uc", "ops_ud", "ops_ud6"}) {
    for (Bytes& golden : read_capture(name)) {
      PacketMeta meta;
      REQUIRE(classify(golden.data(), static_cast<uint32_t>(golden.size()), meta) == Refusal::none);
      const uint32_t extension = extension_length(meta.opcode);
      DataHeader header;
      const uint8_t has = extensions(meta.opcode);
      const uint8_t* ip = golden.data() + meta.l3_offset;
      RocePath p;
      p.destination_mac = meta.destination_mac;
      p.source_mac = meta.source_mac;
      p.ip_version = meta.ip_version;
      const uint32_t address = meta.ip_version == 4 ? 4 : 16;
      std::memcpy(p.source_ip, ip + (meta.ip_version == 4 ? 12 : 8), address);
      std::memcpy(p.destination_ip, ip + (meta.ip_version == 4 ? 16 : 24), address);
      p.dscp = meta.dscp;
      p.ecn = meta.ecn;
      p.udp_source_port = meta.udp_source_port;
      const uint8_t* body = golden.data() + meta.bth_offset + kBthHeader;
      header.opcode = meta.opcode;
      header.destination_qp = meta.destination_qp;
      header.psn = meta.psn;
      header.ack_request = meta.ack_request;
      header.solicited = load_bth(golden.data() + meta.bth_offset).solicited;
      const uint8_t* next = body;
      if (has & kHasDeth) header.deth = load_deth(next), next += kDethHeader;
      if (has & kHasReth) header.reth = load_reth(next), next += kRethHeader;
      if (has & kHasAeth) header.aeth = load_aeth(next), next += kAethHeader;
      if (has & kHasAtomic) header.atomic = load_atomic(next), next += kAtomicHeader;
      if (has & kHasAtomicAck) header.atomic_original = load_be64(next), next += kAtomicAckHeader;
      if (has & kHasImmediate) header.immediate = load_be32(next);
      Bytes built(kMaxHeaders + meta.payload_length);
      built.resize(RoceTemplate(p).build_data(built.data(), header, body + extension, meta.payload_length));
      if (meta.ip_version == 4) {
        // The identification is under the ICRC.
        std::memcpy(built.data() + meta.l3_offset + 4, ip + 4, 2);
        ip_set_length(built.data() + meta.l3_offset, load_be16(ip + 2));
        write_icrc(built.data(), meta.l3_offset, static_cast<uint32_t>(built.size()) - kIcrc);
      }
      REQUIRE(built == golden);
      ++compared;
    }
  }
  CHECK(compared > 200);
}

TEST_CASE("roce builder: CNP") {
  for (const uint8_t ip_version : {uint8_t{4}, uint8_t{6}}) {
    for (const bool tagged : {false, true}) {
      const RoceTemplate roce(path(ip_version, tagged));
      Bytes frame(kMaxHeaders, 0xee);
      frame.resize(roce.build_cnp(frame.data(), 0x123456, 48, 6));
      const PacketMeta meta = parse(frame, ip_version, tagged);
      CHECK(meta.kind == FrameKind::cnp);
      CHECK(meta.opcode == 0x81);
      CHECK(meta.destination_qp == 0x123456);
      CHECK(meta.psn == 0);
      CHECK(meta.becn);
      CHECK_FALSE(meta.ack_request);
      CHECK(meta.dscp == 48);
      CHECK(meta.ecn == 0);
      if (tagged) CHECK(meta.vlan_tci == (6 << 13 | 1 << 12 | 100));
      CHECK(load_bth(frame.data() + meta.bth_offset).partition_key == 0xffff);
      const uint8_t* reserved = frame.data() + meta.bth_offset + kBthHeader;
      CHECK(std::all_of(reserved, reserved + kCnpReserved, [](uint8_t byte) { return byte == 0; }));
      CHECK(frame.size() == meta.bth_offset + kBthHeader + kCnpReserved + kIcrc);
      // The template is as it was: data still goes out with the path's class.
      frame.assign(kMaxHeaders, 0xee);
      frame.resize(roce.build_data(frame.data(), {}, nullptr, 0));
      CHECK(parse(frame, ip_version, tagged).dscp == 26);
    }
  }
}

TEST_CASE("roce builder: a CNP equals the one that scapy made, but for the IPv4 identification") {
  Bytes golden = read_capture("cnp_injected")[2];
  RocePath p;
  p.destination_mac = 0x52540a4d0002;
  p.source_mac = 0x52540a4d0001;
  const uint8_t source[4] = {10, 77, 0, 1};
  const uint8_t destination[4] = {10, 77, 0, 2};
  std::memcpy(p.source_ip, source, 4);
  std::memcpy(p.destination_ip, destination, 4);
  p.udp_source_port = 0xcdd4;
  Bytes built(kMaxHeaders);
  built.resize(RoceTemplate(p).build_cnp(built.data(), 0x3c, 0, 0));
  REQUIRE(built.size() == golden.size());
  store_be16(built.data() + 18, 0x4242);
  ip_set_length(built.data() + 14, 60);
  write_icrc(built.data(), 14, 70);
  CHECK(built == golden);
}
