// Turns of programs in virtual time: who goes on when, and who is no cause for others.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hosts/turns.h"

namespace weir::test {
namespace {

void ended(uint32_t, int) {}

// Threads of this process in the places of programs' threads.
struct TurnsBed {
  struct Wait {
    uint32_t causes = 0;
    Time until = kNever;
    TurnPlace::Deed deed = TurnPlace::kAnything;
    Time from = 0;
    TurnPlace::Deed deed_after = TurnPlace::kNothing;
  };
  struct Turn {
    uint32_t place;
    Time at;
    bool operator==(const Turn&) const = default;
  };

  TurnsBed() {
    const int descriptor = ::open(turns.path().c_str(), O_RDWR | O_CLOEXEC);
    void* const at = ::mmap(nullptr, sizeof(TurnMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    REQUIRE(at != MAP_FAILED);
    memory = static_cast<TurnMemory*>(at);
  }
  ~TurnsBed() {
    for (std::thread& one : threads) one.join();
    ::munmap(memory, sizeof *memory);
  }
  // A thread that waits so at the end of each of its turns, and ends in the one after the last of them.
  void add(uint32_t program, std::vector<Wait> waits, uint32_t nic = 0) {
    turns.set_process(program, ::getpid());  // one that lives
    const uint32_t place = turns.take_place(program, nic);
    threads.emplace_back([this, place, waits = std::move(waits)] {
      for (const Wait& wait : waits) {
        await(place);
        memory->place[place].causes = wait.causes;
        memory->place[place].until = wait.until;
        memory->place[place].deed = wait.deed;
        memory->place[place].from = wait.from;
        memory->place[place].deed_after = wait.deed_after;
        give(place, TurnPlace::waits);
      }
      await(place);
      give(place, TurnPlace::gone);
    });
  }
  // Only who has the turn writes it down.
  void await(uint32_t place) {
    std::atomic<uint32_t>& turn = memory->place[place].turn;
    while (turn.load() == 0) ::syscall(SYS_futex, &turn, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    turn = 0;
    taken.push_back({place, memory->now});
  }
  void give(uint32_t place, TurnPlace::State state) {
    memory->place[place].state = state;
    ::syscall(SYS_futex, &memory->place[place].state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  std::vector<Turn> run(Time now) {
    taken.clear();
    turns.run(now, ended);
    return taken;
  }

  Turns turns{"/tmp/weir-turns-" + std::to_string(::getpid()), 2, [] { return false; }};
  TurnMemory* memory = nullptr;
  std::vector<Turn> taken;
  std::vector<std::thread> threads;
};

using Taken = std::vector<TurnsBed::Turn>;

TEST_CASE("turns: threads begin in the order of their places, and go on when their times have come") {
  TurnsBed bed;
  bed.add(0, {{.until = 500}});
  bed.add(1, {{.until = 300}, {.until = 500}});
  CHECK(bed.run(0) == Taken{{0, 0}, {1, 0}});
  CHECK(bed.turns.next_deadline() == 300);
  CHECK(bed.run(299).empty());
  CHECK(bed.run(300) == Taken{{1, 300}});
  CHECK(bed.run(500) == Taken{{0, 500}, {1, 500}});
  CHECK(bed.turns.next_deadline() == kNever);
}

TEST_CASE("turns: what a thread does has others look, but not what it finds undone") {
  TurnsBed bed;
  constexpr uint32_t kOthers = TurnPlace::kOthers;
  bed.add(0, {{.causes = kOthers}, {.causes = kOthers, .deed = TurnPlace::kNothing}, {.until = 20, .deed = TurnPlace::kNothing}});
  bed.add(1, {{.causes = kOthers}, {.until = 20, .deed = TurnPlace::kNothing}});
  // The first looks again after the second has run, and the second after the first: both find nothing, which is no news.
  CHECK(bed.run(0) == Taken{{0, 0}, {1, 0}, {0, 0}});
  CHECK(bed.run(10).empty());
  bed.turns.tell(0, true);
  CHECK(bed.run(10).empty());
  // A third that has run is some.
  bed.add(2, {});
  CHECK(bed.run(11) == Taken{{2, 11}, {0, 11}, {1, 11}});
  CHECK(bed.run(20) == Taken{{0, 20}, {1, 20}});
}

TEST_CASE("turns: who computes goes on when that has passed, and what it did meanwhile counts then") {
  TurnsBed bed;
  constexpr uint32_t kOthers = TurnPlace::kOthers;
  constexpr auto kNothing = TurnPlace::kNothing;
  constexpr auto kAnything = TurnPlace::kAnything;
  bed.add(0, {{.causes = kOthers, .deed = kNothing, .from = 30, .deed_after = kAnything}, {.until = 60, .deed = kNothing}});
  bed.add(1, {{.causes = kOthers, .deed = kNothing}, {.until = 60, .deed = kNothing}});
  CHECK(bed.run(0) == Taken{{0, 0}, {1, 0}});
  CHECK(bed.turns.next_deadline() == 30);
  // A third has done something: who computes does not look yet, the other does.
  bed.add(2, {{.until = 60}});
  CHECK(bed.run(10) == Taken{{2, 10}, {1, 10}});
  CHECK(bed.turns.next_deadline() == 30);
  CHECK(bed.run(30) == Taken{{0, 30}});
  // Two compute for the same time, and nobody hears of either before.
  bed.add(2, {{.causes = kOthers, .deed = kNothing, .from = 45, .deed_after = kAnything}, {.until = 60, .deed = kNothing}});
  bed.add(2, {{.causes = kOthers, .deed = kNothing, .from = 45, .deed_after = kAnything}, {.until = 60, .deed = kNothing}});
  CHECK(bed.run(31) == Taken{{3, 31}, {4, 31}});
  CHECK(bed.turns.next_deadline() == 45);
  CHECK(bed.run(45) == Taken{{3, 45}, {4, 45}});
  CHECK(bed.run(60).size() >= 5);
}

TEST_CASE("turns: news of a NIC are for the process that has it, and for its threads that sleep when it rings") {
  TurnsBed bed;
  const TurnsBed::Wait last{.until = 20, .deed = TurnPlace::kNothing};
  bed.add(0, {{.causes = TurnPlace::kNews}, last});
  CHECK(bed.run(0) == Taken{{0, 0}});
  const uint32_t first = bed.turns.last_process();
  bed.add(1, {{.causes = TurnPlace::kNews, .deed = TurnPlace::kNothing}, last});
  bed.add(1, {{.causes = TurnPlace::kBell, .deed = TurnPlace::kNothing}, last});
  CHECK(bed.run(1) == Taken{{1, 1}, {2, 1}});
  const uint32_t second = bed.turns.last_process();
  REQUIRE(first != second);
  bed.turns.tell(second, false);
  CHECK(bed.run(5) == Taken{{1, 5}});
  CHECK(bed.memory->place[1].woken == TurnPlace::kNews);
  bed.turns.tell(first, true);
  CHECK(bed.run(6) == Taken{{0, 6}});
  bed.turns.tell(second, true);
  CHECK(bed.run(7) == Taken{{2, 7}});
  CHECK(bed.run(20) == Taken{{0, 20}, {1, 20}, {2, 20}});
}

TEST_CASE("turns: what a thread has written to shared memory has those of its host look that wait for that, and no others") {
  TurnsBed bed;
  const TurnsBed::Wait last{.until = 20, .deed = TurnPlace::kNothing};
  const TurnsBed::Wait looks{.causes = TurnPlace::kOthers | TurnPlace::kShared, .deed = TurnPlace::kNothing};
  for (const uint32_t nic : {0, 1}) bed.add(0, {looks, last}, nic);
  bed.add(0, {{.causes = TurnPlace::kOthers, .deed = TurnPlace::kNothing}, last}, 1);
  CHECK(bed.run(0) == Taken{{0, 0}, {1, 0}, {2, 0}});
  bed.add(1, {{.until = 10, .deed = TurnPlace::kWrites}, last}, 1);
  CHECK(bed.run(5) == Taken{{3, 5}, {1, 5}});
  CHECK(bed.memory->place[1].woken == TurnPlace::kShared);
  CHECK(bed.run(10) == Taken{{3, 10}});
  // Their ends are what all hear of.
  CHECK(bed.run(20) == Taken{{1, 20}, {2, 20}, {3, 20}, {0, 20}, {2, 20}, {0, 20}});
}

TEST_CASE("turns: what a thread has done for its own process has that process's other threads look, and no others") {
  TurnsBed bed;
  const TurnsBed::Wait last{.until = 20, .deed = TurnPlace::kNothing};
  constexpr uint32_t kAll = TurnPlace::kProcess | TurnPlace::kOthers | TurnPlace::kShared;
  for (const uint32_t program : {0, 1}) bed.add(program, {{.causes = kAll, .deed = TurnPlace::kNothing}, last});
  CHECK(bed.run(0) == Taken{{0, 0}, {1, 0}});
  bed.add(1, {{.until = 10, .deed = TurnPlace::kOwn}, last});
  CHECK(bed.run(5) == Taken{{2, 5}, {1, 5}});
  CHECK(bed.run(10) == Taken{{2, 10}});
  CHECK(bed.run(20) == Taken{{1, 20}, {2, 20}, {0, 20}, {0, 20}});
}

}  // namespace
}  // namespace weir::test
