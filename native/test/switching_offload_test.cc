// A switch's work on super-frames and partial checksums: bytes and all.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/switch_device.h"
#include "test/rig/port.h"
#include "wire/checksum.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/segmentation.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kHost = 0x025745000000;  // + index; host i is at port i
constexpr uint32_t kHeaders = 14 + 20 + 20;
constexpr uint16_t kSegment = 1'000;

// A TCP/IPv4 frame from host 0 whose checksum is still to be finished; a super-frame if the payload is longer than a segment.
Bytes make(uint64_t destination, uint32_t payload, Offload& offload, uint8_t traffic_class = 0) {
  static constexpr uint8_t kAddresses[2][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
  Bytes f(kHeaders + payload);
  for (size_t i = kHeaders; i < f.size(); ++i) f[i] = static_cast<uint8_t>(i * 11);
  store_ethernet(f.data(), {.destination_mac = destination, .source_mac = kHost}, kEthertypeIpv4);
  store_ipv4(&f[14], kProtocolTcp, traffic_class, 64, kAddresses[0], kAddresses[1]);
  ip_set_length(&f[14], static_cast<uint16_t>(f.size() - 14));
  f[34 + 12] = 0x50;
  f[34 + 13] = 0x18;
  store_be16(&f[34 + 16], checksum_fold(checksum_add(static_cast<uint32_t>(20 + payload) + kProtocolTcp, &f[14 + 12], 8)));
  offload = {.checksum_start = 34, .checksum_offset = 16, .needs_checksum = true};
  if (payload > kSegment) {
    offload.gso = Gso::tcp4;
    offload.segment_size = kSegment;
  }
  return f;
}

bool whole(const uint8_t* frame, uint32_t length) {
  const uint32_t sum = checksum_add(length - 34 + kProtocolTcp, frame + 14 + 12, 8);
  return checksum_fold(checksum_add(sum, frame + 34, length - 34)) == 0xffff && internet_checksum(frame + 14, 20) == 0 &&
         load_be16(frame + 16) == length - 14;
}

// A frame as an interface hands it over.
PacketId put(PacketPool& pool, const Bytes& bytes, Offload offload) {
  const auto length = static_cast<uint32_t>(bytes.size());
  REQUIRE(check_offload(bytes.data(), length, offload));
  const PacketId id = pool.allocate(length);
  REQUIRE(id != kNoPacket);
  pool[id] = Packet{};
  pool[id].length = length;
  pool[id].offload = offload;
  std::memcpy(pool.data(id), bytes.data(), bytes.size());
  classify(pool.data(id), length, pool[id].meta);
  return id;
}

// Port 0 is where frames come in; what leaves the others is kept.
struct Rig {
  explicit Rig(const SwitchParameters::Port& egress, uint8_t ecn = 0, uint8_t pfc = 0, uint32_t packets = 256, size_t ports = 2)
      : pool(packets, kMaxSuperFrame), wire(parameters(egress, ecn, pfc, ports), pool) {}

  static SwitchParameters parameters(const SwitchParameters::Port& egress, uint8_t ecn, uint8_t pfc, size_t ports) {
    SwitchParameters p;
    p.ports.assign(ports, egress);
    p.ecn_priorities = ecn;
    p.pfc_priorities = pfc;
    p.red.kmin = 5'000;
    p.red.kmax = 10'000;  // above it every frame is marked
    p.learning = true;
    p.fdb_capacity = 64;
    return p;
  }
  void receive(const Bytes& bytes, Offload offload) { device.receive(device.now(), 0, put(pool, bytes, offload)); }
  // Lets everything leave; the frames of one port.
  std::vector<std::pair<Bytes, Offload>> sent(uint16_t port) {
    std::vector<std::pair<Bytes, Offload>> frames;
    do {
      const Agenda<WakeHeap>& agenda = wire.agenda;
      for (Time at = agenda.next_wake(); at != kNever; at = agenda.next_wake()) wire.advance(at);
      wire.advance(device.now() + kSecond);
      for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
        frames.emplace_back(Bytes(pool.data(id), pool.data(id) + pool[id].length), pool[id].offload);
        device.left(port, id);
        pool.free(id);
      }
    } while (device.set_unsent(port, 0));
    return frames;
  }
  void check_balance() {
    const SwitchPortCounters& in = device.counters(0);
    uint64_t out = 0;
    for (uint16_t port = 0; port < device.port_count(); ++port) out += device.counters(port).tx_packets;
    const uint64_t dropped = in.drop_mtu_exceeded + in.drop_no_descriptor + in.drop_offload_refused + in.drop_lossy_threshold;
    CHECK(in.rx_packets + in.flood_copies == out + dropped + device.held());
    CHECK(device.held() == 0);
    CHECK(device.buffer().occupied() == 0);
    CHECK(pool.available() == pool.size());
  }

  PacketPool pool;
  WireSwitch wire;
  SoftSwitch& device = wire.device;
};

}  // namespace

