// A NIC on its link looks for neighbours, and answers those that look for it and pings, all in its worker.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/nic_device.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"
#include "wire/checksum.h"
#include "wire/neighbour.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

IpAddress address(bool ipv6, uint8_t host) {
  IpAddress made{.version = static_cast<uint8_t>(ipv6 ? 6 : 4), .bytes = {10, 0, 0, host}};
  if (ipv6) made = {.version = 6, .bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}};
  return made;
}

struct Bed {
  explicit Bed(bool answers = true, uint16_t vlan = 0, uint32_t packets = 64,
               std::vector<NicNeighbourParameters::Followed> followed = {})
      : pool(packets, 2'048) {
    config.name = "h1";
    config.parameters = nic_parameters(1'000'000'000);
    config.arrears = kSecond;
    config.neighbours = {
        .addresses = {{address(false, 1), answers}, {address(true, 1), answers}}, .followed = std::move(followed), .vlan = vlan};
    device = std::make_unique<NicDevice>(config, uint16_t{0}, WirePort(std::make_unique<ScriptedPort>(link), 0, 0, 512), pool,
                                         punted, records, 0);
  }
  ~Bed() {
    device.reset();  // it tells those that wait
    CHECK(pool.available() == pool.size());
  }
  // Lives up to `now` in steps at the times that it asks for.
  void run(Time until) {
    for (Time at = device->next_deadline(); at <= until; at = device->next_deadline()) device->turn(now = at, at);
    device->turn(now = until, until);
  }
  // What it sends after it has got this frame.
  std::vector<Bytes> after(const Bytes& frame) {
    link.sent.clear();
    link.give(now, frame);
    run(now);
    return sent();
  }
  std::vector<Bytes> sent() {
    std::vector<Bytes> frames;
    for (const auto& one : link.sent) frames.push_back(one.bytes);
    link.sent.clear();
    return frames;
  }
  std::optional<NicNeighbours::Found>& resolve(const IpAddress& target) {
    found.push_back(std::make_unique<std::optional<NicNeighbours::Found>>());
    device->neighbours()->resolve(now, target.version == 6, target,
                                  [&out = *found.back()](NicNeighbours::Found mac) { out = mac; });
    run(now);
    return *found.back();
  }
  // What records tell of those that are followed: their places and MAC addresses.
  std::vector<std::pair<uint32_t, uint64_t>> told() {
    std::vector<std::pair<uint32_t, uint64_t>> all;
    for (Record record; records.pop(record);) {
      CHECK(record.kind == Record::Kind::neighbour);
      all.emplace_back(record.index, static_cast<uint64_t>(record.values[0]));
    }
    return all;
  }
  NicNeighbourCounters& counters() { return device->neighbours()->counters(); }

  PacketPool pool;
  FrameRing punted{64};
  SpscRing<Record> records{16};
  NicDeviceConfig config;
  PortScript link;
  std::unique_ptr<NicDevice> device;
  std::vector<std::unique_ptr<std::optional<NicNeighbours::Found>>> found;
  Time now = kSecond;
};

Bytes question(const IpAddress& who, uint64_t mac, const IpAddress& target) {
  Bytes frame(kNeighbourFrame);
  frame.resize(build_neighbour_question(frame.data(), {.source_mac = mac}, who, target));
  return frame;
}
Bytes answer(const IpAddress& who, uint64_t mac, const IpAddress& asker) {
  Bytes frame(kNeighbourFrame);
  frame.resize(build_neighbour_answer(frame.data(), {.destination_mac = kNicMac, .source_mac = mac}, who, asker));
  return frame;
}
Bytes ping(bool ipv6, const IpAddress& to, uint64_t mac = kNicMac) {
  const uint32_t header = ipv6 ? kIpv6Header : kIpv4Header;
  Bytes frame(kEthernetHeader + header + 64);
  store_ethernet(frame.data(), {.destination_mac = mac, .source_mac = kPeerMac}, ipv6 ? kEthertypeIpv6 : kEthertypeIpv4);
  uint8_t* const ip = frame.data() + kEthernetHeader;
  (ipv6 ? store_ipv6 : store_ipv4)(ip, ipv6 ? kProtocolIcmpv6 : kProtocolIcmp, 0x28, 64, address(ipv6, 2).bytes, to.bytes);
  ip_set_length(ip, static_cast<uint16_t>(header + 64));
  uint8_t* const icmp = ip + header;
  icmp[0] = ipv6 ? 128 : 8;
  icmp[40] = 7;
  store_be16(icmp + 2, ipv6 ? transport_checksum(ip, kProtocolIcmpv6, icmp, 64) : internet_checksum(icmp, 64));
  return frame;
}

struct Read {
  PacketMeta meta;
  NeighbourMessage message;
};
Read read(const Bytes& frame) {
  Read out;
  const auto length = static_cast<uint32_t>(frame.size());
  REQUIRE(classify(frame.data(), length, out.meta) == Refusal::none);
  REQUIRE(read_neighbour_message(frame.data(), length, out.meta, out.message));
  return out;
}

}  // namespace

