// Uses of a struct's description: its ranges, the places of its fields in a record, and the messages about wrong values.
#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/describe.h"
#include "base/layout.h"
#include "base/types.h"

using namespace weir;

namespace {

enum class Colour : uint8_t { red, green };
constexpr auto words_of(Colour) { return std::array{"red", "green"}; }

struct Inner {
  double share = 0.5;
};
void describe(auto& v, Of<Inner> auto& p) {
  v.type("Inner", "A part.");
  v("share", p.share, field::above(field::fraction("Of all.")));
}

struct Other {
  double share = 2;
};
using Either = std::variant<std::monostate, Inner, Other>;
constexpr auto words_of(const Either&) { return std::array{"none", "inner", "other"}; }

struct Outer {
  Inner inner;
  Time delay = 0;
  std::array<uint8_t, 2> priorities{};
  std::vector<Inner> more;
  std::optional<Inner> last;
  Either either;
  Colour colour = Colour::green;
  int least = 0;
  int most = 0;
};
void describe(auto& v, Of<Outer> auto& p) {
  v.type("Outer", "All.");
  v.base(p.inner);
  v("delay", p.delay, field::ns("One way."));
  v("priorities", p.priorities, field::priority("Each."));
  v("more", p.more, field::any("Parts."));
  v("last", p.last, field::optional(field::any("A part.")));
  v("either", p.either, field::any("A part, or another."));
  v("colour", p.colour, field::any("Its."));
  v.rule(p.least <= p.most, "least must not be above most");
}

struct Entry {
  uint8_t kind = 0;
  uint64_t id = 0;
  uint16_t port = 0;
  bool last = false;
  uint32_t bytes = 0;
};
void describe(auto& v, Of<Entry> auto& p) {
  v.type("Entry", "A record.");
  v("kind", p.kind, field::any(""));
  v("id", p.id, field::any(""));
  v("port", p.port, field::any(""));
  v("last", p.last, field::any(""));
  v("bytes", p.bytes, field::any(""));
}

// Empty: it passes.
std::string said(const Outer& outer, const char* path = nullptr) {
  try {
    check(outer, path);
  } catch (const NativeError& e) {
    CHECK(e.code == "INVALID_CONFIG");
    return e.what();
  }
  return "";
}

Outer with(const auto& change) {
  Outer outer;
  change(outer);
  return outer;
}

}  // namespace

TEST_CASE("describe: what is out of its range is refused, by its path, its value and its range") {
  CHECK(said({}) == "");
  CHECK(said(with([](Outer& o) { o.inner.share = 0; })) == "Outer.share: 0 is out of its range: above 0, at most 1");
  CHECK(said(with([](Outer& o) { o.delay = -1; })) == "Outer.delay: -1 is out of its range: 0 or more");
  CHECK(said(with([](Outer& o) { o.priorities[1] = 8; }), "port") == "port.priorities.1: 8 is out of its range: 0 to 7");
  CHECK(said(with([](Outer& o) { o.more = {{}, {2}}; })) == "Outer.more.1.share: 2 is out of its range: above 0, at most 1");
  CHECK(said(with([](Outer& o) { o.last = Inner{-1}; })) == "Outer.last.share: -1 is out of its range: above 0, at most 1");
  CHECK(said(with([](Outer& o) { o.least = 1; })) == "Outer: least must not be above most");
}

TEST_CASE("describe: of one of several structs the one that it is is looked at, by its word") {
  CHECK(said(with([](Outer& o) { o.either = Inner{1}; })) == "");
  CHECK(said(with([](Outer& o) { o.either = Inner{2}; })) == "Outer.inner.share: 2 is out of its range: above 0, at most 1");
  CHECK(said(with([](Outer& o) { o.either = Other{}; })) == "");
}

TEST_CASE("describe: what is no number is within no range") {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  CHECK(said(with([&](Outer& o) { o.inner.share = nothing; })) != "");
  CHECK_FALSE(field::any("").holds(nothing));
  CHECK(field::any("").range() == "");
  CHECK(field::below(field::fraction("")).range() == "0 or more, below 1");
  CHECK_FALSE(field::below(field::fraction("")).holds(1));
}

TEST_CASE("describe: a path names fields, places, and arguments") {
  const Path worker{.name = "worker"};
  const Path ports{&worker, "ports"};
  CHECK(Path{&ports, nullptr, 3}.text() == "worker.ports.3");
  CHECK(Path{.name = "inject(device, port, bytes)", .place = 0, .argument = true}.text() == "inject(device)");
  const Path bytes{.name = "inject(device, port, bytes)", .place = 2, .argument = true};
  CHECK(Path{&bytes, "length"}.text() == "inject(bytes).length");
}

TEST_CASE("describe: a record has its fields at multiples of their lengths, and comes back as it was") {
  CHECK(words_of_record<Entry>() == 3);
  std::array<uint64_t, 3> words{};
  const Entry entry{.kind = 7, .id = 0x0123456789abcdef, .port = 0xfffe, .last = true, .bytes = 0x80000001};
  RecordAt out(words.data());
  describe(out, entry);
  CHECK(words[0] == 7);
  CHECK(words[1] == entry.id);
  CHECK(words[2] == (0xfffeull | 1ull << 16 | 0x80000001ull << 32));
  Entry back;
  RecordAt in(words.data());
  describe(in, back);
  CHECK((back.kind == 7 && back.id == entry.id && back.port == entry.port && back.last && back.bytes == entry.bytes));
  // Bytes of others' making.
  words[2] |= 0xff'0000;
  RecordAt again(words.data());
  describe(again, back);
  CHECK(back.last);
}
