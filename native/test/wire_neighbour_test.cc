// ARP, neighbour solicitation and advertisement: byte for byte, and what is refused.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "wire/checksum.h"
#include "wire/classify.h"
#include "wire/ip.h"
#include "wire/neighbour.h"

using namespace weir;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kOurs = 0x020000000001;
constexpr uint64_t kTheirs = 0x020000000002;
constexpr uint32_t kIcmp = kEthernetHeader + kIpv6Header;
const IpAddress kOurs4{.version = 4, .bytes = {10, 9, 0, 1}}, kTheirs4{.version = 4, .bytes = {10, 9, 0, 2}};
// fd99::1 and fd99::ab12:3456
const IpAddress kOurs6{.version = 6, .bytes = {0xfd, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
const IpAddress kTheirs6{.version = 6, .bytes = {0xfd, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0x12, 0x34, 0x56}};
const IpAddress kNobody{.version = 6};

Bytes question(const IpAddress& own, const IpAddress& target, uint64_t to = 0) {
  Bytes frame(kNeighbourFrame);
  frame.resize(build_neighbour_question(frame.data(), {.destination_mac = to, .source_mac = kOurs}, own, target));
  return frame;
}
Bytes answer(const IpAddress& own, const IpAddress& asker, uint64_t to = kOurs) {
  Bytes frame(kNeighbourFrame);
  frame.resize(build_neighbour_answer(frame.data(), {.destination_mac = to, .source_mac = kTheirs}, own, asker));
  return frame;
}
bool reads(const Bytes& frame, NeighbourMessage& message) {
  PacketMeta meta;
  const auto length = static_cast<uint32_t>(frame.size());
  const Refusal refusal = classify(frame.data(), length, meta);
  return read_neighbour_message(frame.data(), length, meta, message) && refusal == Refusal::none;
}
bool reads(const Bytes& frame) {
  NeighbourMessage message;
  return reads(frame, message);
}
void finish(Bytes& frame) {
  store_be16(&frame[kIcmp + 2], 0);
  const auto length = static_cast<uint32_t>(frame.size()) - kIcmp;
  store_be16(&frame[kIcmp + 2], transport_checksum(&frame[kEthernetHeader], kProtocolIcmpv6, &frame[kIcmp], length));
}
// A question of a host that looks whether an address is taken.
Bytes probe() {
  Bytes frame = question(kNobody, kTheirs6);
  frame.resize(kIcmp + 24);
  store_be16(&frame[kEthernetHeader + 4], 24);
  finish(frame);
  return frame;
}

}  // namespace

TEST_CASE("neighbour messages: an ARP request is byte for byte that of RFC 826") {
  Bytes expected{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,  0, 0, 0, 1, 8, 6, 0, 1, 8, 0,  6, 4, 0,
                 1,    2,    0,    0,    0,    0,    1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2};
  expected.resize(60);
  CHECK(question(kOurs4, kTheirs4) == expected);
}

// As Linux sends it: 64 bytes of IPv6 and ICMPv6; the checksum was computed apart.
TEST_CASE("neighbour messages: a solicitation is byte for byte that of RFC 4861") {
  const Bytes expected{0x33, 0x33, 0xff, 0x12, 0x34, 0x56, 2, 0, 0,    0,    0, 1, 0x86, 0xdd, 0x60, 0,    0,    0,
                       0,    32,   58,   255,  0xfd, 0x99, 0, 0, 0,    0,    0, 0, 0,    0,    0,    0,    0,    0,
                       0,    1,    0xff, 2,    0,    0,    0, 0, 0,    0,    0, 0, 0,    1,    0xff, 0x12, 0x34, 0x56,
                       0x87, 0,    0x68, 0x98, 0,    0,    0, 0, 0xfd, 0x99, 0, 0, 0,    0,    0,    0,    0,    0,
                       0,    0,    0xab, 0x12, 0x34, 0x56, 1, 1, 2,    0,    0, 0, 0,    1};
  CHECK(question(kOurs6, kTheirs6) == expected);
}

TEST_CASE("neighbour messages: one who has had the address is asked alone") {
  const Bytes frame = question(kOurs6, kTheirs6, kTheirs);
  CHECK(load_be48(frame.data()) == kTheirs);
  CHECK(std::equal(kTheirs6.bytes, kTheirs6.bytes + 16, &frame[kEthernetHeader + 24]));
  CHECK(reads(frame));
}

TEST_CASE("neighbour messages: an advertisement is solicited, overrides, and is believed") {
  const Bytes frame = answer(kTheirs6, kOurs6);
  CHECK(frame[kIcmp + 4] == 0x60);
  NeighbourMessage message;
  REQUIRE(reads(frame, message));
  CHECK(!message.asks);
  CHECK(message.replaces);
  CHECK(message.mac == kTheirs);
  CHECK(message.sender == kTheirs6);
}

TEST_CASE("neighbour messages: who looks whether an address is taken is told with all others") {
  NeighbourMessage message;
  REQUIRE(reads(probe(), message));
  CHECK(message.mac == 0);
  CHECK(mac_of_asker(message, kOurs) == 0x333300000001);
  const Bytes told = answer(kTheirs6, message.sender, mac_of_asker(message, kOurs));
  CHECK(told[kEthernetHeader + 24] == 0xff);
  CHECK(told[kEthernetHeader + 39] == 1);
  CHECK(told[kIcmp + 4] == 0x20);
  CHECK(reads(told));
}

TEST_CASE("neighbour messages: the answer goes to the MAC address that is told, else to that of the frame, never to a group") {
  NeighbourMessage message{.asks = true, .mac = kTheirs, .sender = kTheirs6, .target = kOurs6};
  CHECK(mac_of_asker(message, kOurs) == kTheirs);
  message.mac = 0;
  CHECK(mac_of_asker(message, kOurs) == kOurs);
  message.mac = 0xffffffffffff;
  CHECK(mac_of_asker(message, kOurs) == 0);
}

TEST_CASE("neighbour messages: what fails a check of RFC 4861, 7.1, is none") {
  using Change = std::function<void(Bytes&)>;
  const std::vector<Change> breaks{
      [](Bytes& f) { f[kEthernetHeader + 7] = 254; },                          // hop limit
      [](Bytes& f) { f[kIcmp + 1] = 1; },                                      // code
      [](Bytes& f) { f[kIcmp + 25] = 0; },                                     // an option of no length
      [](Bytes& f) { f[kIcmp + 25] = 2; },                                     // an option that is cut off
      [](Bytes& f) { f[kIcmp + 8] = 0xff; },                                   // the target is a group
      [](Bytes& f) { std::fill_n(&f[kEthernetHeader + 8], 16, uint8_t{0}); },  // nobody tells its address
      [](Bytes& f) { f[kEthernetHeader + 6] = 17; },                           // next header
  };
  for (const Change& change : breaks) {
    Bytes frame = question(kOurs6, kTheirs6);
    change(frame);
    finish(frame);
    CHECK(!reads(frame));
  }
  Bytes frame = question(kOurs6, kTheirs6);
  frame[kIcmp + 3] ^= 1;  // the checksum
  CHECK(!reads(frame));
  frame = answer(kTheirs6, kOurs6);  // solicited, and to a group
  frame[kEthernetHeader + 24] = 0xff;
  finish(frame);
  CHECK(!reads(frame));
  frame = probe();  // to another group than that of the target
  frame[kEthernetHeader + 39] ^= 1;
  finish(frame);
  CHECK(!reads(frame));
  for (const Bytes& whole : {question(kOurs6, kTheirs6), question(kOurs4, kTheirs4), answer(kTheirs6, kOurs6)}) {
    for (size_t length = 0; length < (whole[12] == 8 ? 42 : whole.size()); ++length) {
      CHECK(!reads({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}));
    }
  }
}

TEST_CASE("neighbour messages: damaged frames are read or refused, and nothing beyond them is") {
  Random random(1);
  for (const Bytes& whole : {question(kOurs6, kTheirs6), question(kOurs4, kTheirs4), answer(kTheirs6, kOurs6), probe()}) {
    for (int i = 0; i < 2'000; ++i) {
      Bytes frame = whole;
      for (int changes = 0; changes < 3; ++changes) {
        frame[random.next() % frame.size()] = static_cast<uint8_t>(random.next());
      }
      if (frame.size() > kIcmp + 4 && i % 2 == 0) finish(frame);
      frame.resize(random.next() % (frame.size() + 1));
      frame.shrink_to_fit();
      (void)reads(frame);
    }
  }
}
