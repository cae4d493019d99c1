// Two reliable connections at the ends of a link in virtual time. Every packet is built as a frame and parsed again; the link
// loses, repeats and delays frames as seeded, or as a test says.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "transport/aeth.h"
#include "transport/reliable_connection.h"
#include "wire/classify.h"
#include "wire/icrc.h"

namespace weir::test {

inline constexpr uint8_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kRemoteInvalidate;

struct Frame {
  std::vector<uint8_t> bytes;
  PacketMeta meta;

  const uint8_t* packet() const { return bytes.data() + meta.bth_offset; }
  uint8_t opcode() const { return meta.opcode; }
  uint32_t psn() const { return meta.psn; }
  Bth bth() const { return load_bth(packet()); }
  Reth reth() const { return load_reth(packet() + kBthHeader); }
  Aeth aeth() const { return load_aeth(packet() + kBthHeader); }
  uint8_t syndrome() const { return aeth().syndrome; }
  uint32_t payload() const { return meta.payload_length; }
};

inline RocePath path_between(uint8_t from, uint8_t to, uint8_t ip_version = 4) {
  RocePath path;
  path.ip_version = ip_version;
  path.source_mac = 0x020000000000u + from;
  path.destination_mac = 0x020000000000u + to;
  path.source_ip[0] = path.destination_ip[0] = ip_version == 4 ? 10 : 0xfd;
  path.source_ip[ip_version == 4 ? 3 : 15] = from;
  path.destination_ip[ip_version == 4 ? 3 : 15] = to;
  path.udp_source_port = 0xc000;
  return path;
}

inline Frame build_frame(const RoceTemplate& headers, const DataHeader& header, const uint8_t* payload, uint32_t bytes) {
  Frame frame;
  frame.bytes.resize(kMaxHeaders + bytes);
  frame.bytes.resize(headers.build_data(frame.bytes.data(), header, payload, bytes));
  REQUIRE(classify(frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size()), frame.meta) == Refusal::none);
  REQUIRE(icrc_ok(frame.bytes.data(), frame.meta));
  return frame;
}

// A region of memory, filled from a seed, and its key.
struct Region {
  std::vector<uint64_t> words;  // aligned for atomics
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;

  uint8_t* data() { return reinterpret_cast<uint8_t*>(words.data()); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(words.data()); }
};

struct End : CompletionSink {
  End(uint32_t qpn_, uint8_t from, uint8_t to, uint32_t depth)
      : qpn(qpn_), headers(path_between(from, to)), rc(qpn_, {memory, *this, counters}, depth, depth) {}
  void complete(const Completion& completion) override { completions.push_back(completion); }

  Region make_region(uint32_t length, uint64_t seed = 0, uint8_t access = kAllRights, uint32_t domain = 7) {
    Region region;
    region.length = length;
    region.words.resize(length / 8 + 1);
    Random random(seed, 1);
    for (uint64_t& word : region.words) word = random.next();
    region.address = next_address;
    next_address += (length + 7) / 8 * 8 + 0x1'0000'0000u;
    region.key = memory.add({region.data(), region.address, length, domain, access, nullptr});
    REQUIRE(region.key != 0);
    return region;
  }
  // Completions of work requests, errors events apart; taken.
  std::vector<Completion> take() {
    std::vector<Completion> all = std::exchange(completions, {});
    std::erase_if(all, [](const Completion& c) { return c.retired == 0; });
    return all;
  }
  void receive(const Region& region, uint64_t id = 1) { rc.post_receive({id, region.address, region.length, region.key}); }

  uint32_t qpn;
  RoceTemplate headers;
  MemoryTable memory{1024};
  TransportCounters counters;
  std::vector<Completion> completions;
  ReliableConnection rc;
  uint64_t next_address = 0x7f00'0000'0000;
  Time link_free = 0;
};

struct Faults {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;  // held back for a while
  double trim = 0;     // part of SENDs and WRITEs with payload of which only the headers come
};

class Pair {
 public:
  QueueAttributes left_attributes, right_attributes;

