// Telemetry that a switch writes into packets, and the packets into which it writes none.
#include <doctest/doctest.h>

#include <vector>

#include "test/rig/frames.h"
#include "test/super_frames.h"
#include "test/switch_harness.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/roce_builder.h"
#include "wire/telemetry.h"

namespace weir::test {
namespace {

// Real frames from host 0 and 1 to host 2, and what their telemetry says when they have left.
class Bed {
 public:
  explicit Bed(bool tells = true, Rate rate = k1G) : parameters_(with(tells, rate)), pool(256, 2'048), wire(parameters_, pool) {
    for (uint16_t i = 0; i < 3; ++i) REQUIRE(wire.device.forwarding().add_static(kHostMac + i, std::vector<uint16_t>{i}));
  }
  void send(Time now, uint16_t from, uint8_t opcode, uint8_t first_byte = 0x10, uint16_t udp_checksum = 0) {
    RocePath path;
    path.source_mac = kHostMac + from;
    path.destination_mac = kHostMac + 2;
    path.dscp = 3;
    DataHeader header;
    header.opcode = opcode;
    const PacketId id = pool.allocate();
    Packet& packet = pool[id];
    packet.reset();
    const std::vector<uint8_t> payload(1'000, 1);
    const bool ack = plain_opcode(opcode) == kOpcodeRcAcknowledge;
    packet.length = RoceTemplate(path).build_data(pool.data(id), header, payload.data(), ack ? 0 : 1'000);
    REQUIRE(classify(pool.data(id), packet.length, packet.meta) == Refusal::none);
    if (has_telemetry(opcode)) pool.data(id)[packet.meta.bth_offset + telemetry_offset(opcode)] = first_byte;
    store_be16(pool.data(id) + packet.meta.bth_offset - kUdpHeader + kUdpChecksum, udp_checksum);
    wire.advance(now);
    wire.device.receive(now, from, id);
  }
  // Returns the telemetry of packets that leave by then; one without telemetry has no hops.
  std::vector<Telemetry> run(Time until) {
    std::vector<Telemetry> seen;
    for (Time at = wire.next_deadline(); at <= until; at = wire.next_deadline()) wire.advance(at), take(seen);
    wire.advance(until);
    take(seen);
    return seen;
  }
  SwitchPortCounters& counters() { return wire.device.counters(2); }

  std::vector<uint16_t> checksums;  // checksums of packets that have left

 private:
  static SwitchParameters with(bool tells, Rate rate) {
    SwitchParameters p = switch_parameters(3);
    p.telemetry = tells;
    p.ports[2].rate = rate;
    return p;
  }
  void take(std::vector<Telemetry>& seen) {
    do {
      for (PacketId id = wire.transmit(2); id != kNoPacket; id = wire.transmit(2)) {
        const PacketMeta& meta = pool[id].meta;
        Telemetry& telemetry = seen.emplace_back();
        checksums.push_back(load_be16(pool.data(id) + meta.bth_offset - kUdpHeader + kUdpChecksum));
        if (has_telemetry(meta.opcode))
          load_telemetry(pool.data(id) + meta.bth_offset + telemetry_offset(meta.opcode), telemetry);
        wire.device.left(2, id);
        pool.free(id);
      }
    } while (wire.device.set_unsent(2, 0));
  }

  SwitchParameters parameters_;
  PacketPool pool;
  WireSwitch wire;
};

constexpr uint8_t kWrite = kOpcodeRcWriteMiddle | kOpcodeTelemetry;
// 14 + 20 + 8 + 12 + 64 + 1000 + 4, and 24 around it on the link.
constexpr uint32_t kFrame = 1'122;
constexpr uint32_t kOnLink = kFrame + 24;

}  // namespace

TEST_CASE("switch telemetry: time, bytes before, what is left in the queue, and the link's rate, as each packet leaves") {
  Bed bed;
  for (int i = 0; i < 3; ++i) bed.send(1'000, static_cast<uint16_t>(i % 2), kWrite);
  const std::vector<Telemetry> seen = bed.run(kMillisecond);
  REQUIRE(seen.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) {
    REQUIRE(seen[i].hops == 1);
    const TelemetryHop& hop = seen[i].hop[0];
    CHECK(hop.time == 1'000 + i * kOnLink * 8);
    CHECK(hop.sent == i * kOnLink);
    // The first leaves before the others come; those behind the second: one.
    CHECK(hop.queue == (i == 1 ? kFrame / 64 * 64 : 0));
    CHECK(hop.rate == telemetry_rate_of(telemetry_rate(k1G)));
  }
  CHECK(bed.counters().int_written == 3);
}

TEST_CASE("switch telemetry: it counts all that the port sends, and writes into nothing that did not ask") {
  Bed bed;
  bed.send(1'000, 0, kOpcodeRcWriteMiddle);
  bed.send(1'000, 1, kOpcodeRcAcknowledge | kOpcodeTelemetry);
  bed.send(1'000, 0, kWrite);
  const std::vector<Telemetry> seen = bed.run(kMillisecond);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].hops == 0);
  CHECK(seen[1].hops == 0);
  REQUIRE(seen[2].hops == 1);
  CHECK(seen[2].hop[0].sent == kOnLink - 64 + 14 + 20 + 8 + 12 + 4 + 64 + 4 + 24);
  CHECK(bed.counters().int_written == 1);
}

TEST_CASE("switch telemetry: hops without room and headers of another form are counted, and go on as they are") {
  Bed bed;
  bed.send(1'000, 0, kWrite, 0x15);
  bed.send(1'000, 0, kWrite, 0x20);
  const std::vector<Telemetry> seen = bed.run(kMillisecond);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].hops == kMostHops);
  CHECK(seen[1].hops == 0);
  CHECK(bed.counters().int_overflowed == 1);
  CHECK(bed.counters().int_malformed == 1);
  CHECK(bed.counters().int_written == 0);
}

TEST_CASE("switch telemetry: what is cut from a super-frame has a hop each, where its own headers end") {
  // The first has a RETH, and with it is as long as the second is not.
  std::vector<Bytes> packets;
  for (const uint8_t opcode : {kOpcodeRcWriteFirst, kOpcodeRcWriteLast}) {
    const auto number = static_cast<uint32_t>(packets.size());
    RoceFrame frame = roce(opcode | kOpcodeTelemetry).on(path_to(kHostMac + 2, kHostMac)).dscp(3).psn(number);
    packets.push_back(frame.identification(number + 1).payload(1'000, 1).bytes());
  }
  const SuperFrame super = join_all(packets);
  PacketPool pool(16, kMaxSuperFrame);
  SwitchParameters parameters = switch_parameters(3);
  parameters.telemetry = true;
  WireSwitch wire(parameters, pool);
  REQUIRE(wire.device.forwarding().add_static(kHostMac + 2, std::vector<uint16_t>{2}));
  const PacketId whole = pool.allocate(static_cast<uint32_t>(super.bytes.size()));
  pool[whole].reset();
  pool[whole].length = static_cast<uint32_t>(super.bytes.size());
  pool[whole].offload = super.offload;
  REQUIRE(check_offload(super.bytes.data(), pool[whole].length, pool[whole].offload));
  std::copy(super.bytes.begin(), super.bytes.end(), pool.data(whole));
  classify(pool.data(whole), pool[whole].length, pool[whole].meta);
  wire.device.receive(0, 0, whole);
  wire.advance(kMillisecond);
  uint32_t seen = 0;
  for (PacketId id; (id = wire.transmit(2)) != kNoPacket; ++seen) {
    const uint8_t* const frame = pool.data(id);
    PacketMeta meta;
    REQUIRE(classify(frame, pool[id].length, meta) == Refusal::none);
    CHECK(plain_opcode(meta.opcode) == (seen == 0 ? kOpcodeRcWriteFirst : kOpcodeRcWriteLast));
    Telemetry telemetry;
    REQUIRE(load_telemetry(frame + meta.bth_offset + telemetry_offset(meta.opcode), telemetry));
    REQUIRE(telemetry.hops == 1);
    CHECK(telemetry.hop[0].sent == seen * (packets[0].size() + 24));
    CHECK(icrc_ok(frame, meta));
    wire.device.left(2, id);
    pool.free(id);
  }
  CHECK(seen == 2);
  CHECK(wire.device.counters(2).int_written == 2);
}

TEST_CASE("switch telemetry: a UDP checksum that somebody made on the way does not become a wrong one") {
  Bed bed;
  bed.send(1'000, 0, kWrite, 0x10, 0x1234);
  bed.send(1'000, 1, kOpcodeRcWriteMiddle, 0x10, 0x1234);
  bed.run(kMillisecond);
  CHECK(bed.checksums == std::vector<uint16_t>{0, 0x1234});
}

TEST_CASE("switch telemetry: a switch that was not told to, and a port without a rate, write nothing") {
  for (const bool tells : {false, true}) {
    Bed bed(tells, tells ? 0 : k1G);
    bed.send(1'000, 0, kWrite);
    const std::vector<Telemetry> seen = bed.run(kMillisecond);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].hops == 0);
    CHECK(bed.counters().int_written + bed.counters().int_malformed == 0);
  }
}

}  // namespace weir::test
