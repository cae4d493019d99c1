// Queue pairs of applications on two NICs that are joined by a link, in virtual time: what the NIC adds to the transport.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "base/native_error.h"
#include "test/qcn_harness.h"
#include "transport/datagram.h"
#include "wire/ecn.h"
#include "wire/ip.h"

namespace weir::test {
namespace {

constexpr Time kDelay = 1 * kMicrosecond;
constexpr uint32_t kPlaces = 8;

struct Completions final : CompletionSink {
  void complete(const Completion& completion) override { all.push_back(completion); }
  std::vector<Completion> all;
};

struct End {
  explicit End(const NicParameters& p) : pool(256, 4'096 + 128), nic(p, {}, pool, &completions) {}

  uint32_t register_memory(std::vector<uint8_t>& bytes) {
    return nic.memory().add({bytes.data(), reinterpret_cast<uintptr_t>(bytes.data()), bytes.size(), 1,
                             kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic, nullptr});
  }

  PacketPool pool;
  Completions completions;
  SoftNic nic;
};

// Left is kNicMac, right is kPeerMac.
class Two {
 public:
  explicit Two(const std::function<void(NicParameters&)>& change = [](NicParameters&) {})
      : left_(parameters(kNicMac, change)), right_(parameters(kPeerMac, change)) {}

  static NicParameters parameters(uint64_t mac, const std::function<void(NicParameters&)>& change) {
    NicParameters p = nic_parameters();
    p.mac = mac;
    p.verbs_queue_pairs = kPlaces;
    p.memory_regions = 8;
    change(p);
    return p;
  }

  void connect(const QueueAttributes& changed = {}) {
    qpn_[0] = left_.nic.create_queue_pair({});
    qpn_[1] = right_.nic.create_queue_pair({});
    for (int side : {0, 1}) {
      SoftNic& nic = side == 0 ? left_.nic : right_.nic;
      const RocePath path = side == 0 ? path_to(kPeerMac, kNicMac) : path_to(kNicMac, kPeerMac);
      QueueAttributes a = changed;
      a.domain = 1;
      a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
      a.remote_qpn = qpn_[1 - side];
      for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        nic.modify_queue_pair(qpn_[side], to, a, path, 3, 0);
      }
    }
  }

  // Moves frames until nothing more happens, or to `until`.
  void run(Time until = 10 * kSecond) {
    for (uint64_t events = 0;; ++events) {
      REQUIRE(events < 5'000'000);
      const Time next =
          std::min({left_.nic.next_deadline(), right_.nic.next_deadline(), wire_.empty() ? kNever : wire_.front().at});
      if (next > until) break;
      now_ = std::max(now_, next);
      if (!wire_.empty() && wire_.front().at <= now_) {
        Flying flying = std::move(wire_.front());
        wire_.erase(wire_.begin());
        PacketMeta meta;
        const uint32_t length = static_cast<uint32_t>(flying.bytes.size());
        const Refusal refusal = classify(flying.bytes.data(), length, meta);
        last_ = (flying.to_right ? right_ : left_).nic.receive(now_, flying.bytes.data(), length, meta, refusal);
      }
      for (bool to_right : {true, false}) {
        End& from = to_right ? left_ : right_;
        from.nic.advance(now_);
        for (PacketId id = from.nic.transmit(); id != kNoPacket; id = from.nic.transmit()) {
          std::vector<uint8_t> bytes(from.pool.data(id), from.pool.data(id) + from.pool[id].length);
          from.nic.left(id);
          from.pool.free(id);
          if (!spoil || spoil(to_right, bytes)) wire_.push_back({now_ + kDelay, to_right, std::move(bytes)});
        }
      }
    }
  }

  End& left() { return left_; }
  End& right() { return right_; }
  uint32_t qpn(int side) const { return qpn_[side]; }
  Time now() const { return now_; }
  SoftNic::Disposition last() const { return last_; }
  QueuePair& pair_of(End& end, uint32_t qpn) {
    for (QueuePair& qp : end.nic.queue_pairs()) {
      if (qp.transport != nullptr && qp.qpn == qpn) return qp;
    }
    FAIL("no such queue pair");
    return end.nic.queue_pairs()[0];
  }

  // May change a frame, or drop it by returning false.
  std::function<bool(bool to_right, std::vector<uint8_t>& bytes)> spoil;

