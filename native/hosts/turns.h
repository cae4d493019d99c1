// Turns of programs in virtual time (endpoint/program_turns.h): gives them, one thread after another in the order of their
// places, until all wait.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "endpoint/program_turns.h"
#include "hosts/program_threads.h"
#include "hosts/stop_notice.h"

namespace weir {

class Turns {
 public:
  // Makes the memory at `path`, which is removed in the end. `nics`: so many hosts there are. `serve`: called when a thread has
  // given its turn back, as it may have asked for something; returns whether it has got it. Throws NativeError.
  Turns(std::string path, uint32_t nics, std::function<bool()> serve);
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  const std::string& path() const { return path_; }
  // A place for the first thread of a program.
  uint32_t take_place(uint32_t program, uint32_t nic);
  // The process in which a program's threads are; 0: it has ended, and they are gone.
  void set_process(uint32_t program, pid_t process) { processes_[program] = process; }
  pid_t process(uint32_t program) const { return processes_[program]; }
  // Whether it was ended because a thread of it never waited.
  bool overran(uint32_t program) const { return overran_[program]; }
  bool listens(uint32_t program, uint16_t port) const;
  // Virtual time that the program takes for a time of the processor that it uses; 0: none. Before its first turn.
  void set_compute(uint32_t program, double factor);
  // Number of the process of the thread that has had a turn last. Two processes may have one.
  uint32_t last_process() const { return last_process_; }
  // A NIC has something for that process; `rings`: also if it sleeps.
  void tell(uint32_t process, bool rings) {
    told_ = true;
    ++processes_seen_[process].news;
    if (rings) ++processes_seen_[process].bells;
  }
  // What any thread waits for may have come from outside.
  void tell_all() {
    told_ = true;
    ++all_changes_;
  }

  // Gives turns until all threads wait at `now`. `ended`: called when a process ends, with its status as of waitpid(). Gives none
  // any more once SIGINT or SIGTERM came while one took long: whoever handles them hears of them between runs alone. A program
  // that is ended for that is one that still ran.
  void run(Time now, const std::function<void(uint32_t program, int status)>& ended);
  // When the first of them wants to go on, after run(); kNever: none does by itself.
  Time next_deadline() const { return next_; }

 private:
  // Changes by processes are counted in so many, of which two may have one.
  static constexpr uint32_t kCountedProcesses = 4096;
  // What a place had seen when it was last looked at.
  struct Seen {
    uint64_t news = 0;
    uint64_t bells = 0;
    uint64_t writes = 0;
    uint64_t own = 0;
    uint64_t others = 0;
    bool operator==(const Seen&) const = default;
  };
  struct ProcessTurns {
    uint64_t news = 0;
    uint64_t bells = 0;
    uint64_t changes = 0;
  };

  Time find_deadline() const;
  bool may_go_on(uint32_t place);
  // What has happened since the place was looked at, of TurnPlace::Cause.
  uint32_t news_of(uint32_t place) const;
  static uint32_t number_of_process(const TurnPlace& place);
  uint64_t& writes_of(const TurnPlace& place);
  Seen seeing(const TurnPlace& place) const;
  void give(uint32_t place, const std::function<void(uint32_t, int)>& ended);
  void count(uint32_t place, uint32_t deed);
  bool await(TurnPlace& place, uint32_t program, const std::function<void(uint32_t, int)>& ended);
  void await_end(TurnPlace& place, pid_t first);
  bool help_if_starved(Starvation& starvation, pid_t first, uint32_t thread);

  std::string path_;
  std::function<bool()> serve_;
  TurnMemory* memory_ = nullptr;
  std::vector<Seen> seen_;
  std::vector<uint32_t> later_;  // deeds of places that count from a time on
  std::vector<pid_t> processes_;
  cpu_set_t processors_;  // those that the system gives us
  std::vector<bool> overran_;
  std::vector<uint64_t> writes_;  // to memory that processes share, by NIC
  std::vector<ProcessTurns> processes_seen_;
  uint64_t all_changes_ = 0;
  uint32_t last_process_ = 0;
  StopNotice stop_;
  bool stops_ = false;  // a signal asked to stop
  bool told_ = false;   // something has happened since the last run
  Time next_ = kNever;
};

}  // namespace weir
