// Parts of the switch: shared buffer, scheduler, forwarding table, routes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/bench_case.h"
#include "link/scheduler.h"
#include "switching/forwarding.h"
#include "switching/load_balancing.h"
#include "switching/route_table.h"
#include "switching/shared_buffer.h"

namespace weir::bench {
namespace {

// A frame goes in and out again: admission, the look for a pause, release, the look for its end.
class Buffer : public BenchCase {
 public:
  Buffer(int ports, int priority) : buffer_(BufferParameters{}, ports, 1 << 3), ports_(ports), priority_(priority) {}
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      const int in = static_cast<int>(i % static_cast<uint64_t>(ports_));
      const int out = in + 1 < ports_ ? in + 1 : 0;
      keep(buffer_.admit(in, out, priority_, 1'066));
      keep(buffer_.above_xoff(in, priority_));
      buffer_.release(in, out, priority_, 1'066);
      keep(buffer_.below_xon(in, priority_));
    }
  }

 private:
  SharedBuffer buffer_;
  int ports_;
  int priority_;
};

class Pick : public BenchCase {
 public:
  explicit Pick(uint8_t backlogged) : backlogged_(backlogged) {
    scheduler_.configure(parameters_);
    heads_.fill(1'090);
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(scheduler_.pick(backlogged_, 0, heads_));
  }

 private:
  SchedulerParameters parameters_;
  Scheduler scheduler_;
  std::array<uint32_t, kPriorities> heads_;
  uint8_t backlogged_;
};

// A table that has learned `entries` addresses, which are asked for in random order.
class Fdb : public BenchCase {
 public:
  explicit Fdb(uint32_t entries) : table_(16'384, true, 300 * kSecond) {
    Random random(1);
    for (uint32_t i = 0; i < entries; ++i) {
      PacketMeta meta;
      meta.source_mac = meta.destination_mac = 0x025745000000 + i;
      meta.flow_hash = static_cast<uint32_t>(random.next());
      table_.learn(0, meta, static_cast<uint16_t>(i % 64));
      frames_.push_back(meta);
    }
    for (size_t i = frames_.size() - 1; i > 0; --i) std::swap(frames_[i], frames_[random.next() % (i + 1)]);
  }

 protected:
  const PacketMeta& next() {
    if (++next_ >= frames_.size()) next_ = 0;
    return frames_[next_];
  }
  Forwarding table_;

 private:
  std::vector<PacketMeta> frames_;
  size_t next_ = 0;
};

class FdbLookup : public Fdb {
 public:
  using Fdb::Fdb;
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(table_.lookup(1, next(), [](std::span<const uint16_t> ports) { return ports[0]; }));
  }
};

class FdbLearn : public Fdb {
 public:
  using Fdb::Fdb;
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(table_.learn(1, next(), 7));
  }
};

// The route of an address, and of its group the way of a flow. Addresses are within routes that are asked for in random order.
class Routes : public BenchCase {
 public:
  Routes(uint8_t version, uint32_t count, uint32_t ways) : table_(version) {
    Random random(1);
    std::vector<NextHopGroups::Way> group;
    for (uint32_t i = 0; i < ways; ++i) group.push_back({i});
    for (uint32_t i = 0; i < 64; ++i) {
      for (NextHopGroups::Way& way : group) ++way.next_hop;
      groups_.hold(group);
    }
    balancer_.configure(LoadBalancing::ecmp, 0);
    for (uint32_t i = 0; i < count; ++i) {
      // IPv4: /16 to /24 as of the Internet; IPv6: /40 to /64 of one /16.
      AddressBits address{random.next(), random.next()};
      if (version == 6) {
        address.high = address.high >> 16 | uint64_t{0x2001} << 48;
      } else {
        address = {address.high & 0xffffffff00000000, 0};
      }
      const auto length =
          static_cast<uint32_t>(version == 4 ? 24 - random.next() % 3 * (random.next() % 5) : 64 - random.next() % 4 * 8);
      table_.set(address.first(length), length, static_cast<uint32_t>(random.next() % 64));
      addresses_.push_back(address);
    }
    for (size_t i = addresses_.size() - 1; i > 0; --i) std::swap(addresses_[i], addresses_[random.next() % (i + 1)]);
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      if (++next_ >= addresses_.size()) next_ = 0;
      const std::span<const uint32_t> places = groups_.places(table_.lookup(addresses_[next_]));
      const size_t place = places.size() == 1 ? 0 : balancer_.choose(0, next_, places.size(), [](size_t) { return PortLoad{}; });
      keep(places[place]);
    }
  }

 private:
  PrefixTable table_;
  NextHopGroups groups_;
  LoadBalancer balancer_{1, 0};
  std::vector<AddressBits> addresses_;
  uint32_t next_ = 0;
};

}  // namespace

void define_switching_cases(BenchList& list) {
  define<Buffer>(list, "shared buffer lossless, 2 ports", 2, 3);
  define<Buffer>(list, "shared buffer lossless, 64 ports", 64, 3);
  define<Buffer>(list, "shared buffer lossy, 64 ports", 64, 0);
  define<Pick>(list, "scheduler 2 DWRR", uint8_t{0b0000'1001});
  define<Pick>(list, "scheduler 1 strict 7 DWRR", uint8_t{0xff});
  define<Pick>(list, "scheduler 7 DWRR", uint8_t{0b1011'1111});
  for (const uint32_t entries : {1u, 1'000u, 10'000u}) {
    const std::string full = std::to_string(entries) + (entries == 1 ? " entry" : " entries");
    define<FdbLookup>(list, "FDB lookup, " + full, entries);
    define<FdbLearn>(list, "FDB learn, " + full, entries);
  }
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    const std::string of = "IPv" + std::to_string(version) + " route, ";
    define<Routes>(list, of + "1000 routes, 1 way", version, 1'000u, 1u);
    define<Routes>(list, of + "100000 routes, 64 ways", version, 100'000u, 64u);
  }
}

}  // namespace weir::bench
