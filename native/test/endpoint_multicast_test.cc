// Multicast groups: who gets what is sent to one, and what becomes of the rest.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "endpoint/multicast_groups.h"
#include "test/refusal.h"
#include "test/verbs_harness.h"
#include "transport/datagram.h"

namespace weir::test {
namespace {

constexpr IpAddress kGroup{4, {239, 1, 2, 3}};
constexpr IpAddress kGroup6{6, {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42, 0x42}};

RocePath path_to_group(const IpAddress& group) {
  RocePath path = path_to(group.version == 4 ? 0x01005e010203 : 0x333300004242, kPeerMac);
  path.ip_version = group.version;
  std::memcpy(path.destination_ip, group.bytes, ip_address_length(group.version));
  return path;
}

// Makes a frame with right checksums.
std::vector<uint8_t> to_group(const IpAddress& group, uint32_t qpn = kMulticastQpn, uint8_t opcode = kOpcodeUdSendOnly,
                              uint8_t ecn = 2, uint32_t queue_key = kQueueKey) {
  return roce(opcode).on(path_to_group(group)).ecn(ecn).to(qpn).deth({queue_key, 5}).payload(8, 7).bytes();
}

TEST_CASE("multicast: each queue pair that has joined gets a copy, of the group that it has joined, until it leaves") {
  Two two;
  WireNic& nic = two.left().nic;
  std::vector<uint8_t> in(4 * 64);
  const uint32_t key = two.left().register_memory(in);
  const uint32_t members[2] = {two.datagrams(two.left()), two.datagrams(two.left())};
  const uint32_t other = two.datagrams(two.left());
  for (const uint32_t qpn : {members[0], members[1], other}) {
    for (int i = 0; i < 2; ++i) nic.applications().post_receive(qpn, {qpn, reinterpret_cast<uintptr_t>(in.data()), 64, key});
  }
  give(nic, nic.now(), to_group(kGroup));
  CHECK(nic.counters().drop_unknown_group == 1);
  nic.applications().attach_group(members[0], kGroup);
  nic.applications().attach_group(members[0], kGroup);  // it has
  nic.applications().attach_group(members[1], kGroup);
  nic.applications().attach_group(other, kGroup6);
  give(nic, nic.now(), to_group(kGroup));
  REQUIRE(two.left().completions.all.size() == 2);
  for (int i = 0; i < 2; ++i) {
    const Completion& c = two.left().completions.all[static_cast<size_t>(i)];
    CHECK(c.qpn == members[i]);
    CHECK(c.source_qpn == 5);
    CHECK(c.bytes == kGrhBytes + 8);
  }
  CHECK(in[kGrhBytes] == 7);
  give(nic, nic.now(), to_group(kGroup6));
  REQUIRE(two.left().completions.all.size() == 3);
  CHECK(two.left().completions.all[2].qpn == other);

  CHECK(nic.applications().detach_group(members[0], kGroup));
  CHECK(!nic.applications().detach_group(members[0], kGroup));
  CHECK(nic.applications().destroy(other));
  give(nic, nic.now(), to_group(kGroup));
  give(nic, nic.now(), to_group(kGroup6));
  REQUIRE(two.left().completions.all.size() == 4);
  CHECK(two.left().completions.all[3].qpn == members[1]);
  CHECK(nic.counters().drop_unknown_group == 2);
}

TEST_CASE("multicast: what a member may not have is dropped for it alone, and marks of a group are not answered") {
  Two two;
  WireNic& nic = two.left().nic;
  const uint32_t qpn = two.datagrams(two.left());
  nic.applications().attach_group(qpn, kGroup);
  give(nic, nic.now(), to_group(kGroup, kMulticastQpn, kOpcodeUdSendOnly, 2, kQueueKey + 1));
  CHECK(nic.transport_counters().drop_queue_key == 1);
  give(nic, nic.now(), to_group(kGroup, kMulticastQpn, kOpcodeRcSendOnly));
  CHECK(nic.counters().drop_unsupported_opcode == 1);
  // It is for one queue pair, by the address of a group.
  give(nic, nic.now(), to_group(kGroup, qpn));
  CHECK(nic.transport_counters().drop_wrong_destination == 1);
  CHECK(nic.transport_counters().drop_datagram == 0);
  give(nic, nic.now(), to_group(kGroup, kMulticastQpn, kOpcodeUdSendOnly, 3));
  CHECK(nic.counters().np_ecn_marked_roce_packets == 1);
  CHECK(nic.counters().np_cnp_unsent == 1);
  two.run();
  CHECK(nic.counters().np_cnp_sent == 0);
}

TEST_CASE("multicast: only queue pairs of datagrams join, and no more than there is room for") {
  Two two;
  WireNic& nic = two.left().nic;
  const uint32_t connection = nic.applications().create({.send_depth = 1, .receive_depth = 1});
  CHECK(refusal([&] { nic.applications().attach_group(connection, kGroup); }) == "INVALID_QPN");
  CHECK(refusal([&] { nic.applications().attach_group(77, kGroup); }) == "INVALID_QPN");

  MulticastGroups groups;
  for (uint32_t qpn = 0; qpn < MulticastGroups::kMostMembers; ++qpn) CHECK(groups.attach(kGroup, qpn));
  CHECK(!groups.attach(kGroup, 1'000));
  CHECK(groups.attach(kGroup, 3));  // a member
  IpAddress group = kGroup;
  for (uint32_t i = 1; i < MulticastGroups::kMost; ++i) {
    group.bytes[1] = static_cast<uint8_t>(2 + i / 256);
    group.bytes[2] = static_cast<uint8_t>(i);
    CHECK(groups.attach(group, 1));
  }
  CHECK(!groups.attach(kGroup6, 1));
  groups.forget(1);
  CHECK(groups.attach(kGroup6, 1));
  CHECK(groups.members(4, kGroup.bytes)->size() == MulticastGroups::kMostMembers - 1);
}

TEST_CASE("multicast: no queue pair has the number that stands for all members of a group") {
  constexpr uint32_t kPairs = 4'096;
  Two two([](NicParameters& p) { p.verbs_queue_pairs = kPairs; });
  WireNic& nic = two.left().nic;
  const VerbsQueuePairParameters small{.datagram = true, .send_depth = 1, .receive_depth = 1};
  for (uint32_t i = 1; i < kPairs; ++i) REQUIRE(nic.applications().create(small) != 0);
  // All that the last place ever has.
  for (uint32_t i = 0; i < (1u << 24) / kPairs + 5; ++i) {
    const uint32_t qpn = nic.applications().create(small);
    REQUIRE(qpn != 0);
    REQUIRE(qpn != kMulticastQpn);
    REQUIRE(nic.applications().destroy(qpn));
  }
}

}  // namespace
}  // namespace weir::test
