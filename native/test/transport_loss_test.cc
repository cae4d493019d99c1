// Mixed work in both directions over a link that loses, repeats and reorders: every byte where it belongs, every completion once
// and in order, every atomic executed once.
#include <string>

#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Pair;
using test::Region;

constexpr uint32_t kSlot = 40'000;  // room for one message
constexpr uint32_t kMessages = 60;

// Work that one end asks of the other, and the outcome that it must have.
class Traffic {
 public:
  Traffic(End& from, End& to, uint32_t path_mtu, uint64_t seed)
      : from_(from),
        to_(to),
        random_(seed, from.qpn),
        path_mtu_(path_mtu),
        source_(from.make_region(kSlot, seed + 1)),
        results_(from.make_region(kSlot * kMessages)),
        target_(to.make_region(kSlot * kMessages)),
        inbox_(to.make_region(kSlot * kMessages)),
        word_(to.make_region(8, seed)),
        expected_results_(results_.words),
        expected_target_(target_.words),
        expected_inbox_(inbox_.words),
        expected_word_(word_.words[0]) {}

  // Posts what there is room for; receives a few at a time, so that some messages find none.
  void post() {
    while (posted_ < kMessages && posted_ < completed_ + 32) post_one();
    for (; receives_ < received_ + 3; ++receives_) {
      to_.rc.post_receive({receives_, inbox_.address + static_cast<uint64_t>(receives_ % kMessages) * kSlot, kSlot, inbox_.key});
    }
  }
  void completed(const Completion& c) {
    REQUIRE(c.status == WorkStatus::success);
    completed_ += c.retired;
    CHECK(c.id + 1 == completed_);
  }
  void received(const Completion& c) {
    REQUIRE(c.status == WorkStatus::success);
    REQUIRE(received_ < arrivals_.size());
    const Completion& due = arrivals_[received_];
    CHECK(c.id == received_);
    CHECK(c.opcode == due.opcode);
    CHECK(c.flags == due.flags);
    CHECK(c.immediate == due.immediate);
    CHECK(c.bytes == due.bytes);
    ++received_;
  }
  bool done() const { return completed_ == kMessages && received_ == arrivals_.size(); }
  void check() {
    CHECK(std::memcmp(results_.data(), expected_results_.data(), results_.length) == 0);
    CHECK(std::memcmp(target_.data(), expected_target_.data(), target_.length) == 0);
    CHECK(std::memcmp(inbox_.data(), expected_inbox_.data(), inbox_.length) == 0);
    CHECK(word_.words[0] == expected_word_);
  }
  std::string progress() const { return std::to_string(completed_) + " done, " + std::to_string(received_) + " received"; }