TEST_CASE("NIC's neighbours: one that answers is found, remembered, and asked again where it is still wanted") {
  for (const bool ipv6 : {false, true}) {
    Bed bed;
    const IpAddress peer = address(ipv6, 2), own = address(ipv6, 1);
    const auto& first = bed.resolve(peer);
    const auto& second = bed.resolve(peer);
    std::vector<Bytes> sent = bed.sent();
    REQUIRE(sent.size() == 1);
    CHECK(read(sent[0]).message.target == peer);
    CHECK(read(sent[0]).message.sender == own);
    CHECK(is_group(read(sent[0]).meta.destination_mac));
    CHECK(!first);
    CHECK(bed.after(answer(peer, kPeerMac, own)).empty());
    CHECK(*first == kPeerMac);
    CHECK(*second == kPeerMac);
    CHECK(*bed.resolve(peer) == kPeerMac);
    CHECK(bed.sent().empty());
    CHECK(bed.punted.empty());
    // It was wanted since, so it is asked, alone first, and found elsewhere.
    bed.run(bed.now + NeighbourTable::kReachable + NeighbourTable::kAskAgain);
    sent = bed.sent();
    REQUIRE(sent.size() == 2);
    CHECK(read(sent[0]).meta.destination_mac == kPeerMac);
    CHECK(is_group(read(sent[1]).meta.destination_mac));
    CHECK(bed.after(answer(peer, kPeerMac + 9, own)).empty());
    CHECK(*bed.resolve(peer) == kPeerMac + 9);
    // That was the last time for now, and nobody asks: in the end it is forgotten.
    bed.after(answer(peer, kPeerMac + 9, own));
    bed.run(bed.now + NeighbourTable::kReachable);
    CHECK(bed.device->neighbours()->table().size() == 0);
    CHECK(bed.sent().empty());
    CHECK(bed.device->next_deadline() == kNever);
    CHECK(bed.device->soft_nic().counters().tx_slow_path == 3);
  }
}

TEST_CASE("NIC's neighbours: who does not answer is asked three times, a second apart; later anew") {
  for (const bool ipv6 : {false, true}) {
    Bed bed;
    const auto& found = bed.resolve(address(ipv6, 9));
    bed.run(bed.now + 3 * kSecond - 1);
    CHECK(bed.sent().size() == 3);
    CHECK(!found);
    bed.run(bed.now + 1);
    CHECK(*found == 0u);
    CHECK(bed.sent().empty());
    CHECK(bed.device->neighbours()->table().size() == 0);
    const auto& again = bed.resolve(address(ipv6, 9));
    CHECK(bed.sent().size() == 1);
    bed.device.reset();
    REQUIRE(again);
    CHECK(*again == std::nullopt);
  }
}

TEST_CASE("NIC's neighbours: it answers for its own addresses that the kernel does not have, and learns from who asks") {
  for (const bool ipv6 : {false, true}) {
    for (const bool answers : {false, true}) {
      Bed bed(answers);
      const IpAddress peer = address(ipv6, 2), own = address(ipv6, 1);
      const std::vector<Bytes> sent = bed.after(question(peer, kPeerMac, own));
      REQUIRE(sent.size() == (answers ? 1 : 0));
      if (answers) {
        CHECK(!read(sent[0]).message.asks);
        CHECK(read(sent[0]).message.mac == kNicMac);
        CHECK(read(sent[0]).message.sender == own);
        CHECK(read(sent[0]).meta.destination_mac == kPeerMac);
      }
      CHECK(*bed.resolve(peer) == kPeerMac);
      CHECK(bed.sent().empty());
      // Others' questions, and answers that nobody waits for, are not its business.
      CHECK(bed.after(question(address(ipv6, 3), kPeerMac + 1, address(ipv6, 4))).empty());
      CHECK(bed.after(answer(address(ipv6, 3), kPeerMac + 1, own)).empty());
      CHECK(bed.device->neighbours()->table().size() == 1);
    }
  }
}

