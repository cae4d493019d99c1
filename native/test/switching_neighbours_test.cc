// Neighbours of next hops: asking, waiting, ageing, and what strangers can make of it.
#include "base/random.h"
#include "test/router_harness.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

namespace {

const IpAddress kHost = ip4(10, 0, 0, 9);

bool is_question(const Sent& sent, const IpAddress& target) {
  NeighbourMessage message;
  return read_neighbour_message(sent.bytes.data(), static_cast<uint32_t>(sent.bytes.size()), sent.meta, message) &&
         message.asks && message.target == target && message.mac == kRouterMac;
}

std::vector<uint8_t> answer(const IpAddress& who, uint64_t mac, const IpAddress& asker) {
  std::vector<uint8_t> frame(kNeighbourFrame);
  frame.resize(build_neighbour_answer(frame.data(), {.destination_mac = kRouterMac, .source_mac = mac}, who, asker));
  return frame;
}

std::vector<uint8_t> question(const IpAddress& who, uint64_t mac, const IpAddress& target) {
  std::vector<uint8_t> frame(kNeighbourFrame);
  frame.resize(build_neighbour_question(frame.data(), {.source_mac = mac}, who, target));
  return frame;
}

}  // namespace

TEST_CASE_TEMPLATE("neighbours: packets wait until the next hop has answered, and leave in their order", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  for (const bool ipv6 : {false, true}) {
    Bed bed(router_parameters());
    const IpAddress from = ipv6 ? ip6(0, 9) : kHost, to = ipv6 ? ip6(1, 5) : ip4(10, 0, 1, 5);
    std::vector<Sent> sent = bed.pass(0, roce_frame(from, to, 0xc001));
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].port == 1);
    CHECK(is_question(sent[0], to));
    CHECK(is_group(sent[0].meta.destination_mac));
    for (uint16_t i = 2; i <= 12; ++i) bed.receive(0, roce_frame(from, to, static_cast<uint16_t>(0xc000 + i)));
    CHECK(bed.sent().empty());
    CHECK(bed.count(&C::drop_neighbor_queue) == 12 - NeighbourTable::kMostWaitingForOne);
    bed.check_balance();
    sent = bed.pass(1, answer(to, kStation + 5, ipv6 ? ip6(1, 1) : ip4(10, 0, 1, 1)));
    REQUIRE(sent.size() == NeighbourTable::kMostWaitingForOne);
    for (uint16_t i = 0; i < sent.size(); ++i) {
      CHECK(sent[i].meta.udp_source_port == 0xc001 + i);
      CHECK(sent[i].meta.destination_mac == kStation + 5);
      CHECK(sent[i].ip()[ipv6 ? 7 : 8] == 63);
    }
    bed.check_balance();
  }
}

TEST_CASE_TEMPLATE("neighbours: who does not answer three times is unreachable, and sources are told", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  const IpAddress to = ip4(10, 0, 1, 77);
  bed.receive(0, roce_frame(kHost, to));
  bed.receive(0, roce_frame(kHost, to));
  const std::vector<Sent> sent = bed.after(5 * kSecond);
  REQUIRE(sent.size() == 5);
  for (int i = 0; i < 3; ++i) CHECK(is_question(sent[i], to));
  for (int i = 3; i < 5; ++i) {
    CHECK(sent[i].port == 0);
    CHECK(sent[i].ip()[20] == 3);
    CHECK(sent[i].ip()[21] == 1);
  }
  CHECK(bed.count(&C::drop_neighbor_unknown) == 2);
  CHECK(bed.neighbours().size() == 0);
  bed.check_balance();
  // And it is asked for anew.
  CHECK(bed.pass(0, roce_frame(kHost, to)).size() == 1);
}

