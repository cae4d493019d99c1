// Two NICs with queue pairs of applications, joined by a link, in virtual time.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "test/nic_harness.h"
#include "wire/ecn.h"
#include "wire/packet_pool.h"

namespace weir::test {

inline constexpr Time kDelay = 1 * kMicrosecond;
inline constexpr uint32_t kPlaces = 8;
inline constexpr uint32_t kQueueKey = 0x11111111;

struct Completed final : CompletionSink {
  void complete(const Completion& completion) override { all.push_back(completion); }
  std::vector<Completion> all;
};

struct NicEnd {
  explicit NicEnd(const NicParameters& p) : pool(256, 4'096 + 128), nic(p, {}, pool, &completions) {}

  uint32_t register_memory(std::vector<uint8_t>& bytes) {
    return nic.memory().add({bytes.data(), reinterpret_cast<uintptr_t>(bytes.data()), bytes.size(), 1,
                             kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic, nullptr});
  }

  PacketPool pool;
  Completed completions;
  WireNic nic;
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
    p.addresses.push_back({4, {10, 0, 0, static_cast<uint8_t>(mac)}});
    change(p);
    return p;
  }

  void connect(const QueueAttributes& changed = {}) {
    qpn_[0] = left_.nic.applications().create({});
    qpn_[1] = right_.nic.applications().create({});
    for (int side : {0, 1}) {
      WireNic& nic = side == 0 ? left_.nic : right_.nic;
      const RocePath path = side == 0 ? path_to(kPeerMac, kNicMac) : path_to(kNicMac, kPeerMac);
      QueueAttributes a = changed;
      a.domain = 1;
      a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
      a.remote_qpn = qpn_[1 - side];
      for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        nic.applications().modify(qpn_[side], to, a, path, 3, 0);
      }
    }
  }

  // A queue pair for datagrams on one side, ready to send and receive.
  uint32_t datagrams(NicEnd& end, uint32_t queue_key = kQueueKey) {
    const uint32_t qpn = end.nic.applications().create({.datagram = true});
    QueueAttributes a;
    a.domain = 1;
    a.queue_key = queue_key;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      end.nic.applications().modify(qpn, to, a, {}, 3, 0);
    }
    return qpn;
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
        delivered_ = now_;
        PacketMeta meta;
        const uint32_t length = static_cast<uint32_t>(flying.bytes.size());
        const Refusal refusal = classify(flying.bytes.data(), length, meta);
        last_ = (flying.to_right ? right_ : left_).nic.receive(now_, flying.bytes.data(), length, meta, refusal);
      }
      for (bool to_right : {true, false}) {
        NicEnd& from = to_right ? left_ : right_;
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

  NicEnd& left() { return left_; }
  NicEnd& right() { return right_; }
  uint32_t qpn(int side) const { return qpn_[side]; }
  Time now() const { return now_; }
  // When the last frame arrived.
  Time delivered() const { return delivered_; }
  SoftNic::Disposition last() const { return last_; }
  QueuePair& pair_of(NicEnd& end, uint32_t qpn) {
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
  NicEnd left_;
  NicEnd right_;
  uint32_t qpn_[2] = {};
  Time now_ = 0;
  Time delivered_ = 0;
  SoftNic::Disposition last_ = SoftNic::Disposition::consumed;
  std::vector<Flying> wire_;
};

inline SendWork work(WorkOpcode opcode, std::vector<uint8_t>& local, uint32_t key, std::vector<uint8_t>& remote,
                     uint32_t remote_key) {
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
inline void mark(std::vector<uint8_t>& bytes) {
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
    two.left().nic.applications().post_send(two.qpn(0), work(opcode, local, key, remote, remote_key));
  }
  std::vector<uint8_t> local, remote;
};

}  // namespace weir::test
