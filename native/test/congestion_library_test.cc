// A congestion control of a library: what it is told, what its answers do, and what is refused.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "base/native_error.h"
#include "congestion/library_sender.h"

namespace weir {
namespace {

constexpr Rate kLine = 40'000'000'000;

LibraryParameters told(std::vector<std::string> names = {}, std::vector<double> values = {}, double scale = 1) {
  return {.file = WEIR_TOLD_LIBRARY, .names = std::move(names), .values = std::move(values), .scale = scale};
}

template <class T>
T& symbol(const char* name, const char* file = WEIR_TOLD_LIBRARY) {
  void* const library = ::dlopen(file, RTLD_NOW);
  REQUIRE(library != nullptr);
  return *static_cast<T*>(::dlsym(library, name));
}
const weir_cc_event& last() { return symbol<weir_cc_event>("told"); }

// Answers by `parameters`, which it keeps.
struct Flow {
  explicit Flow(LibraryParameters parameters_) : parameters(std::move(parameters_)) {
    sender.configure(parameters, {.line_rate = kLine, .window = 1'000, .refused = &refused});
    sender.start(1'000, kLine / 2);
  }

  LibraryParameters parameters;
  uint64_t refused = 0;
  LibrarySender sender;
};

TEST_CASE("library: a flow that is told nothing is at line rate") {
  Flow flow(told());
  CHECK_FALSE(flow.sender.limited());
  CHECK(flow.sender.window() == 1'000);
  CHECK(flow.sender.next_deadline() == kNever);
  const auto& terms = symbol<weir_cc_flow>("terms_told");
  CHECK(terms.now == 1'000);
  CHECK(terms.line_rate == kLine);
  CHECK(terms.initial_rate == kLine / 2);
  CHECK(terms.window == 1'000);
}

TEST_CASE("library: events say what happened, and answers hold") {
  Flow flow(told({"rate", "window"}, {1e9, 32}));
  flow.sender.on_sent(2'000, 1'090);
  CHECK(last().type == WEIR_CC_SENT);
  CHECK(last().now == 2'000);
  CHECK(last().bytes == 1'090);
  CHECK(flow.sender.limited());
  CHECK(flow.sender.rate() == 1'000'000'000);
  CHECK(flow.sender.window() == 32);

  flow.sender.on_ack({.packets = 3, .marked = true, .in_flight = 7, .wanted = 9, .arrived = 9'500, .sent = 2'000});
  CHECK(last().type == WEIR_CC_ACK);
  CHECK(last().now == 9'500);
  CHECK(last().rtt == 7'500);
  CHECK(last().packets == 3);
  CHECK(last().marked == 1);
  CHECK(last().in_flight == 7);
  CHECK(last().bytes == 0);

  flow.sender.on_ack({.packets = 1, .in_flight = 6, .arrived = 9'600});
  CHECK(last().rtt == 0);
  flow.sender.on_loss({.in_flight = 5, .timeout = true, .at = 9'700});
  CHECK(last().type == WEIR_CC_LOSS);
  CHECK(last().timeout == 1);
  CHECK(last().in_flight == 5);
  flow.sender.on_trimmed({.packets = 2, .in_flight = 4, .at = 9'750});
  CHECK(last().type == WEIR_CC_NACK);
  CHECK(last().packets == 2);
  CHECK(last().in_flight == 4);
  CHECK(last().now == 9'750);
  flow.sender.on_cnp(9'800);
  CHECK(last().type == WEIR_CC_CNP);
  CHECK(symbol<unsigned>("events_told") == 6);
  CHECK(flow.refused == 0);

  // Anew: without what it knew.
  flow.sender.start(10'000, kLine);
  CHECK_FALSE(flow.sender.limited());
  flow.sender.on_cnp(10'100);
  CHECK(symbol<unsigned>("events_told") == 1);
}

TEST_CASE("library: one of version 1 is told of trimmed packets as of loss") {
  LibraryParameters parameters = told();
  parameters.file = WEIR_TOLD_LIBRARY_BEFORE;
  Flow flow(parameters);
  flow.sender.on_trimmed({.packets = 2, .in_flight = 4, .at = 3'000});
  const auto& event = symbol<weir_cc_event>("told", WEIR_TOLD_LIBRARY_BEFORE);
  CHECK(event.type == WEIR_CC_LOSS);
  CHECK(event.in_flight == 4);
  CHECK(event.timeout == 0);
  CHECK(event.now == 3'000);
}

TEST_CASE("library: timers come at their time, once, and before what happens later") {
  Flow flow(told({"timer"}, {5'000}));
  flow.sender.on_cnp(2'000);
  CHECK(flow.sender.next_deadline() == 7'000);
  flow.sender.advance(6'999);
  CHECK(last().type == WEIR_CC_CNP);
  flow.sender.advance(8'000);
  CHECK(last().type == WEIR_CC_TIMER);
  CHECK(last().now == 7'000);
  CHECK(flow.sender.next_deadline() == kNever);

  // One that is near is put off once, not by each event.
  Flow near(told({"timer"}, {1}));
  near.sender.on_cnp(2'000);
  CHECK(near.sender.next_deadline() == 2'000 + WEIR_CC_LEAST_TIMER);
}

TEST_CASE("library: at a time scale it lives in the scenario's time") {
  Flow flow(told({"rate", "timer"}, {1e9, 5'000}, 100));
  CHECK(symbol<weir_cc_flow>("terms_told").line_rate == doctest::Approx(100.0 * kLine));
  flow.sender.on_ack({.packets = 1, .arrived = 300'000, .sent = 100'000});
  CHECK(last().now == 3'000);
  CHECK(last().rtt == 2'000);
  CHECK(flow.sender.rate() == 10'000'000);
  CHECK(flow.sender.next_deadline() == 800'000);
  flow.sender.advance(800'000);
  CHECK(last().now == 8'000);
}

TEST_CASE("library: answers that are none change nothing, and are counted") {
  const auto answer = [](const char* name, double value) {
    Flow flow(told({name}, {value}));
    flow.sender.on_cnp(2'000);
    CHECK_FALSE(flow.sender.limited());
    CHECK(flow.sender.window() == 1'000);
    CHECK(flow.sender.next_deadline() == kNever);
    return flow.refused;
  };
  CHECK(answer("rate", -2) == 1);    // NaN
  CHECK(answer("rate", -0.5) == 1);  // below 0
  CHECK(answer("window", -2) == 1);
  CHECK(answer("timer", -1'000) == 1);
  // More than there is is all there is.
  CHECK(answer("rate", 1e300) == 0);
  CHECK(answer("window", 1e300) == 0);
}

TEST_CASE("library: what is none is refused, and says why") {
  const auto refusal = [](const LibraryParameters& parameters) -> std::string {
    LibrarySender sender;
    try {
      sender.configure(parameters, {.line_rate = kLine});
    } catch (const NativeError& error) {
      return std::string(error.what()) + " | " + error.hint;
    }
    return "";
  };
  CHECK(refusal({.file = "/nowhere/it.so"}).find("/nowhere/it.so") != std::string::npos);
  CHECK(refusal({.file = "libm.so.6"}).find("no function weir_cc_algorithm") != std::string::npos);
  CHECK(refusal(told({"speed"}, {1})).find("has no parameter speed | parameters: rate, window, timer, crash") !=
        std::string::npos);
  CHECK(refusal(told({"crash"}, {5})).find("crash of told of") != std::string::npos);
  CHECK(refusal(told({"crash"}, {5})).find("from 0") != std::string::npos);
  CHECK(refusal(told({"crash"}, {NAN})) != "");
  CHECK(refusal(told({"rate"})).find("each name needs a value") != std::string::npos);
}

}  // namespace
}  // namespace weir
