// Frames after trimming: classify() and a plain checksum are the judges.
#include <doctest/doctest.h>

#include <vector>

#include "test/nic_harness.h"
#include "test/wire_fixtures.h"
#include "wire/checksum.h"
#include "wire/ecn.h"
#include "wire/ip.h"
#include "wire/trim.h"

using namespace weir;
using namespace weir::test;

namespace {

Bytes write_of(uint8_t ip_version, bool tagged, uint32_t payload, uint8_t opcode = kOpcodeRcWriteOnly) {
  RocePath path = path_to(kNicMac, kPeerMac);
  path.ip_version = ip_version;
  path.tagged = tagged;
  path.vlan_tci = 3 << 13 | 42;
  return roce(opcode).on(path).to(0x123456).psn(0x654321).reth({0x1122334455667788, 7, payload}).payload(payload, 0xaa).bytes();
}

}  // namespace

TEST_CASE("trim: what is left of a RoCEv2 packet is a frame that says which packet it was, and that fails its ICRC") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    for (const bool tagged : {false, true}) {
      for (const uint32_t size : {kLeastTrimSize, 130u, 256u}) {
        CAPTURE(int{version});
        CAPTURE(tagged);
        CAPTURE(size);
        const Bytes whole = write_of(version, tagged, 1'000);
        ExactFrame frame(whole);
        Packet packet;
        packet.length = frame.length();
        REQUIRE(classify(frame.data(), frame.length(), packet.meta) == Refusal::none);
        REQUIRE(icrc_ok(frame.data(), packet.meta));
        REQUIRE(can_trim(packet, size));
        trim(frame.data(), packet, size, 40);
        CHECK(packet.length == size);
        ExactFrame left({frame.data(), size});
        PacketMeta meta;
        REQUIRE(classify(left.data(), size, meta) == Refusal::none);
        CHECK(meta == packet.meta);
        CHECK(meta.kind == FrameKind::roce);
        CHECK(meta.dscp == 40);
        CHECK(meta.ecn == 2);
        CHECK(meta.psn == 0x654321);
        CHECK(meta.destination_qp == 0x123456);
        CHECK(!icrc_ok(left.data(), meta));
        const uint8_t* ip = left.data() + meta.l3_offset;
        CHECK(ip_total_length(ip) == size - meta.l3_offset);
        if (version == 4) CHECK(internet_checksum(ip, ip_header_length(ip)) == 0);
        // All but the DSCP, the lengths and the header's checksum is as it was.
        uint32_t changed = 0;
        for (uint32_t i = 0; i < size; ++i) changed += left.data()[i] != whole[i] ? 1 : 0;
        CHECK(changed <= 8);
        // Marks are written as ever.
        meta.ecn = 3;
        write_ecn(left.data(), meta);
        CHECK(classify(left.data(), size, meta) == Refusal::none);
        CHECK(meta.dscp == 40);
        CHECK(meta.ecn == 3);
      }
    }
  }
}

TEST_CASE("trim: headers that are longer than a simulated frame's are there, whatever the packet") {
  for (const uint8_t opcode : {kOpcodeRcWriteOnly, kOpcodeRcSendOnly, kOpcodeRcWriteMiddle}) {
    Bytes bytes = write_of(6, true, 4'096, opcode);
    Packet packet;
    packet.length = static_cast<uint32_t>(bytes.size());
    REQUIRE(classify(bytes.data(), packet.length, packet.meta) == Refusal::none);
    const uint32_t before = packet.meta.payload_length;
    // Only the headers are there, as in a simulation.
    ExactFrame headers({bytes.data(), kHeaderStride});
    trim(headers.data(), packet, kLeastTrimSize, 40);
    CHECK(packet.meta.payload_length == before - (bytes.size() - kLeastTrimSize));
    PacketMeta meta;
    CHECK(classify(headers.data(), kLeastTrimSize, meta) == Refusal::none);
    CHECK(meta == packet.meta);
  }
}

TEST_CASE("trim: frames without an IP header, to groups, or that are short are not trimmed") {
  Packet packet;
  packet.length = 1'000;
  packet.meta.destination_mac = kNicMac;
  CHECK(!can_trim(packet, 128));
  packet.meta.l3_offset = 14;
  CHECK(can_trim(packet, 128));
  packet.meta.destination_mac = 0x0100'5e00'0001;
  CHECK(!can_trim(packet, 128));
  packet.meta.destination_mac = kNicMac;
  packet.length = 128;
  CHECK(!can_trim(packet, 128));
}

TEST_CASE("trim: of a short datagram in a padded frame only padding is cut, and a TCP checksum is not made right") {
  Bytes padded = write_of(4, false, 8);
  const uint32_t datagram = static_cast<uint32_t>(padded.size());
  padded.resize(400);
  Packet packet;
  packet.length = 400;
  REQUIRE(classify(padded.data(), 400, packet.meta) == Refusal::none);
  trim(padded.data(), packet, 128, 40);
  PacketMeta meta;
  REQUIRE(classify(padded.data(), 128, meta) == Refusal::none);
  CHECK(icrc_ok(padded.data(), meta));
  CHECK(datagram < 128);

  Bytes tcp(14 + 20 + 20 + 1'000, 0x55);
  tcp[12] = 8, tcp[13] = 0;
  const uint8_t address[4] = {10, 0, 0, 1};
  store_ipv4(tcp.data() + 14, kProtocolTcp, 0, 64, address, address);
  ip_set_length(tcp.data() + 14, 1'040);
  tcp[0] = 2;
  packet.length = static_cast<uint32_t>(tcp.size());
  REQUIRE(classify(tcp.data(), packet.length, packet.meta) == Refusal::none);
  const Bytes before = tcp;
  trim(tcp.data(), packet, 128, 63);
  REQUIRE(classify(tcp.data(), 128, meta) == Refusal::none);
  CHECK(meta.dscp == 63);
  CHECK(std::equal(tcp.begin() + 34, tcp.begin() + 128, before.begin() + 34));
}