TEST_CASE_TEMPLATE("neighbours: one that is sent to is asked before it is forgotten, and one that is not is forgotten", Bed,
                   RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  bed.introduce(1, ip4(10, 0, 1, 5), ip4(10, 0, 1, 1), kStation + 5);
  bed.introduce(1, ip4(10, 0, 1, 6), ip4(10, 0, 1, 1), kStation + 6);
  CHECK(bed.neighbours().size() == 2);
  CHECK(bed.pass(0, roce_frame(kHost, ip4(10, 0, 1, 5))).size() == 1);
  std::vector<Sent> sent = bed.after(NeighbourTable::kReachable + NeighbourTable::kAskAgain);
  // Itself, and then everybody.
  REQUIRE(sent.size() == 2);
  for (const Sent& one : sent) CHECK(is_question(one, ip4(10, 0, 1, 5)));
  CHECK(sent[0].meta.destination_mac == kStation + 5);
  CHECK(is_group(sent[1].meta.destination_mac));
  CHECK(bed.neighbours().size() == 1);
  // It is sent to while it is asked; its answer may name another MAC address.
  CHECK(bed.pass(0, roce_frame(kHost, ip4(10, 0, 1, 5))).size() == 1);
  bed.pass(1, answer(ip4(10, 0, 1, 5), kStation + 55, ip4(10, 0, 1, 1)));
  sent = bed.pass(0, roce_frame(kHost, ip4(10, 0, 1, 5)));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 55);
  // Silent from now on: gone after three questions.
  bed.after(NeighbourTable::kReachable + 5 * kSecond);
  CHECK(bed.neighbours().size() == 0);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: who takes the place of one that was sent to does not get its packets", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  const IpAddress gone = ip4(10, 0, 1, 5), other = ip4(10, 0, 1, 6);
  bed.introduce(1, gone, ip4(10, 0, 1, 1), kStation + 5);
  CHECK(bed.pass(0, roce_frame(kHost, gone)).size() == 1);
  bed.after(NeighbourTable::kReachable + 5 * kSecond);
  REQUIRE(bed.neighbours().size() == 0);
  bed.introduce(1, other, ip4(10, 0, 1, 1), kStation + 6);
  std::vector<Sent> sent = bed.pass(0, roce_frame(kHost, gone));
  REQUIRE(sent.size() == 1);
  CHECK(is_question(sent[0], gone));
  sent = bed.pass(0, roce_frame(kHost, other));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 6);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: static ones are neither asked for nor changed, and those of routes stay", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.router.neighbours.push_back({ip4(10, 0, 1, 5), 1, 1, kStation + 5});
  parameters.router.routes.push_back({{ip4(0, 0, 0, 0), 0}, {{2, ip4(10, 0, 2, 5), 1}}});
  Bed bed(parameters);
  std::vector<Sent> sent = bed.pass(0, roce_frame(kHost, ip4(10, 0, 1, 5)));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 5);
  bed.pass(1, answer(ip4(10, 0, 1, 5), kStation + 66, ip4(10, 0, 1, 1)));
  bed.after(100 * kSecond);
  sent = bed.pass(0, roce_frame(kHost, ip4(10, 0, 1, 5)));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 5);
  // The gateway is not there, then it is.
  sent = bed.pass(0, roce_frame(kHost, ip4(8, 8, 8, 8)));
  REQUIRE(sent.size() == 1);
  CHECK(is_question(sent[0], ip4(10, 0, 2, 5)));
  bed.after(10 * kSecond);
  CHECK(bed.count(&C::drop_neighbor_unknown) == 1);
  CHECK(bed.neighbours().size() == 2);
  CHECK(bed.pass(0, roce_frame(kHost, ip4(8, 8, 8, 8))).size() == 1);
  sent = bed.pass(2, answer(ip4(10, 0, 2, 5), kStation + 7, ip4(10, 0, 2, 1)));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 7);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: a flood of strangers who ask keeps within the table, and who is sent to keeps its place", Bed,
                   RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.router.interfaces[1].addresses[0].length = 8;
  parameters.router.neighbour_capacity = 64;
  Bed bed(parameters);
  bed.introduce(0, kHost, ip4(10, 0, 0, 1), kStation + 9);
  CHECK(bed.pass(1, roce_frame(ip4(10, 0, 1, 5), kHost)).size() == 1);
  for (uint32_t i = 0; i < 20'000; ++i) {
    bed.receive(
        1, question(ip4(10, 1, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)), kStation + 1'000 + i, ip4(10, 0, 1, 1)));
    if (i % 64 == 0) bed.sent();
    REQUIRE(bed.neighbours().size() <= 64);
  }
  bed.sent();
  CHECK(bed.neighbours().entries().size() <= 64);
  CHECK(bed.neighbours().counts().evicted > 10'000);
  const std::vector<Sent> sent = bed.pass(1, roce_frame(ip4(10, 0, 1, 5), kHost));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].meta.destination_mac == kStation + 9);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: packets to a million hosts that are not there take a bounded place, and let go of it", Bed,
                   RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.router.interfaces[1].addresses[0].length = 8;
  Bed bed(parameters, 8'192);
  const std::vector<uint8_t> frame = roce_frame(kHost, ip4(10, 9, 0, 0), 0xc001, 64, 0);
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    std::vector<uint8_t> one = frame;
    uint8_t* const ip = one.data() + kEthernetHeader;
    store_be32(ip + 16, 0x0a100000 + i);
    ip_set_length(ip, static_cast<uint16_t>(ip_total_length(ip)));
    bed.receive(0, one);
    if (i % 256 == 0) bed.after(10 * kMicrosecond);
  }
  const NeighbourTable& table = bed.neighbours();
  CHECK(table.size() <= NeighbourTable::kMostIncomplete);
  CHECK(table.waiting() <= NeighbourTable::kMostWaiting);
  CHECK(bed.count(&C::drop_neighbor_queue) > 990'000);
  bed.check_balance();
  bed.after(10 * kSecond);
  CHECK(table.size() == 0);
  CHECK(table.waiting() == 0);
  CHECK(bed.held() == 0);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: who is not on the link, is a group, or says it is the router is not learned", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  bed.pass(1, question(ip4(192, 168, 1, 1), kStation + 5, ip4(10, 0, 1, 1)));
  bed.pass(1, question(ip4(10, 0, 1, 5), 0x010000000005, ip4(10, 0, 1, 1)));
  bed.pass(1, question(ip4(10, 0, 1, 1), kStation + 5, ip4(10, 0, 1, 1)));
  bed.pass(1, question(ip4(10, 0, 1, 5), kStation + 5, ip4(10, 0, 1, 9)));
  bed.pass(1, answer(ip4(10, 0, 1, 6), kStation + 6, ip4(10, 0, 1, 1)));
  CHECK(bed.neighbours().size() == 0);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("neighbours: messages that are cut off or damaged, at any place, do no harm", Bed, RouterOf<1>, RouterOf<2>,
                   RouterOf<3>) {
  Bed bed(router_parameters());
  Random random(5);
  for (const bool ipv6 : {false, true}) {
    const std::vector<uint8_t> whole =
        ipv6 ? question(ip6(1, 5), kStation + 5, ip6(1, 1)) : question(ip4(10, 0, 1, 5), kStation + 5, ip4(10, 0, 1, 1));
    for (size_t length = kEthernetHeader; length <= whole.size(); ++length) {
      bed.pass(1, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    }
    for (int i = 0; i < 5'000; ++i) {
      std::vector<uint8_t> damaged = whole;
      for (int flips = 0; flips < 3; ++flips)
        damaged[kEthernetHeader + random.next() % (whole.size() - kEthernetHeader)] ^= 1 << random.next() % 8;
      bed.receive(1, damaged);
      bed.sent();
    }
  }
  bed.check_balance();
}
