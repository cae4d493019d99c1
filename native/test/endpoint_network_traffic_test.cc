#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "endpoint/network_traffic.h"
#include "endpoint/nic_parameters.h"
#include "test/refusal.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint64_t kMacInRow = 0x025745000001;
constexpr uint64_t kWayOutMac = 0x025752000005;

NetworkFlow between(uint32_t from, uint32_t to) {
  NetworkFlow one;
  one.from = from;
  one.to = to;
  one.start = 7;
  one.stop = 70;
  return one;
}

// Flows 0 to 2, 1 to 2, 2 to 0 and once more 0 to 2.
NetworkTraffic crossing_traffic() {
  NetworkTraffic all;
  all.flows = {between(0, 2), between(1, 2), between(2, 0), between(0, 2)};
  all.sizes = {5, 6, 7};
  return all;
}

std::vector<NetworkNic> three_nics() { return {{{10, 0, 0, 1}}, {{10, 0, 0, 2}}, {{10, 0, 0, 3}}}; }

std::vector<std::vector<QueuePairParameters>> pairs_by_nic(const NetworkTraffic& traffic,
                                                           const std::vector<NetworkNic>& among = three_nics()) {
  const FlowLayout layout(traffic, among.size());
  std::vector<std::vector<QueuePairParameters>> pairs;
  for (uint32_t nic = 0; nic < among.size(); ++nic) pairs.push_back(layout.queue_pairs(nic, among, kMacInRow));
  return pairs;
}

}  // namespace

TEST_CASE("network traffic: queue pairs of a NIC are in the order of the flows, and each end knows the other's number") {
  const NetworkTraffic all = crossing_traffic();
  const FlowLayout layout(all, 3);
  CHECK(layout.flows_of(0) == std::vector<uint32_t>{0, 2, 3});
  CHECK(layout.flows_of(1) == std::vector<uint32_t>{1});
  CHECK(layout.flows_of(2) == std::vector<uint32_t>{0, 1, 2, 3});
  const std::vector<std::vector<QueuePairParameters>> pairs = pairs_by_nic(all);
  for (uint32_t number = 0; number < all.flows.size(); ++number) {
    const FlowLayout::Place sender = layout.sender(number), receiver = layout.receiver(number);
    CHECK(sender.nic == all.flows[number].from);
    CHECK(receiver.nic == all.flows[number].to);
    CHECK(pairs[sender.nic][sender.index].remote_qpn == 0x11 + receiver.index);
    CHECK(pairs[receiver.nic][receiver.index].remote_qpn == 0x11 + sender.index);
  }
}

TEST_CASE("network traffic: packets go from a NIC's addresses to its peer's, or to its router") {
  std::vector<NetworkNic> routed = three_nics();
  routed[0].gateway_mac = kWayOutMac;
  NetworkTraffic all = crossing_traffic();
  all.flows[0].dscp = 11;
  all.flows[0].udp_source_port = 0xc123;
  const std::vector<std::vector<QueuePairParameters>> pairs = pairs_by_nic(all, routed);
  const RocePath& forth = pairs[0][0].path;
  CHECK(forth.source_mac == kMacInRow);
  CHECK(forth.destination_mac == kWayOutMac);
  CHECK(std::memcmp(forth.source_ip, routed[0].ip, 4) == 0);
  CHECK(std::memcmp(forth.destination_ip, routed[2].ip, 4) == 0);
  const RocePath& back = pairs[2][0].path;
  CHECK(back.source_mac == kMacInRow + 2);
  CHECK(back.destination_mac == kMacInRow);
  CHECK(std::memcmp(back.source_ip, routed[2].ip, 4) == 0);
  CHECK(std::memcmp(back.destination_ip, routed[0].ip, 4) == 0);
  for (const RocePath* path : {&forth, &back}) {
    CHECK(path->dscp == 11);
    CHECK(path->ecn == 2);
    CHECK(path->udp_source_port == 0xc123);
    CHECK(path->ip_version == 4);
    CHECK_FALSE(path->tagged);
  }
}

