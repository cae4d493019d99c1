// A thread's part in virtual time: what time it is, and how to wait. See endpoint/program_turns.h.
#pragma once

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "endpoint/program_turns.h"

namespace weir {

// Whether this process lives in virtual time.
bool in_virtual_time();
// Virtual ns since the beginning.
Time virtual_now();
// The same without what this thread has computed since its turn began: what the network is at.
Time time_of_network();
// What this thread has computed passes now, where it is so much, in virtual ns: it is about to do what others see.
void let_pass(Time least = 1);
// The same of what others see now and then: a little may pass later.
void let_pass_in_part();

// Gives the turn away until one of the `causes` or the time `until`, and returns then. `idle`: this thread has found nothing to
// do since its last wait, so that nobody need look at what it has done. Returns whether the program's timer has fired meanwhile,
// whose signal is handled then.
bool give_turn(uint32_t causes, Time until, bool idle);
// How often this thread has begun to give its turn away, and come back from that: odd while it has none.
uint32_t turns_given();
// The time, where who asks for it again and again without another wait waits for it to pass. `from`: the place in the program.
Time read_clock(const void* from);
// What has happened when it came back last, of TurnPlace::Cause.
uint32_t woken();
// How often the program has read clocks since.
uint32_t readings();
// The same until `done`, which is asked each time that something has changed, or until that time. Returns whether it is done.
// Ends early, with `interrupted` set, when a signal of the program's timer was handled meanwhile.
bool wait_until(uint32_t causes, Time until, const std::function<bool()>& done, bool* interrupted = nullptr);
// This thread has done so much.
void note_deed(TurnPlace::Deed what);
// It has written to memory that it shares with others of its host.
void note_written();
// It does now what others of its host may wait for.
void tell_others();
// It writes now to a descriptor, where any thread may wait for that.
void note_write();
// It reads now from a descriptor, where a thread may wait for room.
void note_read();
// A call on a descriptor that does not block has found nothing, or no room. Who asks for ever waits for others there.
void ask_in_vain(int descriptor);
// It begins, or ends, to wait for room there.
void want_room(bool whether);
// It begins, or ends, to wait for a lock that another thread of the process holds, which may have given its turn away with it.
void contend(bool whether);
// How often tell_others() was called in this process.
uint32_t told();

// Memory that the process shares with others (preload_shares.cc): what was mapped or attached; whether there is any, whether what
// it writes there is known, and whether it has written since the last call.
void note_mapping(void* at, size_t length, int protection, int flags, int descriptor);
void note_attachment(void* at, int number);
bool shares_memory();
bool knows_writes();
bool has_written();
// The process is a child, whose memory nobody watches yet.
void forget_watch();

// This thread is of a library that serves the process: nobody waits for what it does, but for what it notes. It sleeps until
// the NIC rings, or somebody calls wake_server() with its word; returns whether the word has changed.
void begin_to_serve();
bool is_server();
bool serve_until(const std::atomic<uint32_t>& word, uint32_t value, Time until);
bool wake_server(const void* word);

// A place for a thread of this process that is about to begin, and what it does first and last.
uint32_t take_place();
void begin_turns(uint32_t place);
void end_turns();
// Nobody asks whether this thread has ended.
void detach_turns();
// Begins a thread that nobody joins, which calls a function in its turns. `stack`: its bytes; 0: as many as any has.
void begin_detached(void (*function)(sigval), sigval value, size_t stack);
// This process is about to end.
void end_process();
// Whether the thread that had the place has ended, as far as turns are concerned.
bool has_ended(uint32_t place);
// Nobody asks any more whether it has.
void free_place(uint32_t place);
// Whether a child of this process that is meant by `process`, as of waitpid(2), has come to its end, which is told once: then the
// kernel knows it, or will in a moment.
bool take_ended_child(pid_t process);

// Threads of a process of the program have their turns at once; 0 and less: those of all.
void hurry(pid_t process);

// From now on this thread is found when it waits for memory to change.
void watch_spins();
// It ends, and nobody looks any more.
void end_watch();
// Whether the fault of this ucontext_t is one that was put where a thread waited so: then it has waited, if it was to, and goes
// on.
bool pass_plant(void* context);
// Nobody of the process is, while it becomes another program.
void pause_watch(bool whether);

// Whether this thread may read the time stamp counter, which is the machine's then.
void let_read_ticks(bool whether);

// Notes the port at which the process listens.
void note_port(uint16_t port);

// When the first of the program's timers that signal is due; kNever: none. Who gives its turn away has them signalled then.
Time next_signal();
// Raises the signals that are due; returns whether there were any.
bool raise_signals();
// When the first timer with a descriptor is due.
Time next_timer_file();
// Makes those readable that are due.
void fire_timer_files();
// The process is a child, which has no timers that signal.
void forget_signals();

// What a clock says at 0 of virtual time.
inline Time base_of(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ? kVirtualEpoch : kVirtualBoot;
}
inline Time time_of(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }
inline timespec as_timespec(Time t) { return {static_cast<time_t>(t / kSecond), static_cast<long>(t % kSecond)}; }

// The place is that of a child process, which begins as another program.
void add_child(uint32_t place, pid_t process);
// The number of the child that was made last: it may be ended before it has had a turn.
void name_child(pid_t process);

// Ends the process, after a word about what is not there in virtual time.
[[noreturn]] void refuse(const char* what);

}  // namespace weir