  explicit Pair(uint64_t seed = 1, uint32_t depth = 64) : left(17, 1, 2, depth), right(18, 2, 1, depth), random_(seed) {
    left_attributes.domain = right_attributes.domain = 7;
    left_attributes.access = right_attributes.access = kAllRights;
    left_attributes.timeout = right_attributes.timeout = 8;  // 1 ms
    left_attributes.min_rnr_timer = right_attributes.min_rnr_timer = 1;
    left_attributes.send_psn = right_attributes.receive_psn = 0xfffff0;
    left_attributes.receive_psn = right_attributes.send_psn = 0x7ffff8;
    left_attributes.remote_qpn = 18;
    right_attributes.remote_qpn = 17;
  }
  void both(const std::function<void(QueueAttributes&)>& change) {
    change(left_attributes);
    change(right_attributes);
  }
  void connect() {
    for (QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      left.rc.modify(state, left_attributes);
      right.rc.modify(state, right_attributes);
    }
  }

  // Runs until nothing moves any more; false if that has not come to pass within `limit`.
  bool run(Time limit = 10 * kSecond) {
    const Time until = now + limit;
    for (;;) {
      Time next = std::min(left.rc.next_deadline(), right.rc.next_deadline());
      if (!flying_.empty()) next = std::min(next, flying_.begin()->first);
      for (End* end : {&left, &right}) {
        if (end->rc.control_waits() || end->rc.data_bytes() > 0) next = std::min(next, std::max(now, end->link_free));
      }
      if (next == kNever) return true;
      if (next > until) return now = until, false;
      now = std::max(now, next);
      step();
    }
  }
  // Delivers it as if it had come over the link.
  void deliver(End& to, const Frame& frame) { to.rc.receive(now, frame.bytes.data(), frame.meta); }
  // Delivers it as if a switch had left the headers of it.
  void trim(End& to, const Frame& frame) { to.rc.receive_trimmed(now, frame.bytes.data(), frame.meta); }
  // A frame from whoever is opposite.
  Frame to(End& end, DataHeader header, const std::vector<uint8_t>& payload = {}) {
    header.destination_qp = end.qpn;
    return build_frame((&end == &left ? right : left).headers, header, payload.data(), static_cast<uint32_t>(payload.size()));
  }

  End left, right;
  Faults faults;
  // Called for every frame that enters the link. False: it is lost.
  std::function<bool(End& from, Frame& frame)> on_frame;
  Time now = 0;
  Time delay = 5 * kMicrosecond;

 private:
  void step() {
    for (End* end : {&left, &right}) end->rc.advance(now);
    while (!flying_.empty() && flying_.begin()->first <= now) {
      const auto [to, frame, trimmed] = flying_.begin()->second;
      flying_.erase(flying_.begin());
      trimmed ? trim(*to, frame) : deliver(*to, frame);
    }
    send(left, right);
    send(right, left);
  }
  void send(End& from, End& to) {
    if (from.link_free > now) return;
    OutgoingPacket out;
    if (from.rc.control_waits()) {
      from.rc.take_control(out);
    } else {
      const uint32_t bytes = from.rc.data_bytes();
      if (bytes == 0 || !from.rc.take_data(now, out)) return;
      const uint32_t extension = extension_length(out.header.opcode);
      CHECK(bytes == kBthHeader + extension + (out.payload_bytes + 3) / 4 * 4 + kIcrc);
    }
    Frame frame = build_frame(from.headers, out.header, out.payload, out.payload_bytes);
    from.link_free = now + static_cast<Time>(wire_bytes(static_cast<uint32_t>(frame.bytes.size()))) * 8 / 10;  // 10 Gb/s
    if (on_frame && !on_frame(from, frame)) return;
    if (random_.uniform() < faults.loss) return;
    const int copies = random_.uniform() < faults.duplicate ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const Time held = random_.uniform() < faults.reorder ? static_cast<Time>(random_.uniform() * 20'000) : 0;
      const RequestKind kind = opcode_shape(frame.opcode()).kind;
      const bool is_data = (kind == RequestKind::send || kind == RequestKind::write) && frame.payload() > 0;
      const bool trimmed = faults.trim > 0 && is_data && random_.uniform() < faults.trim;
      flying_.emplace(from.link_free + delay + held, Flying{&to, frame, trimmed});
    }
  }

  struct Flying {
    End* to;
    Frame frame;
    bool trimmed;
  };
  std::multimap<Time, Flying> flying_;
  Random random_;
};

}  // namespace weir::test
