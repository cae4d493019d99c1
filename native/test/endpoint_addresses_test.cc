// Addresses from and to which the packets of a queue pair must be: all others are refused, and counted by the reason.
#include <doctest/doctest.h>

#include <vector>

#include "test/verbs_harness.h"

namespace weir::test {
namespace {

enum class What { data, cnp };

// Makes a packet to queue pair `qpn` of the NIC under test, from 10.0.0.`from` to 10.0.0.`to`; with right checksums.
std::vector<uint8_t> packet(What what, uint8_t opcode, uint32_t qpn, uint8_t from, uint8_t to, uint8_t ip_version = 4) {
  RocePath path = path_to(kNicMac, kPeerMac);
  path.ip_version = ip_version;
  path.source_ip[3] = from;
  path.destination_ip[3] = to;
  if (what == What::cnp) return roce_cnp(qpn, path);
  return roce(opcode).on(path).to(qpn).deth({kQueueKey, 5}).payload(8).bytes();
}

constexpr uint8_t kOurs = static_cast<uint8_t>(kNicMac);
constexpr uint8_t kTheirs = static_cast<uint8_t>(kPeerMac);

TEST_CASE("addresses: a stream takes packets and CNPs from its peer only, and at its own address only") {
  for (const What what : {What::data, What::cnp}) {
    NicHarness h(nic_parameters(), {sender()});
    h.run(10 * kMicrosecond);
    const auto stream = [&](uint8_t from, uint8_t to, uint8_t version = 4) {
      give(h.nic, h.nic.now(), packet(what, kOpcodeRcSendOnly, kFirstQpn, from, to, version));
    };
    stream(77, kOurs);
    stream(kOurs, kTheirs);
    stream(kTheirs, kOurs, 6);
    CHECK(h.nic.transport_counters().drop_wrong_peer == 3);
    stream(kTheirs, 99);
    CHECK(h.nic.transport_counters().drop_wrong_destination == 1);
    const QueuePair& qp = h.nic.queue_pairs()[0];
    CHECK(h.nic.counters().rp_cnp_handled == 0);
    CHECK(h.nic.allowed_rate(qp) == h.nic.line_rate());
    CHECK(qp.counters.rx_packets == 0);
    stream(kTheirs, kOurs);
    CHECK(h.nic.counters().rp_cnp_handled == (what == What::cnp ? 1 : 0));
    CHECK(qp.counters.rx_packets == (what == What::cnp ? 0 : 1));
    CHECK(h.nic.transport_counters().drop_wrong_peer == 3);
    CHECK(h.nic.transport_counters().drop_wrong_destination == 1);
  }
}

TEST_CASE("addresses: a reliable connection looks at both, too") {
  for (const What what : {What::data, What::cnp}) {
    Two two;
    two.connect();
    WireNic& nic = two.left().nic;
    give(nic, nic.now(), packet(what, kOpcodeRcSendOnly, two.qpn(0), 77, kOurs));
    give(nic, nic.now(), packet(what, kOpcodeRcSendOnly, two.qpn(0), kTheirs, 99));
    CHECK(nic.transport_counters().drop_wrong_peer == 1);
    CHECK(nic.transport_counters().drop_wrong_destination == 1);
    CHECK(nic.counters().rp_cnp_handled == 0);
    CHECK(nic.transport_counters().out_of_buffer == 0);
    give(nic, nic.now(), packet(what, kOpcodeRcSendOnly, two.qpn(0), kTheirs, kOurs));
    CHECK(nic.counters().rp_cnp_handled + nic.transport_counters().out_of_buffer == 1);
  }
}

TEST_CASE("addresses: datagrams may come from anywhere, but to the NIC's own addresses only") {
  for (const What what : {What::data, What::cnp}) {
    Two two;
    WireNic& nic = two.left().nic;
    const uint32_t qpn = two.datagrams(two.left());
    give(nic, nic.now(), packet(what, kOpcodeUdSendOnly, qpn, 77, 99));
    give(nic, nic.now(), packet(what, kOpcodeUdSendOnly, qpn, 77, kOurs, 6));
    CHECK(nic.transport_counters().drop_wrong_destination == 2);
    CHECK(nic.transport_counters().drop_datagram == 0);
    CHECK(nic.counters().rp_cnp_handled == 0);
    give(nic, nic.now(), packet(what, kOpcodeUdSendOnly, qpn, 77, kOurs));
    CHECK(nic.transport_counters().drop_datagram + nic.counters().rp_cnp_handled == 1);
    CHECK(nic.transport_counters().drop_wrong_peer == 0);
  }
}

TEST_CASE("addresses: with others, datagrams to one that went are not taken, and a connection keeps the one that it has") {
  Two two;
  two.connect();
  WireNic& nic = two.left().nic;
  const uint32_t qpn = two.datagrams(two.left());
  nic.reconfigure(Two::parameters(kNicMac, [](NicParameters& p) { p.addresses = {{4, {10, 0, 0, 99}}}; }), {});
  give(nic, nic.now(), packet(What::data, kOpcodeUdSendOnly, qpn, 77, kOurs));
  CHECK(nic.transport_counters().drop_wrong_destination == 1);
  CHECK(nic.transport_counters().drop_datagram == 0);
  give(nic, nic.now(), packet(What::data, kOpcodeUdSendOnly, qpn, 77, 99));
  CHECK(nic.transport_counters().drop_datagram == 1);
  give(nic, nic.now(), packet(What::data, kOpcodeRcSendOnly, two.qpn(0), kTheirs, kOurs));
  CHECK(nic.transport_counters().out_of_buffer == 1);
  CHECK(nic.transport_counters().drop_wrong_destination == 1);
}

}  // namespace
}  // namespace weir::test