 private:
  uint32_t random_length() {
    constexpr int kKinds = 6;
    const uint32_t lengths[kKinds] = {0, 1, path_mtu_ - 1, path_mtu_, 3 * path_mtu_ + 5, kSlot};
    const uint32_t length = lengths[random_.next() % kKinds];
    return random_.next() % 2 == 0 ? length : static_cast<uint32_t>(random_.next() % 2'000);
  }

  void post_one() {
    SendWork work;
    work.id = posted_;
    work.opcode = static_cast<WorkOpcode>(random_.next() % 8);
    if (work.opcode == WorkOpcode::send_invalidate) work.remote_key = to_.make_region(64).key;
    work.flags = posted_ + 1 == kMessages || random_.next() % 3 != 0 ? kSignaled : 0;
    if (random_.next() % 8 == 0) work.flags |= kFence;
    work.immediate = static_cast<uint32_t>(random_.next());
    work.length = std::min(random_length(), kSlot);
    const uint32_t offset = static_cast<uint32_t>(random_.next() % (kSlot - work.length + 1));
    const uint32_t slot = posted_ * kSlot;
    work.local_address = source_.address + offset;
    work.local_key = source_.key;
    Completion arrival;
    arrival.opcode = WorkOpcode::send;
    arrival.bytes = work.length;
    const auto place = [&](std::vector<uint64_t>& memory, uint32_t at) {
      std::memcpy(reinterpret_cast<uint8_t*>(memory.data()) + at, source_.data() + offset, work.length);
    };
    switch (work.opcode) {
      case WorkOpcode::send:
      case WorkOpcode::send_immediate:
      case WorkOpcode::send_invalidate:
        place(expected_inbox_, static_cast<uint32_t>(arrivals_.size()) * kSlot);
        arrival.flags = work.opcode == WorkOpcode::send             ? 0
                        : work.opcode == WorkOpcode::send_immediate ? kWithImmediate
                                                                    : kWithInvalidate;
        arrival.immediate = work.opcode == WorkOpcode::send             ? 0
                            : work.opcode == WorkOpcode::send_immediate ? work.immediate
                                                                        : work.remote_key;
        arrivals_.push_back(arrival);
        break;
      case WorkOpcode::write:
      case WorkOpcode::write_immediate:
        work.remote_key = target_.key;
        work.remote_address = target_.address + slot;
        place(expected_target_, slot);
        if (work.opcode == WorkOpcode::write) break;
        arrival.opcode = WorkOpcode::write_immediate;
        arrival.flags = kWithImmediate;
        arrival.immediate = work.immediate;
        arrivals_.push_back(arrival);
        break;
      case WorkOpcode::read:  // no other work of either end writes there
        work.remote_key = shared_of(to_).key;
        work.remote_address = shared_of(to_).address + offset;
        work.local_key = results_.key;
        work.local_address = results_.address + slot;
        std::memcpy(reinterpret_cast<uint8_t*>(expected_results_.data()) + slot, shared_of(to_).data() + offset, work.length);
        break;
      default: {
        const bool swap = work.opcode == WorkOpcode::compare_swap;
        const bool matches = random_.next() % 2 == 0;
        work.length = 8;
        work.remote_key = word_.key;
        work.remote_address = word_.address;
        work.local_key = results_.key;
        work.local_address = results_.address + slot;
        work.compare = matches ? expected_word_ : ~expected_word_;
        work.swap_add = random_.next();
        std::memcpy(reinterpret_cast<uint8_t*>(expected_results_.data()) + slot, &expected_word_, 8);
        if (!swap) expected_word_ += work.swap_add;
        if (swap && matches) expected_word_ = work.swap_add;
      }
    }
    from_.rc.post_send(work);
    ++posted_;
  }
  const Region& shared_of(End& end) {
    if (shared_.length == 0) shared_ = end.make_region(kSlot, 77);
    return shared_;
  }

  End& from_;
  End& to_;
  Random random_;
  uint32_t path_mtu_;
  Region source_, results_, target_, inbox_, word_, shared_;
  std::vector<uint64_t> expected_results_, expected_target_, expected_inbox_;
  uint64_t expected_word_;
  std::vector<Completion> arrivals_;
  uint32_t posted_ = 0, completed_ = 0, receives_ = 0, received_ = 0;
};

void dispatch(End& end, Traffic& own, Traffic& others) {
  for (const Completion& c : end.take()) c.receive ? others.received(c) : own.completed(c);
}

// `limited`: a congestion window, too, that changes all the time.
void exchange(LossRecovery recovery, test::Faults faults, uint32_t path_mtu, uint64_t seed, bool limited = false) {
  CAPTURE(static_cast<int>(recovery));
  CAPTURE(faults.loss);
  CAPTURE(faults.duplicate);
  CAPTURE(path_mtu);
  CAPTURE(seed);
  Pair pair(seed);
  pair.faults = faults;
  Random random(seed, 99);
  const uint32_t window = 4 + static_cast<uint32_t>(random.next() % 253);
  const uint8_t reads = static_cast<uint8_t>(1 + random.next() % 16);
  pair.both([&](QueueAttributes& a) {
    a.window = window;
    a.recovery = recovery;
    a.path_mtu = path_mtu;
    a.informs = limited;
    a.trim_naks = faults.trim > 0;
    a.max_rd_atomic = a.max_dest_rd_atomic = reads;
  });
  pair.connect();
  Traffic rightward(pair.left, pair.right, path_mtu, seed);
  Traffic leftward(pair.right, pair.left, path_mtu, seed + 1000);
  for (int slices = 0; !(rightward.done() && leftward.done()); ++slices) {
    INFO(rightward.progress(), " / ", leftward.progress());
    REQUIRE(slices < 100'000);
    rightward.post();
    leftward.post();
    if (limited) {
      const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random.next() % below); };
      pair.left.rc.limit(1 + draw(slices % 3 == 0 ? 2 : window), draw(2 * window));
      pair.right.rc.limit(1 + draw(window), draw(window));
    }
    pair.run(50 * kMicrosecond);
    dispatch(pair.left, rightward, leftward);
    dispatch(pair.right, leftward, rightward);
  }
  CHECK(pair.run());
  CHECK(pair.left.completions.empty());
  CHECK(pair.right.completions.empty());
  rightward.check();
  leftward.check();
}

TEST_CASE("mixed work in both directions survives loss, repetition and reordering") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    uint64_t seed = 1;
    for (double loss : {0.0, 0.001, 0.01, 0.05, 0.2}) {
      for (double disorder : {0.0, 0.02, 0.2}) {
        for (uint32_t path_mtu : {256u, 1024u, 4096u}) exchange(recovery, {loss, disorder, disorder}, path_mtu, ++seed);
      }
    }
  }
}

TEST_CASE("mixed work survives trimming, beside loss and reordering, with and without a congestion window") {
  uint64_t seed = 2'000;
  for (double trim : {0.01, 0.2, 0.6}) {
    for (double disorder : {0.0, 0.02}) {
      for (uint32_t path_mtu : {256u, 4096u}) {
        for (bool limited : {false, true}) {
          exchange(LossRecovery::selective_repeat, {disorder, disorder, disorder, trim}, path_mtu, ++seed, limited);
        }
      }
    }
  }
}

TEST_CASE("mixed work survives loss and reordering under a congestion window that changes") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    uint64_t seed = 1'000;
    for (double loss : {0.0, 0.01, 0.05}) {
      for (double disorder : {0.0, 0.02}) {
        for (uint32_t path_mtu : {256u, 4096u}) exchange(recovery, {loss, disorder, disorder}, path_mtu, ++seed, true);
      }
    }
  }
}

}  // namespace
}  // namespace weir