TEST_CASE("NIC's neighbours: an answer has the NIC's VLAN, wherever the tag of the question is") {
  Bed bed(true, 7);
  const Bytes plain = question(address(false, 2), kPeerMac, address(false, 1));
  bed.link.give_tagged(bed.now, plain, 7);
  std::vector<Bytes> sent = bed.after([&] {
    Bytes tagged = plain;
    tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x60, 0x07});
    return tagged;
  }());
  REQUIRE(sent.size() == 2);
  for (const Bytes& frame : sent) {
    CHECK(read(frame).meta.tagged);
    CHECK(read(frame).meta.vlan_tci == 7);
    CHECK(read(frame).message.target == address(false, 2));
  }
}

TEST_CASE("NIC's neighbours: groups, the NIC's own MAC address and nameless hosts are not learned") {
  for (const bool ipv6 : {false, true}) {
    Bed bed;
    const IpAddress peer = address(ipv6, 2), own = address(ipv6, 1);
    const auto& found = bed.resolve(peer);
    for (const uint64_t mac : std::to_array<uint64_t>({0, 0xffffffffffff, 0x333300000001, kNicMac}))
      bed.after(answer(peer, mac, own));
    bed.after(question(IpAddress{.version = peer.version}, kPeerMac, own));
    CHECK(!found);
    CHECK(bed.device->neighbours()->table().size() == 1);
    // Another that has the NIC's address is answered, and not believed.
    bed.after(question(own, kPeerMac, own));
    CHECK(bed.device->neighbours()->table().size() == 1);
  }
}

TEST_CASE("NIC's neighbours: pings are answered, so many in a second, and never to groups") {
  for (const bool ipv6 : {false, true}) {
    Bed bed;
    const std::vector<Bytes> sent = bed.after(ping(ipv6, address(ipv6, 1)));
    REQUIRE(sent.size() == 1);
    PacketMeta meta;
    REQUIRE(classify(sent[0].data(), static_cast<uint32_t>(sent[0].size()), meta) == Refusal::none);
    CHECK(meta.destination_mac == kPeerMac);
    CHECK(meta.dscp == 10);
    const uint8_t* const icmp = sent[0].data() + meta.l3_offset + (ipv6 ? 40 : 20);
    CHECK(icmp[0] == (ipv6 ? 129 : 0));
    CHECK(icmp[40] == 7);
    Bytes broken = ping(ipv6, address(ipv6, 1));
    broken.back() ^= 1;
    CHECK(bed.after(broken).empty());
    CHECK(bed.after(ping(ipv6, address(ipv6, 1), 0xffffffffffff)).empty());
    CHECK(bed.after(ping(ipv6, address(ipv6, 3))).empty());
    for (int i = 0; i < 99; ++i) bed.link.give(bed.now, ping(ipv6, address(ipv6, 1)));
    bed.run(bed.now);
    CHECK(bed.counters().icmp_echo_replies == 50);
    CHECK(bed.counters().icmp_echo_limited == 50);
    bed.run(bed.now + 100 * kMillisecond);
    CHECK(bed.after(ping(ipv6, address(ipv6, 1))).size() == 1);
    CHECK(Bed(false).after(ping(ipv6, address(ipv6, 1))).empty());
  }
}

TEST_CASE("NIC's neighbours: floods cost entries and answers, never what is looked for") {
  Bed bed;
  const auto& found = bed.resolve(address(false, 2));
  for (uint32_t i = 0; i < NicNeighbours::kMost + 100; ++i) {
    IpAddress stranger{.version = 4, .bytes = {10, 1, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)}};
    bed.after(question(stranger, kPeerMac + 1 + i, address(false, 1)));
  }
  CHECK(bed.device->neighbours()->table().size() == NicNeighbours::kMost);
  bed.after(answer(address(false, 2), kPeerMac, address(false, 1)));
  CHECK(*found == kPeerMac);
  // A host that takes nothing.
  bed.link.room = 0;
  for (uint32_t i = 0; i < 300; ++i) bed.link.give(bed.now, question(address(false, 2), kPeerMac, address(false, 1)));
  bed.run(bed.now);
  CHECK(bed.counters().neighbor_unsent > 0);
  bed.link.room = kAnyNumber;
  bed.run(bed.now + kSecond);
}