TEST_CASE("network traffic: an address, a rate and an application of its own are the sender's alone") {
  NetworkTraffic all = crossing_traffic();
  all.flows[1].source_mac = 0x025746000001;
  all.flows[1].rate_cap = 3'000;
  all.flows[1].application = 4;
  const std::vector<std::vector<QueuePairParameters>> pairs = pairs_by_nic(all);
  CHECK(pairs[1][0].path.source_mac == 0x025746000001);
  CHECK(pairs[1][0].rate_cap == 3'000);
  CHECK(pairs[1][0].application == 4);
  CHECK(pairs[2][1].path.source_mac == kMacInRow + 2);
  CHECK(pairs[2][1].rate_cap == 0);
  CHECK(pairs[2][1].application == 0);
}

TEST_CASE("network traffic: the sender starts and stops, and its peer knows when; the receiver of READs asks for them") {
  NetworkTraffic all = crossing_traffic();
  all.flows[0].stream.operation = Operation::read;
  all.flows[0].reliable = true;
  const std::vector<std::vector<QueuePairParameters>> pairs = pairs_by_nic(all);
  const QueuePairParameters &serves = pairs[0][0], &asks = pairs[2][0], &sends = pairs[1][0], &receives = pairs[2][1];
  CHECK(sends.start == 7);
  CHECK(sends.stop == 70);
  CHECK(receives.start == kNever);
  CHECK(receives.stop == kNever);
  CHECK(receives.peer_start == 7);
  CHECK(serves.serves());
  CHECK(serves.stop == 70);
  CHECK(asks.start == 7);
  CHECK(asks.stop == 70);
  CHECK(asks.peer_start == 7);
  for (const QueuePairParameters* one : {&serves, &asks, &sends, &receives}) CHECK_NOTHROW(check(*one));
}

TEST_CASE("network traffic: both ends have the messages, the service and its attributes") {
  NetworkTraffic all = crossing_traffic();
  NetworkFlow& listed = all.flows[2];
  listed.priority = 5;
  listed.stream.message_bytes = 300;
  listed.stream.total_bytes = 900;
  listed.sizes_first = 1;
  listed.sizes_count = 2;
  listed.reliable = listed.on_demand = true;
  listed.outstanding = 9;
  all.transport.timeout = 3;
  all.transport.time_scale = 8;
  const std::vector<std::vector<QueuePairParameters>> pairs = pairs_by_nic(all);
  for (const QueuePairParameters* end : {&pairs[2][2], &pairs[0][1]}) {
    CHECK(end->priority == 5);
    CHECK(end->stream.message_bytes == 300);
    CHECK(end->stream.total_bytes == 900);
    CHECK(std::ranges::equal(end->sizes, std::vector<uint32_t>{6, 7}));
    CHECK(end->reliable);
    CHECK(end->on_demand);
    CHECK(end->outstanding == 9);
    CHECK(end->transport.timeout == 3);
    CHECK(end->transport.time_scale == 8);
  }
  CHECK(pairs[0][0].sizes.empty());
  CHECK_FALSE(pairs[0][0].reliable);
}

TEST_CASE("network traffic: flows of NICs and sizes that are not there are refused") {
  const auto refused = [](auto change) {
    NetworkTraffic all = crossing_traffic();
    change(all.flows[1]);
    return refusal([&] { FlowLayout(all, 3); });
  };
  CHECK(refused([](NetworkFlow&) {}) == "");
  CHECK(refused([](NetworkFlow& f) { f.from = 3; }) == "INVALID_CONFIG");
  CHECK(refused([](NetworkFlow& f) { f.to = 3; }) == "INVALID_CONFIG");
  CHECK(refused([](NetworkFlow& f) { f.to = f.from; }) == "INVALID_CONFIG");
  CHECK(refused([](NetworkFlow& f) { f.sizes_first = 3; }) == "");
  CHECK(refused([](NetworkFlow& f) { f.sizes_first = 4; }) == "INVALID_CONFIG");
  CHECK(refused([](NetworkFlow& f) { f.sizes_first = 1, f.sizes_count = 3; }) == "INVALID_CONFIG");
  CHECK(refused([](NetworkFlow& f) { f.sizes_first = 2, f.sizes_count = UINT32_MAX; }) == "INVALID_CONFIG");
}