 private:
  struct Flying {
    Time at;
    bool to_right;
    std::vector<uint8_t> bytes;
  };
  End left_;
  End right_;
  uint32_t qpn_[2] = {};
  Time now_ = 0;
  SoftNic::Disposition last_ = SoftNic::Disposition::consumed;
  std::vector<Flying> wire_;
};

SendWork work(WorkOpcode opcode, std::vector<uint8_t>& local, uint32_t key, std::vector<uint8_t>& remote, uint32_t remote_key) {
  SendWork w;
  w.opcode = opcode;
  w.flags = kSignaled;
  w.length = static_cast<uint32_t>(local.size());
  w.local_address = reinterpret_cast<uintptr_t>(local.data());
  w.local_key = key;
  w.remote_address = reinterpret_cast<uintptr_t>(remote.data());
  w.remote_key = remote_key;
  return w;
}

// Congestion experienced, as a switch would mark it.
void mark(std::vector<uint8_t>& bytes) {
  PacketMeta meta;
  REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
  if (meta.ecn != 2) return;
  meta.ecn = 3;
  write_ecn(bytes.data(), meta);
}

struct Transfer {
  explicit Transfer(Two& two, uint32_t bytes, WorkOpcode opcode) : local(bytes, 1), remote(bytes, 2) {
    const uint32_t key = two.left().register_memory(local);
    const uint32_t remote_key = two.right().register_memory(remote);
    two.left().nic.post_send(two.qpn(0), work(opcode, local, key, remote, remote_key));
  }
  std::vector<uint8_t> local, remote;
};

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
  CHECK(two.now() < sent.tx_wire_bytes * 8 / 10 + 5 * kMicrosecond);
  CHECK(two.left().pool.available() == two.left().pool.size());
  CHECK(two.right().pool.available() == two.right().pool.size());
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
    End& sender = write ? two.left() : two.right();
    End& receiver = write ? two.right() : two.left();
    CHECK(receiver.nic.counters().np_cnp_sent > 10);
    CHECK(sender.nic.counters().rp_cnp_handled == receiver.nic.counters().np_cnp_sent);
    CHECK(receiver.nic.counters().rp_cnp_handled == 0);
    // At line rate it would take 3.4 ms.
    CHECK(two.now() > 7 * kMillisecond);
  }
}

TEST_CASE("soft nic verbs: under QCN who sends the data is held back by CNMs for its flow, be it a WRITE or a READ") {
  for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
    const bool write = opcode == WorkOpcode::write;
    Two two([](NicParameters& p) {
      p.congestion_control = CongestionControl::qcn;
      p.qcn.rpg_byte_reset = 0;
    });
    two.connect();
    End& sender = write ? two.left() : two.right();
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
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    for (int i = 0; i < 3; ++i) {
      sender.nic.receive(two.now(), bytes.data(), static_cast<uint32_t>(bytes.size()), meta, Refusal::none);
    }
    CHECK(sender.nic.counters().rp_cnm_handled == 3);
    two.run();
    REQUIRE(two.left().completions.all.size() == 1);
    CHECK(two.left().completions.all[0].status == WorkStatus::success);
    CHECK(t.local == t.remote);
    // At line rate it would take 3.4 ms; all but the first millisecond's are sent at 1.3 Gb/s, for 15 ms at least.
    CHECK(two.now() > 12 * kMillisecond);
    CHECK(two.left().pool.available() == two.left().pool.size());
    CHECK(two.right().pool.available() == two.right().pool.size());
  }
}

