// Queue pairs of applications on two NICs that are joined by a link, in virtual time: what the NIC adds to the transport.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/native_error.h"
#include "test/qcn_harness.h"
#include "test/verbs_harness.h"
#include "transport/datagram.h"
#include "wire/icrc.h"
#include "wire/ip.h"

namespace weir::test {
namespace {

TEST_CASE("soft nic verbs: a WRITE at line rate, acknowledged, and counted by queue pair") {
  Two two;
  two.connect();
  Transfer t(two, 100'000, WorkOpcode::write);
  two.run();
  REQUIRE(two.left().completions.all.size() == 1);
  CHECK(two.left().completions.all[0].status == WorkStatus::success);
  CHECK(t.local == t.remote);
  const QpCounters& sent = two.pair_of(two.left(), two.qpn(0)).counters;
  CHECK(sent.tx_packets == 98);
  CHECK(sent.tx_bytes == 100'000);
  CHECK(two.pair_of(two.right(), two.qpn(1)).counters.rx_bytes == 100'000);
  // 98 packets at 10 Gb/s, there and back once: no waiting beyond the link's own time.
  CHECK(two.delivered() < sent.tx_wire_bytes * 8 / 10 + 5 * kMicrosecond);
  CHECK(two.left().pool.available() == two.left().pool.size());
  CHECK(two.right().pool.available() == two.right().pool.size());
}

TEST_CASE("soft nic verbs: of packets that come together each is checked, goes to its own queue pair and counts by itself") {
  Two two;
  two.connect();
  std::vector<std::vector<uint8_t>> frames;
  two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
    if (to_right && frames.size() < 10) frames.push_back(bytes);
    return false;
  };
  Transfer t(two, 100'000, WorkOpcode::write);
  two.run(kMillisecond);
  REQUIRE(frames.size() == 10);
  frames.back()[200] ^= 1;
  PacketMeta meta;
  std::vector<uint8_t> stranger = frames[3];
  const auto length = static_cast<uint32_t>(stranger.size());
  REQUIRE(classify(stranger.data(), length, meta) == Refusal::none);
  store_be32(&stranger[meta.bth_offset + 4u], 0x123456);
  write_icrc(stranger.data(), meta.l3_offset, length - kIcrc);
  frames.insert(frames.begin() + 5, stranger);
  NicEnd& right = two.right();
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto bytes = static_cast<uint32_t>(frames[i].size());
    const bool follows = i > 0;
    const Refusal refusal =
        follows ? classify_next_slice(frames[i].data(), bytes, meta) : classify(frames[i].data(), bytes, meta);
    right.nic.receive(two.now(), frames[i].data(), bytes, meta, refusal, {.follows = follows, .more = i + 1 < frames.size()});
  }
  CHECK(right.nic.counters().rx_packets == 11);
  CHECK(right.nic.counters().rx_icrc_encapsulated == 1);
  CHECK(right.nic.counters().drop_unknown_qp == 1);
  const QpCounters& received = two.pair_of(right, two.qpn(1)).counters;
  CHECK(received.rx_packets == 9);
  CHECK(received.rx_bytes == 9 * 1'024);
  CHECK(std::equal(t.local.begin(), t.local.begin() + 9 * 1'024, t.remote.begin()));
}

TEST_CASE("soft nic verbs: who sends the data is paced, by CNPs to its queue pair, be it a WRITE or a READ") {
  for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
    Two two;
    two.connect();
    const bool write = opcode == WorkOpcode::write;
    int packets = 0;
    two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
      if (to_right == write && bytes.size() > 1'000 && ++packets % 20 == 0) mark(bytes);
      return true;
    };
    Transfer t(two, 4'000'000, opcode);
    two.run();
    REQUIRE(two.left().completions.all.size() == 1);
    CHECK(two.left().completions.all[0].status == WorkStatus::success);
    CHECK(t.local == t.remote);
    NicEnd& sender = write ? two.left() : two.right();
    NicEnd& receiver = write ? two.right() : two.left();
    CHECK(receiver.nic.counters().np_cnp_sent > 10);
    CHECK(sender.nic.counters().rp_cnp_handled == receiver.nic.counters().np_cnp_sent);
    CHECK(receiver.nic.counters().rp_cnp_handled == 0);
    // It would take 3.4 ms at line rate.
    CHECK(two.delivered() > 7 * kMillisecond);
  }
}

TEST_CASE("soft nic verbs: under QCN who sends the data is held back by CNMs for its flow, be it a WRITE or a READ") {
  for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
    const bool write = opcode == WorkOpcode::write;
    Two two([](NicParameters& p) {
      p.congestion = QcnParameters{};
      qcn(p).rpg_byte_reset = 0;
    });
    two.connect();
    NicEnd& sender = write ? two.left() : two.right();
    uint16_t flow = 0;
    two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
      PacketMeta meta;
      REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
      if (to_right == write && meta.cn_tagged) flow = meta.cn_flow;
      return true;
    };
    Transfer t(two, 4'000'000, opcode);
    two.run(kMillisecond);
    REQUIRE(flow > 0);
    const uint64_t self = write ? kNicMac : kPeerMac;
    const std::vector<uint8_t> bytes =
        cnm({.feedback = 63, .flow = flow, .to = self, .encapsulated_mac = write ? kPeerMac : kNicMac});
    for (int i = 0; i < 3; ++i) give(sender.nic, two.now(), bytes);
    CHECK(sender.nic.counters().rp_cnm_handled == 3);
    two.run();
    REQUIRE(two.left().completions.all.size() == 1);
    CHECK(two.left().completions.all[0].status == WorkStatus::success);
    CHECK(t.local == t.remote);
    // It would take 3.4 ms at line rate; all but the first millisecond's are sent at 1.3 Gb/s, for 15 ms at least.
    CHECK(two.delivered() > 12 * kMillisecond);
    CHECK(two.left().pool.available() == two.left().pool.size());
    CHECK(two.right().pool.available() == two.right().pool.size());
  }
}

TEST_CASE("soft nic verbs: under QCN reaction points go to new queue pairs, and a flow that connects anew keeps its rate") {
  for (const FlowSelection flows : {FlowSelection::queue_pair, FlowSelection::destination_mac}) {
    NicParameters p = Two::parameters(kNicMac, [](NicParameters&) {});
    p.congestion = QcnParameters{};
    p.grouping.selection = flows;
    p.grouping.most = 2;
    NicEnd end(p);
    const auto connect = [&](uint64_t to) {
      const uint32_t qpn = end.nic.applications().create({});
      REQUIRE(qpn != 0);
      QueueAttributes a;
      a.domain = 1;
      a.remote_qpn = 0x77;
      for (QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        end.nic.applications().modify(qpn, state, a, path_to(to, kNicMac), 3, 0);
      }
      return qpn;
    };
    const auto tell = [&](uint16_t flow, uint64_t to) {
      const std::vector<uint8_t> bytes = cnm({.flow = flow, .encapsulated_mac = to});
      give(end.nic, end.nic.now() + 1, bytes);
    };
    const uint32_t first = connect(kPeerMac);
    tell(1, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_handled == 1);
    CHECK(end.nic.counters().rp_cur_flows == 1);
    CHECK(end.nic.applications().destroy(first));
    tell(1, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_unknown_flow == 1);
    CHECK(end.nic.counters().rp_cur_flows == 1);
    // It leads to the same place: by destination it is the same flow.
    const uint32_t again = connect(kPeerMac);
    const bool same = flows == FlowSelection::destination_mac;
    const Flow& flow = end.nic.observation().flow_at(end.nic.streams() + again % kPlaces, end.nic.now());
    CHECK(flow.held == same);
    // Two are all there are: the third shares.
    connect(kPeerMac + 1);
    if (!same) CHECK(end.nic.counters().rp_cur_flows == 0);
    connect(kPeerMac + 2);
    connect(kPeerMac + 3);
    tell(3, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_unknown_flow == 2);
    for (uint32_t round = 0; round < 200; ++round) {
      const uint32_t qpn = connect(kPeerMac + round);
      CHECK(end.nic.applications().destroy(qpn));
    }
  }
}

TEST_CASE("soft nic verbs: a reliable connection is under DCTCP as a stream is, for WRITEs and for READs") {
  for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
    for (const bool marked : {false, true}) {
      CAPTURE(static_cast<int>(opcode));
      CAPTURE(marked);
      Two two([](NicParameters& p) { p.congestion = DctcpParameters{}; });
      two.connect();
      uint64_t acknowledgements = 0;
      two.spoil = [&](bool, std::vector<uint8_t>& bytes) {
        PacketMeta meta;
        REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
        acknowledgements += meta.opcode == kOpcodeRcAcknowledge;
        if (marked && meta.payload_length > 0) mark(bytes);
        return true;
      };
      Transfer t(two, 500'000, opcode);
      const DctcpSender* dctcp = two.left().nic.observation().flow_at(two.qpn(0) % kPlaces, 0).controller.as<DctcpSender>();
      REQUIRE(dctcp != nullptr);
      two.run();
      REQUIRE(two.left().completions.all.size() == 1);
      CHECK(two.left().completions.all[0].status == WorkStatus::success);
      CHECK(t.local == t.remote);
      if (opcode == WorkOpcode::write) CHECK(acknowledgements == 489);  // one for each packet
      CHECK(dctcp->alpha() > (marked ? 0.9 : 0));
      CHECK(dctcp->window() >= (marked ? 2 : 50));
      CHECK(dctcp->window() <= (marked ? 4 : 256));
    }
  }
}

TEST_CASE("soft nic verbs: a host that falls behind makes senders slow down") {
  Two two;
  two.connect();
  two.right().nic.set_crowded(true);
  Transfer t(two, 1'000'000, WorkOpcode::write);
  two.run();
  CHECK(two.right().nic.counters().np_crowded_roce_packets == 977);
  CHECK(two.right().nic.counters().np_ecn_marked_roce_packets == 0);
  CHECK(two.left().nic.counters().rp_cnp_handled > 3);
  CHECK(t.local == t.remote);
}

TEST_CASE("soft nic verbs: acknowledgements obey the pause of their priority, and go ahead of data") {
  Two two;
  two.connect();
  std::array<uint16_t, kPriorities> quanta{};
  quanta[3] = 0xffff;
  Transfer t(two, 1'000, WorkOpcode::write);
  two.run(1 * kMicrosecond);
  two.right().nic.receive_pfc(two.now(), 1 << 3, quanta);
  two.run(1 * kMillisecond);
  CHECK(t.local == t.remote);
  CHECK(two.left().completions.all.empty());
  quanta[3] = 0;
  two.right().nic.receive_pfc(two.now(), 1 << 3, quanta);
  two.run();
  CHECK(two.left().completions.all.size() == 1);
}

TEST_CASE("soft nic verbs: packets from another address than the peer's change nothing") {
  Two two;
  two.connect();
  two.spoil = [](bool to_right, std::vector<uint8_t>& bytes) {
    if (!to_right) return true;
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    // A forger with a right ICRC and IP checksum.
    bytes[meta.l3_offset + 15] ^= 0x40;
    ip_set_length(bytes.data() + meta.l3_offset, load_be16(bytes.data() + meta.l3_offset + 2));
    write_icrc(bytes.data(), meta.l3_offset, static_cast<uint32_t>(bytes.size()) - kIcrc);
    return true;
  };
  Transfer t(two, 500, WorkOpcode::write);
  two.run(10 * kMillisecond);
  CHECK(two.right().nic.transport_counters().drop_wrong_peer == 1);
  CHECK(t.remote == std::vector<uint8_t>(500, 2));
}

TEST_CASE("soft nic verbs: frames for connection management are punted, once their ICRC is right") {
  Two two;
  std::vector<uint8_t> bytes = roce(kOpcodeUdSendOnly).to(kGsiQpn).payload(256, 7).bytes();
  CHECK(give(two.left().nic, 0, bytes) == SoftNic::Disposition::punt);
  bytes[100] ^= 1;
  CHECK(give(two.left().nic, 0, bytes) == SoftNic::Disposition::consumed);
  CHECK(two.left().nic.counters().rx_icrc_encapsulated == 1);
}

TEST_CASE("soft nic verbs: places are used again, numbers are not, and a packet to an old number finds nobody") {
  Two two;
  two.connect();
  const uint32_t old = two.qpn(1);
  Transfer t(two, 5'000, WorkOpcode::write);
  two.run(3 * kMicrosecond);  // on its way
  CHECK(two.right().nic.applications().destroy(old));
  CHECK(!two.right().nic.applications().destroy(old));
  CHECK(two.right().nic.applications().create({}) != old);
  two.run(100 * kMicrosecond);
  CHECK(two.right().nic.counters().drop_unknown_qp > 0);
  CHECK(two.left().completions.all.empty());
  // Every place once, and none beyond.
  std::vector<uint32_t> numbers;
  for (uint32_t i = 1; i < kPlaces; ++i) numbers.push_back(two.right().nic.applications().create({}));
  CHECK(two.right().nic.applications().create({}) == 0);
  for (const uint32_t number : numbers) {
    CHECK(number > kGsiQpn);
    CHECK(two.right().nic.applications().destroy(number));
  }
  CHECK_THROWS_AS(two.right().nic.applications().modify(old, QueuePairState::init, {}, {}, 3, 0), NativeError);
}

TEST_CASE("soft nic verbs: a rate cap paces requests") {
  Two two;
  two.connect();
  two.left().nic.applications().modify(two.qpn(0), QueuePairState::reset, {}, {}, 3, 0);
  QueueAttributes a;
  a.domain = 1;
  a.remote_qpn = two.qpn(1);
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    two.left().nic.applications().modify(two.qpn(0), to, a, path_to(kPeerMac, kNicMac), 3, 100'000'000);
  }
  Transfer t(two, 1'000'000, WorkOpcode::write);
  two.run();
  CHECK(t.local == t.remote);
  const double wire = static_cast<double>(two.pair_of(two.left(), two.qpn(0)).counters.tx_wire_bytes);
  CHECK(static_cast<double>(two.delivered()) == doctest::Approx(wire * 8 * 10).epsilon(0.01));
}

TEST_CASE("soft nic verbs: datagrams take the way of their address handle, and under QCN name their flow") {
  for (const bool qcn : {false, true}) {
    Two two([qcn](NicParameters& p) {
      if (qcn) p.congestion = QcnParameters{};
    });
    int frames = 0;
    two.spoil = [&](bool, std::vector<uint8_t>& bytes) {
      PacketMeta meta;
      CHECK(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
      CHECK(meta.cn_tagged == qcn);
      CHECK(meta.cn_flow == (qcn ? 1 : 0));
      return ++frames > 0;
    };
    std::vector<uint8_t> out(64, 9), in(kGrhBytes + 64);
    const uint32_t out_key = two.left().register_memory(out);
    const uint32_t in_key = two.right().register_memory(in);
    const uint32_t qpn[2] = {two.datagrams(two.left()), two.datagrams(two.right())};
    two.right().nic.applications().post_receive(
        qpn[1], {5, reinterpret_cast<uintptr_t>(in.data()), static_cast<uint32_t>(in.size()), in_key});
    SendWork w = work(WorkOpcode::send, out, out_key, in, 0);
    w.address_handle = two.left().nic.applications().create_address_handle(path_to(kPeerMac, kNicMac));
    w.remote_qpn = qpn[1];
    w.queue_key = kQueueKey;
    two.left().nic.applications().post_send(qpn[0], w);
    two.run();
    REQUIRE(two.right().completions.all.size() == 1);
    CHECK(two.right().completions.all[0].source_qpn == qpn[0]);
    CHECK(std::memcmp(in.data() + kGrhBytes, out.data(), 64) == 0);
    CHECK(two.left().completions.all.size() == 1);
    CHECK(frames == 1);
    if (!qcn) continue;
    // It sends to many: whatever the address, a CNM that names its flow is for it.
    const std::vector<uint8_t> bytes = cnm({.encapsulated_mac = kPeerMac + 5});
    give(two.left().nic, two.now(), bytes);
    CHECK(two.left().nic.allowed_rate(two.pair_of(two.left(), qpn[0])) < two.left().nic.line_rate());
  }
}

TEST_CASE("soft nic verbs: a datagram to a handle that there is not ends its queue pair and sends nothing") {
  for (const bool destroyed : {false, true}) {
    Two two;
    int frames = 0;
    two.spoil = [&](bool, std::vector<uint8_t>&) { return ++frames > 0; };
    std::vector<uint8_t> out(64, 9);
    SendWork w = work(WorkOpcode::send, out, two.left().register_memory(out), out, 0);
    w.address_handle = two.left().nic.applications().create_address_handle(path_to(kPeerMac, kNicMac));
    CHECK(two.left().nic.applications().destroy_address_handle(w.address_handle));
    CHECK(!two.left().nic.applications().destroy_address_handle(w.address_handle));
    if (!destroyed) w.address_handle = 77'777;
    // Its place is another's now.
    CHECK(two.left().nic.applications().create_address_handle(path_to(kPeerMac, kNicMac)) != w.address_handle);
    const uint32_t qpn = two.datagrams(two.left());
    two.left().nic.applications().post_send(qpn, w);
    two.run();
    CHECK(frames == 0);
    REQUIRE(two.left().completions.all.size() == 2);
    CHECK(two.left().completions.all[0].status == WorkStatus::local_operation_error);
    CHECK(two.left().completions.all[1].retired == 0);  // the event
    CHECK(two.pair_of(two.left(), qpn).verbs()->state() == QueuePairState::error);
  }
}

TEST_CASE("soft nic verbs: an operation that there is not fails") {
  Two two;
  two.connect();
  std::vector<uint8_t> bytes(64);
  const uint32_t key = two.left().register_memory(bytes);
  two.left().nic.applications().post_send(two.qpn(0), work(static_cast<WorkOpcode>(8), bytes, key, bytes, 0));
  two.left().nic.applications().post_send(two.qpn(0), work(static_cast<WorkOpcode>(255), bytes, key, bytes, 0));
  two.run();
  REQUIRE(two.left().completions.all.size() == 2);
  for (const Completion& c : two.left().completions.all) CHECK(c.status == WorkStatus::local_operation_error);
}

TEST_CASE("soft nic verbs: what a queue pair counts as received is data that came in sequence") {
  for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read, WorkOpcode::send}) {
    CAPTURE(static_cast<int>(opcode));
    Two two;
    two.connect();
    const bool write = opcode != WorkOpcode::read;
    std::vector<uint8_t> in(100'000);
    two.right().nic.applications().post_receive(
        two.qpn(1), {5, reinterpret_cast<uintptr_t>(in.data()), 100'000, two.right().register_memory(in)});
    int packets = 0;
    two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
      return !(to_right == write && bytes.size() > 1'000 && ++packets == 50);
    };
    Transfer t(two, 100'000, opcode);
    two.run();
    const QpCounters& sender = two.pair_of(write ? two.left() : two.right(), two.qpn(write ? 0 : 1)).counters;
    const QpCounters& receiver = two.pair_of(write ? two.right() : two.left(), two.qpn(write ? 1 : 0)).counters;
    CHECK(sender.tx_packets > 98);  // some of them twice
    CHECK(sender.rx_packets == 0);  // acknowledgements, requests
    CHECK(sender.rx_bytes == 0);
    CHECK(receiver.rx_packets == 98);
    CHECK(receiver.rx_bytes == 100'000);
    CHECK(receiver.rx_messages == (write ? 1 : 0));
    if (opcode == WorkOpcode::read) continue;  // how many responses have an AETH depends on the loss
    const uint32_t extensions = opcode == WorkOpcode::write ? kRethHeader : 0;
    CHECK(receiver.rx_wire_bytes == 100'000 + 98 * (14 + 20 + 8 + 12 + 4 + 24) + extensions);
  }
}

}  // namespace
}  // namespace weir::test
