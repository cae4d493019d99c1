// READs under congestion control by acknowledgements: in which pieces they are asked for.
#include <vector>

#include "test/transport_harness.h"

namespace weir::test {
namespace {

constexpr uint32_t kMtu = 1'024;

struct Asking {
  explicit Asking(LossRecovery recovery = LossRecovery::go_back_n, uint8_t reads = 16) {
    pair.both([&](QueueAttributes& a) {
      a.path_mtu = kMtu;
      a.recovery = recovery;
      a.informs = true;
      a.window = 256;
      a.max_rd_atomic = a.max_dest_rd_atomic = reads;
    });
    pair.on_frame = [this](End& from, Frame& frame) {
      if (&from != &pair.left) return !lose_response || !lose_response(frame);
      if (frame.opcode() == kOpcodeRcReadRequest) requests.push_back({frame.psn(), packets_of(frame.reth().dma_length, kMtu)});
      return true;
    };
    pair.connect();
  }
  void read(uint32_t packets) {
    from = pair.right.make_region(packets * kMtu, 1);
    to = pair.left.make_region(packets * kMtu);
    SendWork work;
    work.opcode = WorkOpcode::read;
    work.length = packets * kMtu;
    work.flags = kSignaled;
    work.local_address = to.address;
    work.local_key = to.key;
    work.remote_address = from.address;
    work.remote_key = from.key;
    pair.left.rc.post_send(work);
  }
  bool arrived() const { return std::memcmp(from.data(), to.data(), from.length) == 0; }

  struct Request {
    uint32_t psn;
    uint32_t packets;
    bool operator==(const Request&) const = default;
  };
  Pair pair;
  Region from, to;
  std::vector<Request> requests;
  std::function<bool(const Frame&)> lose_response;
};

}  // namespace

TEST_CASE("reads: a piece is a sixteenth of what may be expected in flight, and all of it where one piece may be under way") {
  struct Case {
    uint32_t window, expected;
    uint8_t reads;
    uint32_t piece, under_way;  // packets
  };
  for (const Case& c : {Case{UINT32_MAX, 0, 16, 64, 256},  // nobody knows: a quarter of the transport's window
                        Case{40, 40, 16, 3, 39}, Case{8, 8, 16, 1, 8}, Case{UINT32_MAX, 100, 16, 7, 112}, Case{40, 40, 1, 40, 40},
                        Case{40, 40, 4, 10, 40}, Case{1, 1, 16, 1, 1}}) {
    CAPTURE(c.window);
    CAPTURE(c.expected);
    Asking a({}, c.reads);
    a.pair.left.rc.limit(c.window, c.expected);
    a.read(600);
    a.pair.run(4 * kMicrosecond);  // before anything has come back
    uint32_t under_way = 0;
    for (const auto& request : a.requests) {
      CHECK(request.packets == c.piece);
      under_way += request.packets;
    }
    CHECK(under_way == c.under_way);
    REQUIRE(a.pair.run());
    CHECK(a.arrived());
  }
}

TEST_CASE("reads: what is missing of a piece is asked for as it was, whatever the window has become") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    CAPTURE(static_cast<int>(recovery));
    Asking a(recovery);
    a.pair.left.rc.limit(128, 128);
    const uint32_t first = a.pair.left_attributes.send_psn;
    bool lost = false;
    a.lose_response = [&](const Frame& frame) { return frame.psn() == psn_add(first, 3) && !std::exchange(lost, true); };
    a.read(16);
    a.pair.run(3 * kMicrosecond);
    CHECK(a.requests == std::vector<Asking::Request>{{first, 8}, {psn_add(first, 8), 8}});
    a.requests.clear();
    a.pair.left.rc.limit(256, 256);  // new pieces would have 16 packets
    REQUIRE(a.pair.run());
    CHECK(lost);
    CHECK(a.arrived());
    REQUIRE_FALSE(a.requests.empty());
    const uint32_t again = recovery == LossRecovery::go_back_n ? 5 : 1;
    CHECK(a.requests[0] == Asking::Request{psn_add(first, 3), again});
    for (const auto& request : a.requests) CHECK(request.packets <= 8);
    CHECK(a.pair.left.counters.local_ack_timeout_err == 0);
  }
}

}  // namespace weir::test