TEST_CASE("soft nic verbs: under QCN reaction points go to new queue pairs, and a flow that connects anew keeps its rate") {
  for (const FlowSelection flows : {FlowSelection::queue_pair, FlowSelection::destination_mac}) {
    NicParameters p = Two::parameters(kNicMac, [](NicParameters&) {});
    p.congestion_control = CongestionControl::qcn;
    p.flows = flows;
    p.reaction_points = 2;
    End end(p);
    const auto connect = [&](uint64_t to) {
      const uint32_t qpn = end.nic.create_queue_pair({});
      REQUIRE(qpn != 0);
      QueueAttributes a;
      a.domain = 1;
      a.remote_qpn = 0x77;
      for (QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        end.nic.modify_queue_pair(qpn, state, a, path_to(to, kNicMac), 3, 0);
      }
      return qpn;
    };
    const auto tell = [&](uint16_t flow, uint64_t to) {
      const std::vector<uint8_t> bytes = cnm({.flow = flow, .encapsulated_mac = to});
      PacketMeta meta;
      REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
      end.nic.receive(end.nic.now() + 1, bytes.data(), static_cast<uint32_t>(bytes.size()), meta, Refusal::none);
    };
    const uint32_t first = connect(kPeerMac);
    tell(1, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_handled == 1);
    CHECK(end.nic.counters().rp_cur_flows == 1);
    CHECK(end.nic.destroy_queue_pair(first));
    tell(1, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_unknown_flow == 1);
    CHECK(end.nic.counters().rp_cur_flows == 1);
    // To the same place: by destination it is the same flow.
    const uint32_t again = connect(kPeerMac);
    const bool same = flows == FlowSelection::destination_mac;
    const ReactionPoint* point = end.nic.flow_at(end.nic.streams() + again % kPlaces, end.nic.now());
    REQUIRE(point != nullptr);
    CHECK(point->rate.limited() == same);
    // Two are all there are: the third shares.
    connect(kPeerMac + 1);
    if (!same) CHECK(end.nic.counters().rp_cur_flows == 0);
    connect(kPeerMac + 2);
    connect(kPeerMac + 3);
    tell(3, kPeerMac);
    CHECK(end.nic.counters().rp_cnm_unknown_flow == 2);
    for (uint32_t round = 0; round < 200; ++round) {
      const uint32_t qpn = connect(kPeerMac + round);
      CHECK(end.nic.destroy_queue_pair(qpn));
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
  std::vector<uint8_t> bytes(kMaxHeaders + 256);
  const std::vector<uint8_t> mad(256, 7);
  DataHeader header;
  header.opcode = kOpcodeUdSendOnly;
  header.destination_qp = kGsiQpn;
  bytes.resize(RoceTemplate(path_to(kNicMac, kPeerMac)).build_data(bytes.data(), header, mad.data(), 256));
  PacketMeta meta;
  const uint32_t length = static_cast<uint32_t>(bytes.size());
  Refusal refusal = classify(bytes.data(), length, meta);
  CHECK(two.left().nic.receive(0, bytes.data(), length, meta, refusal) == SoftNic::Disposition::punt);
  bytes[100] ^= 1;
  refusal = classify(bytes.data(), length, meta);
  CHECK(two.left().nic.receive(0, bytes.data(), length, meta, refusal) == SoftNic::Disposition::consumed);
  CHECK(two.left().nic.counters().rx_icrc_encapsulated == 1);
}

TEST_CASE("soft nic verbs: places are used again, numbers are not, and a packet to an old number finds nobody") {
  Two two;
  two.connect();
  const uint32_t old = two.qpn(1);
  Transfer t(two, 5'000, WorkOpcode::write);
  two.run(3 * kMicrosecond);  // on its way
  CHECK(two.right().nic.destroy_queue_pair(old));
  CHECK(!two.right().nic.destroy_queue_pair(old));
  CHECK(two.right().nic.create_queue_pair({}) != old);
  two.run(100 * kMicrosecond);
  CHECK(two.right().nic.counters().drop_unknown_qp > 0);
  CHECK(two.left().completions.all.empty());
  // Every place once, and none beyond.
  std::vector<uint32_t> numbers;
  for (uint32_t i = 1; i < kPlaces; ++i) numbers.push_back(two.right().nic.create_queue_pair({}));
  CHECK(two.right().nic.create_queue_pair({}) == 0);
  for (const uint32_t number : numbers) {
    CHECK(number > kGsiQpn);
    CHECK(two.right().nic.destroy_queue_pair(number));
  }
  CHECK_THROWS_AS(two.right().nic.modify_queue_pair(old, QueuePairState::init, {}, {}, 3, 0), NativeError);
}

TEST_CASE("soft nic verbs: a rate cap paces requests") {
  Two two;
  two.connect();
  two.left().nic.modify_queue_pair(two.qpn(0), QueuePairState::reset, {}, {}, 3, 0);
  QueueAttributes a;
  a.domain = 1;
  a.remote_qpn = two.qpn(1);
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    two.left().nic.modify_queue_pair(two.qpn(0), to, a, path_to(kPeerMac, kNicMac), 3, 100'000'000);
  }
  Transfer t(two, 1'000'000, WorkOpcode::write);
  two.run();
  CHECK(t.local == t.remote);
  const double wire = static_cast<double>(two.pair_of(two.left(), two.qpn(0)).counters.tx_wire_bytes);
  CHECK(static_cast<double>(two.now()) == doctest::Approx(wire * 8 * 10).epsilon(0.01));
}

TEST_CASE("soft nic verbs: datagrams take the way of their address handle, and under QCN name their flow") {
  for (const bool qcn : {false, true}) {
    Two two([qcn](NicParameters& p) {
      if (qcn) p.congestion_control = CongestionControl::qcn;
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
    uint32_t qpn[2];
    for (int side : {0, 1}) {
      SoftNic& nic = side == 0 ? two.left().nic : two.right().nic;
      qpn[side] = nic.create_queue_pair({.datagram = true});
      QueueAttributes a;
      a.domain = 1;
      a.queue_key = 0x11111111;
      for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        nic.modify_queue_pair(qpn[side], to, a, {}, 3, 0);
      }
    }
    two.right().nic.post_receive(qpn[1], {5, reinterpret_cast<uintptr_t>(in.data()), static_cast<uint32_t>(in.size()), in_key});
    SendWork w = work(WorkOpcode::send, out, out_key, in, 0);
    w.address_handle = two.left().nic.create_address_handle(path_to(kPeerMac, kNicMac));
    w.remote_qpn = qpn[1];
    w.queue_key = 0x11111111;
    two.left().nic.post_send(qpn[0], w);
    two.run();
    REQUIRE(two.right().completions.all.size() == 1);
    CHECK(two.right().completions.all[0].source_qpn == qpn[0]);
    CHECK(std::memcmp(in.data() + kGrhBytes, out.data(), 64) == 0);
    CHECK(two.left().completions.all.size() == 1);
    CHECK(frames == 1);
    if (!qcn) continue;
    // It sends to many: whatever the address, a CNM that names its flow is for it.
    const std::vector<uint8_t> bytes = cnm({.encapsulated_mac = kPeerMac + 5});
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    two.left().nic.receive(two.now(), bytes.data(), static_cast<uint32_t>(bytes.size()), meta, Refusal::none);
    CHECK(two.left().nic.allowed_rate(two.pair_of(two.left(), qpn[0])) < two.left().nic.line_rate());
  }
}

}  // namespace
}  // namespace weir::test
