// The memory that programs in virtual time share with who carries time on (hosts/turns.h): what time it is, and whose turn.
//
// One thread of all programs runs at a time. It goes on until it has to wait: for a time, for the NIC, or for another thread.
// Then it says so in its place and gives the turn back; and when all wait, time moves. Each word is written by one side, but for
// a place's state: by the thread that has the turn, and by who gives it when it has none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/types.h"

namespace weir {

// Variables of a program's environment: path of the memory, the place of its first thread, the number of the program, the name of
// its host, and the addresses of all hosts by the numbers of their NICs, as "name=address ...". Then the folder of the run, the
// folder of its host's devices, which is of that name in a folder of the host's name there, and what a process has that was moved
// to another host.
inline constexpr const char* kTurnsVariable = "WEIR_VIRTUAL_TIME";
inline constexpr const char* kPlaceVariable = "WEIR_VIRTUAL_PLACE";
inline constexpr const char* kProgramVariable = "WEIR_VIRTUAL_PROGRAM";
inline constexpr const char* kHostVariable = "WEIR_HOST";
inline constexpr const char* kNamesVariable = "WEIR_VIRTUAL_NAMES";
inline constexpr const char* kFolderVariable = "WEIR_VIRTUAL_FOLDER";
inline constexpr const char* kFilesVariable = "SYSFS_PATH";
inline constexpr const char* kFilesFolder = "sys";
inline constexpr const char* kMovedVariable = "WEIR_VIRTUAL_MOVED";

inline constexpr uint32_t kTurnsLayout = 4;  // changes with all that is here
inline constexpr uint32_t kTurnPlaces = 1024;
inline constexpr uint32_t kTurnPrograms = 256;
inline constexpr uint32_t kTurnPorts = 16;

// What programs see as 0 of virtual time: a machine that has been up for an hour, on 2020-01-01.
inline constexpr Time kVirtualBoot = 3'600 * kSecond;
inline constexpr Time kVirtualEpoch = Time{1'577'836'800} * kSecond;
// Ticks of the time stamp counter in a second.
inline constexpr uint64_t kVirtualTicks = 2'000'000'000;

struct TurnPlace {
  // `ends`: the last of its process, which is about to end.
  enum State : uint32_t { free, begins, runs, waits, gone, ends };
  // What ends a wait, besides its time.
  enum Cause : uint32_t {
    kNews = 1,     // the NIC has something for the process
    kProcess = 2,  // another thread of the process has done something
    kOthers = 4,   // a thread of any program has done what others may wait for
    kBell = 8,     // the NIC has something for the process, which sleeps
    kShared = 16,  // a thread of a program of the host has written to memory that they may share
    kTime = 32,    // the time has come
  };
  // The most that a thread has done since it had the turn, for those who wait for others.
  enum Deed : uint32_t {
    kNothing,
    kOwn,     // something for the threads of its process alone
    kWrites,  // it has written to memory that it may share with others of its host
    kAnything,
  };

  std::atomic<uint32_t> state;
  std::atomic<uint32_t> turn;  // 1: it has the turn
  std::atomic<uint32_t> program;
  std::atomic<uint32_t> nic;  // its host's
  std::atomic<uint32_t> causes;
  std::atomic<uint32_t> deed;
  std::atomic<uint32_t> deed_after;  // what counts from the time `from` on, likewise
  std::atomic<uint32_t> woken;       // what has happened since it gave its turn back, of Cause
  // Numbers of it and of its process in the program's namespace; 0: it has not begun.
  std::atomic<uint32_t> thread;
  std::atomic<uint32_t> process;
  std::atomic<int64_t> until;  // virtual ns; kNever: no time ends it
  std::atomic<int64_t> from;   // virtual ns: it goes on then at the earliest, as it computes until then
};

struct TurnMemory {
  uint32_t layout;
  std::atomic<int64_t> now;         // virtual ns
  std::atomic<uint32_t> places;     // so many have been taken, some of them again
  std::atomic<uint32_t> want_room;  // threads that wait for room in a pipe or socket
  // Ports at which each program listens; 0: none.
  std::atomic<uint16_t> ports[kTurnPrograms][kTurnPorts];
  // Virtual time that each program takes for a time of the processor that it uses; 0: none.
  std::atomic<double> compute[kTurnPrograms];
  TurnPlace place[kTurnPlaces];
};

// Takes a place for a thread of a program that is about to begin: one that a thread has left, or else the next; kTurnPlaces:
// there is none. Who has the turn may do so, or who gives it while nobody has it.
inline uint32_t take_turn_place(TurnMemory& memory, uint32_t program, uint32_t nic) {
  const uint32_t taken = std::min(memory.places.load(std::memory_order_relaxed), kTurnPlaces);
  uint32_t number = 0;
  while (number < taken && memory.place[number].state.load(std::memory_order_acquire) != TurnPlace::free) ++number;
  if (number == kTurnPlaces) return number;
  TurnPlace& place = memory.place[number];
  place.program.store(program, std::memory_order_relaxed);
  place.nic.store(nic, std::memory_order_relaxed);
  place.thread.store(0, std::memory_order_relaxed);
  place.process.store(0, std::memory_order_relaxed);
  place.from.store(0, std::memory_order_relaxed);
  place.deed_after.store(TurnPlace::kNothing, std::memory_order_relaxed);
  place.state.store(TurnPlace::begins, std::memory_order_release);
  if (number == taken) memory.places.store(taken + 1, std::memory_order_relaxed);
  return number;
}

}  // namespace weir
