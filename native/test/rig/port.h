// A port whose frames a test gives and takes: what it does is a script that the test holds, and may change at any time.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "io/packet_port.h"

namespace weir::test {

inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

struct PortScript {
  struct Arrival {
    std::vector<uint8_t> bytes;
    RxFrame frame;
  };
  struct Sent {
    std::vector<uint8_t> bytes;
    Offload offload;
  };

  // Returns the frame as the port will tell of it, for what else there is to say.
  RxFrame& give(Time stamp, std::vector<uint8_t> bytes, const Offload& offload = {}) {
    RxFrame frame;
    frame.stamp = stamp;
    frame.offload = offload;
    arriving.push_back({std::move(bytes), frame});
    return arriving.back().frame;
  }
  // The kernel has taken the tag out.
  void give_tagged(Time stamp, std::vector<uint8_t> bytes, uint16_t tci, const Offload& offload = {}) {
    RxFrame& frame = give(stamp, std::move(bytes), offload);
    frame.vlan_tci = tci;
    frame.vlan_stripped = true;
    frame.vlan_tpid = 0x8100;
  }
  // Frames that the port has not told of yet.
  size_t waiting() const { return arriving.size() - lent; }

  std::deque<Arrival> arriving;  // the first `lent` of them are lent, and go when they are released
  size_t lent = 0;
  size_t released = 0;

  std::vector<Sent> sent;
  std::vector<size_t> calls;  // frames that the host was given, by call
  size_t room = kAnyNumber;   // so many frames more are taken
  uint32_t hopeless = 0;      // a frame of this length is refused for good, and counted

  PortCapabilities capabilities;
  PortState state = PortState::up;
  uint32_t mtu = 0;
  PortLosses losses;
  Time deadline = kNever;
  int wait_descriptor = -1;
};

// A released frame is overwritten, so that a release too early shows.
class ScriptedPort final : public PacketPort {
 public:
  explicit ScriptedPort(PortScript& script) : script_(script) {}
  PortCapabilities capabilities() const override { return script_.capabilities; }
  size_t receive(std::span<RxFrame> frames) override {
    size_t count = 0;
    for (; count < frames.size() && script_.lent < script_.arriving.size(); ++count, ++script_.lent) {
      auto& [bytes, frame] = script_.arriving[script_.lent];
      frame.data = bytes.data();
      frame.length = static_cast<uint32_t>(bytes.size());
      frames[count] = frame;
    }
    return count;
  }
  void release(size_t count) override {
    REQUIRE(count <= script_.lent);
    for (size_t i = 0; i < count; ++i) {
      std::ranges::fill(script_.arriving.front().bytes, uint8_t{0xdd});
      script_.arriving.pop_front();
    }
    script_.lent -= count;
    script_.released += count;
  }
  int wait_descriptor() const override { return script_.wait_descriptor; }
  Transmitted transmit(std::span<const TxFrame> frames) override {
    script_.calls.push_back(frames.size());
    Transmitted done;
    for (const TxFrame& frame : frames) {
      if (frame.length == script_.hopeless) {
        ++script_.losses.transmit_errors;
        done.refused = true;
        break;
      }
      if (script_.room == 0) break;
      if (script_.room != kAnyNumber) --script_.room;
      script_.sent.push_back({{frame.data, frame.data + frame.length}, frame.offload});
      ++done.sent;
    }
    return done;
  }
  Time next_deadline() const override { return script_.deadline; }
  PortLosses losses() override { return script_.losses; }
  PortState state() override { return script_.state; }
  uint32_t mtu() override { return script_.mtu; }
  // The new interface is up, and has none of the old one's frames.
  void reopen() override {
    CHECK(script_.lent == 0);
    script_.arriving.clear();
    script_.state = PortState::up;
  }

 private:
  PortScript& script_;
};

}  // namespace weir::test