TEST_CASE("NIC's neighbours: so many may be looked for at once, from addresses that there are") {
  Bed bed(true, 0, 2'048);
  const auto nothing = [](NicNeighbours::Found) {};
  const auto look_for = [&](uint32_t i) {
    const IpAddress target{.version = 4, .bytes = {10, 1, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)}};
    bed.device->neighbours()->resolve(bed.now, 0, target, nothing);
  };
  for (uint32_t i = 0; i < NeighbourTable::kMostIncomplete; ++i) look_for(i);
  CHECK_THROWS_AS(look_for(5'000), NativeError);
  CHECK_THROWS_AS(bed.device->neighbours()->resolve(bed.now, 2, address(false, 2), nothing), NativeError);
  CHECK_THROWS_AS(bed.device->neighbours()->resolve(bed.now, 0, address(true, 2), nothing), NativeError);
  bed.run(bed.now + 4 * kSecond);
  look_for(5'000);
  bed.run(bed.now);
}

TEST_CASE("NIC's neighbours: with other addresses it asks from one that is left, and answers for those that it has") {
  Bed bed;
  const IpAddress before = address(false, 1), after = address(false, 5), peer = address(false, 9);
  const auto& waits = bed.resolve(peer);
  const auto& lost = bed.resolve(address(true, 9));
  const auto& own = bed.resolve(after);
  CHECK(bed.sent().size() == 3);
  bed.config.neighbours->addresses = {{after, true}};
  bed.device->reconfigure(bed.config);
  // Nobody can ask by IPv6 any more, and one of those that were looked for is the NIC now.
  REQUIRE(lost);
  CHECK(*lost == 0u);
  REQUIRE(own);
  CHECK(*own == 0u);
  CHECK_THROWS_AS(bed.resolve(address(true, 9)), NativeError);
  CHECK(!waits);
  bed.run(bed.now + NeighbourTable::kAskAgain);
  const std::vector<Bytes> sent = bed.sent();
  REQUIRE(sent.size() == 1);
  CHECK(read(sent[0]).message.target == peer);
  CHECK(read(sent[0]).message.sender == after);
  CHECK(bed.after(question(peer, kPeerMac, before)).empty());
  CHECK(*waits == kPeerMac);
  CHECK(bed.after(question(peer, kPeerMac, after)).size() == 1);
  // Without any it answers nobody, and hears no question.
  bed.config.neighbours->addresses.clear();
  bed.device->reconfigure(bed.config);
  CHECK(bed.after(question(peer, kPeerMac, after)).empty());
  CHECK(bed.device->neighbours()->table().size() == 0);
}

TEST_CASE("NIC's neighbours: those that are followed are looked for without end, and all that becomes of them is told once") {
  using Told = std::vector<std::pair<uint32_t, uint64_t>>;
  for (const bool ipv6 : {false, true}) {
    const IpAddress peer = address(ipv6, 2), own = address(ipv6, 1);
    // Two behind one next hop, and the NIC itself.
    Bed bed(true, 0, 64, {{peer, ipv6}, {peer, ipv6}, {own, ipv6}});
    CHECK(bed.told() == Told{{2, kNicMac}});
    bed.run(60 * kSecond);
    CHECK(bed.told() == Told{{0, 0}, {1, 0}});
    // Three questions, a second apart, and a second of rest.
    CHECK(bed.sent().size() == 46);
    bed.after(answer(peer, kPeerMac, own));
    CHECK(bed.told() == Told{{0, kPeerMac}, {1, kPeerMac}});
    // It stays, and is asked rarely.
    for (int i = 0; i < 20; ++i) {
      bed.sent();
      bed.run(bed.now + NeighbourTable::kReachable);
      CHECK(bed.sent().size() == 1);
      bed.after(answer(peer, kPeerMac, own));
    }
    CHECK(bed.told().empty());
    bed.after(answer(peer, kPeerMac + 1, own));
    CHECK(bed.told() == Told{{0, kPeerMac + 1}, {1, kPeerMac + 1}});
    // It is gone, and comes back.
    bed.run(bed.now + 120 * kSecond);
    CHECK(bed.told() == Told{{0, 0}, {1, 0}});
    bed.after(question(peer, kPeerMac + 1, own));
    CHECK(bed.told() == Told{{0, kPeerMac + 1}, {1, kPeerMac + 1}});
    // Who wants to know it besides, hears of it as of any.
    CHECK(*bed.resolve(peer) == kPeerMac + 1);
  }
}
