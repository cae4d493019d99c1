// Described structs as bytes for another process, and what a reader makes of bytes that are not those.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "base/struct_bytes.h"
#include "engine/lent_path.h"
#include "test/refusal.h"

namespace weir::test {
namespace {

IpAddress address(uint8_t version, uint8_t first) {
  IpAddress out{version, {}};
  for (uint8_t& byte : out.bytes) byte = first++;
  return out;
}

// One that differs from a default in every kind of field that there is.
LentNicConfig drawn_config() {
  LentNicConfig config;
  config.packet_bytes = 4'352;
  NicDeviceConfig& nic = config.nic;
  nic.name = "nic of h1";
  nic.port.name = "s1";
  nic.port.interface = "eth7";
  nic.port.namespace_path = "/run/netns/a";
  nic.port.receive_by = Backend::af_xdp;
  nic.port.rate = 25'000'000'000;
  nic.port.roce_only = true;
  nic.port.arp_address = 0x0a000001;
  nic.port.impairment.emplace();
  nic.port.impairment->parameters.loss = 0.25;
  nic.port.impairment->component = UINT64_MAX;
  nic.stack_port.emplace();
  nic.stack_port->interface = "";
  nic.neighbours.emplace();
  nic.neighbours->addresses = {{address(4, 10), true}, {address(6, 0xf0), false}};
  nic.neighbours->followed = {{address(6, 1), 1}};
  NicParameters& p = nic.parameters;
  p.rate = nic.port.rate;
  p.mac = 0x025745000001;
  p.grouping.selection = FlowSelection::five_tuple;
  p.grouping.rpgs[0].emplace();
  p.grouping.rpgs[7].emplace();
  p.scheduler.weights = {1, 2, 3, 4, 5, 6, 7, 8};
  p.priority_map.trust = PriorityMap::Trust::port;
  p.priority_map.dscp[63] = 5;
  p.pause_storm.stop = -7;
  p.addresses = {address(4, 192), address(6, 0x20)};
  p.vlan = 100;
  nic.arrears = kMillisecond;
  nic.queue_pairs.resize(3);
  nic.queue_pairs[1].path.destination_mac = 0x020000000009;
  nic.queue_pairs[2].transport.path_mtu = 512;
  nic.queue_pair_settings.resize(3);
  nic.queue_pair_settings[0].name = "first";
  nic.queue_pair_settings[2].name = std::string("with\0zero", 9);
  nic.lab = true;
  return config;
}

std::vector<uint8_t> written(const auto& value) {
  ByteWriter writer;
  writer.put(value);
  return writer.bytes();
}

// The bytes lie in memory that ends where they do, so that a look past their end shows.
template <class T>
T read(const std::vector<uint8_t>& bytes, bool* finished = nullptr) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  ByteReader reader({exact.get(), bytes.size()});
  T out;
  reader.get(out);
  if (finished != nullptr) *finished = reader.finished();
  return out;
}

template <class T>
std::string refused(const std::vector<uint8_t>& bytes) {
  return refusal([&] { read<T>(bytes); });
}

enum class Colour : uint8_t { red, green };
constexpr auto words_of(Colour) { return std::array{"red", "green"}; }

struct Part {
  uint16_t number = 0;
};
void describe(auto& v, Of<Part> auto& part) {
  v.type("Part", "A part.");
  v("number", part.number, field::any("Its."));
}
using Either = std::variant<std::monostate, Part>;
constexpr auto words_of(const Either&) { return std::array{"none", "part"}; }

struct Small {
  Colour colour = Colour::green;
  bool set = false;
  Either either;
  std::array<uint8_t, 2> pair{};
};
void describe(auto& v, Of<Small> auto& small) {
  v.type("Small", "One of each kind that has values which mean nothing.");
  v("colour", small.colour, field::any("Its."));
  v("set", small.set, field::any("Or not."));
  v("either", small.either, field::any("A part, or none."));
  v("pair", small.pair, field::any("Of bytes."));
}

struct Lists {
  std::vector<uint64_t> numbers;
  std::vector<std::string> texts;
  std::string text;
};
void describe(auto& v, Of<Lists> auto& lists) {
  v.type("Lists", "What says its length.");
  v("numbers", lists.numbers, field::any("Some."));
  v("texts", lists.texts, field::any("Some."));
  v("text", lists.text, field::any("One."));
}

TEST_CASE("struct bytes: a NIC's configuration comes back as it was") {
  const LentNicConfig config = drawn_config();
  const std::vector<uint8_t> bytes = written(config);
  CHECK(bytes != written(LentNicConfig{}));
  bool finished = false;
  const auto back = read<LentNicConfig>(bytes, &finished);
  CHECK(finished);
  CHECK(written(back) == bytes);
  CHECK(back.packet_bytes == 4'352);
  CHECK(back.nic.name == "nic of h1");
  CHECK(back.nic.port.interface == "eth7");
  CHECK(back.nic.port.receive_by == Backend::af_xdp);
  CHECK(back.nic.port.impairment->component == UINT64_MAX);
  CHECK(back.nic.port.impairment->parameters.loss == 0.25);
  CHECK(back.nic.stack_port.has_value());
  CHECK(back.nic.neighbours->addresses[1].address == address(6, 0xf0));
  CHECK(back.nic.parameters.grouping.rpgs[7].has_value());
  CHECK_FALSE(back.nic.parameters.grouping.rpgs[6].has_value());
  CHECK(back.nic.parameters.scheduler.weights[7] == 8);
  CHECK(back.nic.parameters.priority_map.dscp[63] == 5);
  CHECK(back.nic.parameters.pause_storm.stop == -7);
  CHECK(back.nic.parameters.addresses == config.nic.parameters.addresses);
  CHECK(back.nic.queue_pairs[2].transport.path_mtu == 512);
  CHECK(back.nic.queue_pair_settings[2].name == config.nic.queue_pair_settings[2].name);
  CHECK(back.nic.lab);
}

TEST_CASE("struct bytes: what was there before is gone, be it longer, present, or of another kind") {
  const std::vector<uint8_t> bytes = written(LentNicConfig{});
  LentNicConfig into = drawn_config();
  into.nic.parameters.congestion = SwiftParameters{};
  ByteReader(bytes).get(into);
  CHECK(written(into) == bytes);
  CHECK(into.nic.parameters.addresses.empty());
  CHECK_FALSE(into.nic.neighbours.has_value());
}

TEST_CASE("struct bytes: each congestion control comes back with its parameters") {
  const auto goes_through = [](const CongestionParameters& congestion) {
    LentNicConfig config = drawn_config();
    config.nic.parameters.congestion = congestion;
    const std::vector<uint8_t> bytes = written(config);
    const auto back = read<LentNicConfig>(bytes);
    CHECK(back.nic.parameters.congestion.index() == congestion.index());
    CHECK(written(back) == bytes);
    return back.nic.parameters.congestion;
  };
  goes_through(CongestionControl::Parameters{});
  CHECK(std::get<DcqcnParameters>(goes_through(DcqcnParameters{.rpg_ai_rate = 77})).rpg_ai_rate == 77);
  goes_through(QcnParameters{});
  goes_through(DctcpParameters{});
  goes_through(TimelyParameters{});
  CHECK(std::get<SwiftParameters>(goes_through(SwiftParameters{.max_cwnd = 0.125})).max_cwnd == 0.125);
  CHECK(std::get<HpccParameters>(goes_through(HpccParameters{.additive_increase = -1})).additive_increase == -1);
  goes_through(NsccParameters{});
  const LibraryParameters library{"/lib/x.so", {"a", "", "a longer name than strings have room for"}, {1, -0.5, 1e300}, 3};
  const auto back = std::get<LibraryParameters>(goes_through(library));
  CHECK(back.file == library.file);
  CHECK(back.names == library.names);
  CHECK(back.values == library.values);
}

TEST_CASE("struct bytes: whatever is cut off is missed") {
  LentNicConfig config = drawn_config();
  config.nic.parameters.congestion = LibraryParameters{"/lib/x.so", {"a", "b"}, {1, 2}, 3};
  std::vector<uint8_t> bytes = written(config);
  while (!bytes.empty()) {
    bytes.pop_back();
    CAPTURE(bytes.size());
    REQUIRE(refused<LentNicConfig>(bytes) == "MALFORMED");
  }
}

TEST_CASE("struct bytes: of spoilt bytes comes a value that can be written, or they are refused") {
  const std::vector<uint8_t> good = written(drawn_config());
  Random random(11, 0);
  uint32_t values = 0;
  uint32_t malformed = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (uint64_t changes = 1 + random.next() % 4; changes > 0; --changes) {
      const uint64_t kind = random.next() % 4;
      uint8_t& byte = bytes[random.next() % bytes.size()];
      byte = kind == 0 ? uint8_t{0xff} : kind == 1 ? uint8_t{0} : static_cast<uint8_t>(random.next());
    }
    if (random.next() % 4 == 0) bytes.resize(bytes.size() - random.next() % 64);
    try {
      const auto value = read<LentNicConfig>(bytes);
      ++values;
      REQUIRE(written(value).size() <= bytes.size());
    } catch (const NativeError& e) {
      REQUIRE(e.code == "MALFORMED");
      ++malformed;
    }
  }
  CHECK(values > 1'000);
  CHECK(malformed > 1'000);
}

TEST_CASE("struct bytes: random bytes are refused") {
  Random random(12, 0);
  for (uint32_t i = 0; i < 2'000; ++i) {
    std::vector<uint8_t> bytes(random.next() % 3'000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    REQUIRE(refused<LentNicConfig>(bytes) == "MALFORMED");
  }
}

TEST_CASE("struct bytes: a number that stands for no word, no alternative, or another length is refused") {
  // A byte each for colour and bool, then the alternative, its number, and the pair behind its length.
  const Small small{Colour::red, true, Part{0x0102}, {7, 8}};
  const std::vector<uint8_t> good = written(small);
  REQUIRE(good.size() == 14);
  CHECK(refused<Small>(good) == "");
  const auto with = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = good;
    bytes[at] = value;
    return bytes;
  };
  CHECK(refused<Small>(with(0, 1)) == "");
  CHECK(refused<Small>(with(0, 2)) == "MALFORMED");
  CHECK(refused<Small>(with(0, 255)) == "MALFORMED");
  // Any other than 0 is true, and is written as 1.
  CHECK(written(read<Small>(with(1, 255))) == good);
  CHECK(refused<Small>(with(2, 2)) == "MALFORMED");
  CHECK(refused<Small>(with(5, 0x80)) == "MALFORMED");
  CHECK(refused<Small>(with(8, 1)) == "MALFORMED");
  CHECK(refused<Small>(with(8, 3)) == "MALFORMED");
}

TEST_CASE("struct bytes: a count that the bytes are not there for takes no memory") {
  const std::vector<uint8_t> good = written(Lists{{1, 2, 3}, {"a", "b"}, "text"});
  REQUIRE(good.size() == 4 + 24 + 4 + 10 + 8);
  for (const size_t at : {0, 28, 32, 42}) {
    for (const uint32_t count : {UINT32_MAX, 1u << 30, 1u << 20}) {
      CAPTURE(at);
      std::vector<uint8_t> bytes = good;
      std::memcpy(&bytes[at], &count, sizeof count);
      Lists lists;
      CHECK(refusal([&] { ByteReader(bytes).get(lists); }) == "MALFORMED");
      CHECK(lists.numbers.capacity() <= 2 * bytes.size());
      CHECK(lists.texts.capacity() <= 2 * bytes.size());
      CHECK(lists.text.capacity() <= 2 * bytes.size());
    }
  }
}

}  // namespace
}  // namespace weir::test
