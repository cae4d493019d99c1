// A reliable connection of an application at both ends: what a packet of RDMA WRITEs costs its sender and its receiver, with
// payload, ICRC and acknowledgements. Frames pass from one NIC to the other as many at a time as a super-frame has.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_case.h"
#include "endpoint/wire_nic.h"
#include "wire/classify.h"

namespace weir::bench {
namespace {

constexpr uint32_t kUnderWay = 128;       // messages
constexpr Time kTurn = 5 * kMicrosecond;  // time that a super-frame takes at 100 Gb/s

struct Counted final : CompletionSink {
  void complete(const Completion&) override { ++count; }
  uint32_t count = 0;
};

struct End {
  End(uint64_t mac, uint32_t message) : pool(1'024, 4'096 + 128), nic(parameters(mac), {}, pool, &completions), bytes(message) {
    key = nic.memory().add({bytes.data(), 0, bytes.size(), 1, kLocalWrite | kRemoteWrite, nullptr});
    qpn = nic.applications().create({.send_depth = kUnderWay, .receive_depth = 1});
    nic.number_datagrams(true);
  }
  static NicParameters parameters(uint64_t mac) {
    NicParameters p;
    p.rate = 100'000'000'000;
    p.mac = mac;
    p.verbs_queue_pairs = 8;
    p.memory_regions = 1;
    return p;
  }
  void connect(const End& peer, uint64_t own_mac, uint64_t peer_mac, uint32_t path_mtu) {
    QueueAttributes a;
    a.domain = 1;
    a.access = kRemoteWrite;
    a.path_mtu = path_mtu;
    a.remote_qpn = peer.qpn;
    RocePath path;
    path.source_mac = own_mac;
    path.destination_mac = peer_mac;
    path.source_ip[0] = path.destination_ip[0] = 10;
    path.source_ip[3] = static_cast<uint8_t>(own_mac);
    path.destination_ip[3] = static_cast<uint8_t>(peer_mac);
    path.udp_source_port = 0xc000;
    for (const QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      nic.applications().modify(qpn, to, a, path, 3, 0);
    }
  }

  PacketPool pool;
  Counted completions;
  WireNic nic;
  std::vector<uint8_t> bytes;
  uint32_t key = 0;
  uint32_t qpn = 0;
};

class Connection : public BenchCase {
 public:
  Connection(uint32_t message, uint32_t path_mtu) : ends_{End(1, message), End(2, message)} {
    ends_[0].connect(ends_[1], 1, 2, path_mtu);
    ends_[1].connect(ends_[0], 2, 1, path_mtu);
  }
  void run(uint64_t count) override {
    for (uint64_t sent = 0; sent < count; now_ += kTurn) {
      if (const uint32_t room = kUnderWay - (posted_ - ends_[0].completions.count); room > 0) {
        SendWork work;
        work.opcode = WorkOpcode::write;
        work.flags = kSignaled;
        work.length = static_cast<uint32_t>(ends_[0].bytes.size());
        work.local_key = ends_[0].key;
        work.remote_key = ends_[1].key;
        ends_[0].nic.applications().post_send(ends_[0].qpn, work, room);
        posted_ += room;
      }
      sent += pass(ends_[0], ends_[1]);
      pass(ends_[1], ends_[0]);
    }
  }

 private:
  // Passes all that has left the one to the other.
  uint64_t pass(End& from, End& to) {
    from.nic.advance(now_);
    uint64_t passed = 0;
    PacketMeta meta;
    Refusal refusal = Refusal::runt;
    for (PacketId id = from.nic.transmit(), next = kNoPacket; id != kNoPacket; id = next, ++passed) {
      const uint8_t* data = from.pool.data(id);
      const uint32_t length = from.pool[id].length;
      next = from.nic.transmit();
      const bool follows = refusal == Refusal::none;
      refusal = follows ? classify_next_slice(data, length, meta) : classify(data, length, meta);
      to.nic.receive(now_, data, length, meta, refusal, {.follows = follows, .more = next != kNoPacket});
      from.nic.left(id);
      from.pool.free(id);
    }
    return passed;
  }

  std::array<End, 2> ends_;
  uint32_t posted_ = 0;
  Time now_ = 0;
};

}  // namespace

void define_connection_cases(BenchList& list) {
  for (const uint32_t path_mtu : {1'024u, 4'096u}) {
    define<Connection>(list, "RC packet of a 64 KiB WRITE, path MTU " + std::to_string(path_mtu), 64u * 1'024, path_mtu);
  }
  define<Connection>(list, "RC packet of a 64 B WRITE", 64u, 1'024u);
}

}  // namespace weir::bench