TEST_CASE("switch offloads: a super-frame crosses whole to an unshaped port with offloads, and counts as its frames") {
  struct Case {
    Rate rate;
    bool offloads;
    uint8_t ecn;
    uint8_t pfc;
    bool passes;
  };
  for (const Case& c : {Case{0, true, 0, 0, true}, Case{0, true, 0xfe, 0xfe, true}, Case{0, false, 0, 0, false},
                        Case{1'000'000'000, true, 0, 0, false}, Case{0, true, 1, 0, true}, Case{0, true, 0, 1, true}}) {
    CAPTURE(c.rate);
    CAPTURE(c.offloads);
    CAPTURE(c.ecn);
    CAPTURE(c.pfc);
    Rig rig({c.rate, 1'500, 0, c.offloads}, c.ecn, c.pfc);
    Offload offload;
    const Bytes frame = make(kHost + 1, 5'500, offload);
    rig.receive(frame, offload);
    const auto frames = rig.sent(1);
    const SwitchPortCounters& counters = rig.device.counters(0);
    CHECK(counters.rx_packets == 6);
    CHECK(counters.rx_bytes == frame.size() + 5 * kHeaders);
    CHECK(rig.device.counters(1).tx_packets == 6);
    CHECK(rig.device.counters(1).tx_bytes == frame.size() + 5 * kHeaders);
    if (c.passes) {
      REQUIRE(frames.size() == 1);
      CHECK(frames[0].first == frame);
      CHECK(frames[0].second.gso == Gso::tcp4);
      CHECK(frames[0].second.segment_size == kSegment);
      CHECK(counters.gso_passed == 1);
      CHECK(counters.gso_segmented == 0);
    } else {
      REQUIRE(frames.size() == 6);
      Bytes joined;
      for (const auto& [bytes, left] : frames) {
        CHECK_FALSE(left.pending());
        CHECK(whole(bytes.data(), static_cast<uint32_t>(bytes.size())));
        joined.insert(joined.end(), bytes.begin() + kHeaders, bytes.end());
      }
      CHECK(joined == Bytes(frame.begin() + kHeaders, frame.end()));
      CHECK(counters.gso_passed == 0);
      CHECK(counters.gso_segmented == 1);
      CHECK(counters.gso_segments == 6);
    }
    rig.check_balance();
  }
}

TEST_CASE("switch offloads: segments are marked and counted as the frames that they are") {
  Rig rig({1'000'000'000, 1'500, 0, true}, 1, 0, 512);
  Offload offload;
  rig.receive(make(kHost + 1, 60'000, offload, 2), offload);  // ECT(0)
  rig.receive(make(kHost + 1, 60'000, offload, 2), offload);
  const auto frames = rig.sent(1);
  CHECK(frames.size() == 120);
  CHECK(rig.device.counters(1).tx_packets == 120);
  CHECK(rig.device.counters(1).tx_bytes == 120 * (kHeaders + kSegment));
  CHECK(rig.device.counters(1, 0).wred_ecn_marked_packets > 100);
  rig.check_balance();
}

TEST_CASE("switch offloads: the MTU holds for the segments of a super-frame") {
  for (const bool offloads : {true, false}) {
    Offload offload;
    Rig fits({0, 1'040, 0, offloads});
    fits.receive(make(kHost + 1, 5'500, offload), offload);
    CHECK(fits.sent(1).size() == (offloads ? 1 : 6));
    Rig tight({0, 1'039, 0, offloads});
    tight.receive(make(kHost + 1, 5'500, offload), offload);
    CHECK(tight.sent(1).empty());
    CHECK(tight.device.counters(0).drop_mtu_exceeded == 6);
    tight.check_balance();
  }
}

TEST_CASE("switch offloads: a partial checksum is finished where the interface cannot, and only there") {
  for (const Rate rate : {Rate{0}, Rate{1'000'000'000}}) {
    for (const bool offloads : {true, false}) {
      Rig rig({rate, 1'500, 0, offloads}, 1, 1);
      Offload offload;
      const Bytes frame = make(kHost + 1, 700, offload);
      rig.receive(frame, offload);
      const auto frames = rig.sent(1);
      REQUIRE(frames.size() == 1);
      CHECK(frames[0].second.needs_checksum == offloads);
      CHECK((frames[0].first == frame) == offloads);
      CHECK(whole(frames[0].first.data(), static_cast<uint32_t>(frame.size())) != offloads);
      rig.check_balance();
    }
  }
}

TEST_CASE("switch offloads: a checksum that we cannot finish is a counted drop") {
  Rig rig({0, 1'500, 0, false});
  Bytes frame(100);
  store_ethernet(frame.data(), {.destination_mac = kHost + 1, .source_mac = kHost}, kEthertypeIpv4);
  rig.receive(frame, {.checksum_start = 34, .checksum_offset = 8, .needs_checksum = true});  // SCTP
  CHECK(rig.sent(1).empty());
  CHECK(rig.device.counters(0).drop_offload_refused == 1);
  rig.check_balance();
}

TEST_CASE("switch offloads: every copy of a flooded super-frame suits its own port") {
  SwitchParameters parameters = Rig::parameters({0, 1'500, 0, true}, 0, 0, 4);
  parameters.ports[2].offloads = false;
  Rig rig({0, 1'500, 0, true}, 0, 0, 256, 4);
  rig.device.reconfigure(parameters);
  Offload offload;
  const Bytes frame = make(0xffffffffffff, 2'500, offload);
  rig.receive(frame, offload);
  for (const uint16_t port : {uint16_t{1}, uint16_t{3}}) {
    const auto frames = rig.sent(port);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].first == frame);
  }
  CHECK(rig.sent(2).size() == 3);
  rig.check_balance();
}

TEST_CASE("switch offloads: segments longer than packets have room for are a counted drop, whatever the MTU") {
  PacketMemory memory({.count = 32, .stride = 1'536, .headroom = 0, .long_count = 2});
  PacketPool pool(memory);
  WireSwitch wire(Rig::parameters({0, 9'000, 0, false}, 0, 0, 2), pool);
  SoftSwitch& device = wire.device;
  for (const bool fits : {false, true}) {
    Offload offload;
    const Bytes frame = make(kHost + 1, 20'000, offload);
    offload.segment_size = fits ? 1'400 : 3'000;
    device.receive(0, 0, put(pool, frame, offload));
    CHECK(device.counters(0).drop_mtu_exceeded == 7);
    CHECK(device.counters(0).gso_segmented == (fits ? 1 : 0));
  }
  for (PacketId id = wire.transmit(1); id != kNoPacket; id = wire.transmit(1)) device.left(1, id);
  CHECK(device.held() == 0);
}

TEST_CASE("switch offloads: segments for which there is no descriptor are counted one by one") {
  Rig rig({0, 1'500, 0, false}, 0, 0, 5);
  Offload offload;
  rig.receive(make(kHost + 1, 10'000, offload), offload);
  CHECK(rig.sent(1).size() == 4);
  CHECK(rig.device.counters(0).gso_segments == 10);
  CHECK(rig.device.counters(0).drop_no_descriptor == 6);
  rig.check_balance();
}

TEST_CASE("switch offloads: a tag put back moves the checksum, and what does not fit the frame is refused at the edge") {
  PacketPool pool(64, kMaxSuperFrame);
  FrameRing punted(4);
  SwitchDeviceConfig config;
  config.parameters = Rig::parameters({0, 1'500, 0, true}, 0, 0, 2);
  config.ports.resize(2);
  std::vector<WirePort> ports;
  std::array<PortScript, 2> wires;
  for (PortScript& wire : wires) ports.emplace_back(std::make_unique<ScriptedPort>(wire), 0, 0, 64);
  SwitchDevice device(config, 0, std::move(ports), pool, punted);
  Offload offload;
  const Bytes frame = make(kHost + 1, 5'500, offload);
  Offload outside = offload;
  outside.checksum_start = 0xffff;
  wires[0].give_tagged(0, frame, 0x6005, offload);
  wires[0].give_tagged(0, frame, 0x6005, outside);
  wires[0].give_tagged(0, Bytes(frame.begin(), frame.end() - 1), 0x6005, offload);
  device.turn(0, 0);
  const SwitchPortCounters& counters = device.soft_switch().counters(0);
  CHECK(counters.rx_packets == 6 + 2);
  CHECK(counters.drop_offload_refused == 2);
  REQUIRE(wires[1].sent.size() == 1);
  const auto& [bytes, left] = wires[1].sent[0];
  CHECK(bytes.size() == frame.size() + 4);
  CHECK(load_be32(&bytes[12]) == 0x81006005);
  CHECK(left.gso == Gso::tcp4);
  CHECK(left.checksum_start == 38);
  CHECK(left.header_length == kHeaders + 4);
  CHECK(pool.available() == pool.size());
}
