// Events on their way to a program, which reads them from a pipe: libibverbs takes one of them with each read, and the program
// waits for the descriptor, duplicates it and sets its flags as it likes. A pipe is full some day, and a NIC is not: what it has
// no room for waits here. Nothing in it waits for the program.
//
// All with the NIC's lock, of which each pipe has one writer.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <vector>

namespace weir {

// `Event` has the fields that the program reads, the first of which says what it is about, and operator==.
template <class Event>
class EventPipe {
 public:
  explicit EventPipe(int descriptor) : descriptor_(descriptor) {}

  // Whether something waits for room.
  bool waits() const { return !waiting_.empty(); }
  void tell(const Event& event) {
    if (!waits() && put(event)) return;
    if (waits() && waiting_.back().event == event) {
      ++waiting_.back().count;
    } else {
      waiting_.push_back({event, 1});
    }
  }
  // The program has made room, perhaps.
  void refill() {
    while (waits() && put(waiting_.front().event)) {
      if (--waiting_.front().count == 0) waiting_.pop_front();
    }
  }
  // Takes those about `element` back that nobody has read; returns how many.
  uint32_t withdraw(uint64_t element) {
    uint32_t count = 0;
    std::deque<Waiting> kept;
    const auto look_at = [&](const Waiting& one) {
      if (one.event.element == element) {
        count += one.count;
      } else {
        kept.push_back(one);
      }
    };
    for (const Event& event : take_all()) look_at({event, 1});
    for (const Waiting& one : waiting_) look_at(one);
    waiting_.swap(kept);
    refill();
    return count;
  }

 private:
  struct Waiting {
    Event event;
    uint32_t count;
  };

  // False: there is no room. A descriptor that the program has closed takes everything.
  bool put(const Event& event) const {
    pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    int ready;
    do {
      ready = ::poll(&room, 1, 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) return false;
    if ((room.revents & POLLOUT) != 0) (void)!::write(descriptor_, &event, sizeof event);
    return true;
  }
  // Reads by a description of its own, for another thread may read meanwhile, and the program's may wait for the next event.
  std::vector<Event> take_all() const {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor_);
    const int own = ::open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    std::vector<Event> all;
    Event some[64];
    for (int left; ::ioctl(descriptor_, FIONREAD, &left) == 0 && left > 0;) {
      const ssize_t got = ::read(own >= 0 ? own : descriptor_, some, sizeof some);
      if (got <= 0) break;
      all.insert(all.end(), some, some + static_cast<size_t>(got) / sizeof(Event));
    }
    if (own >= 0) ::close(own);
    return all;
  }

  int descriptor_;
  std::deque<Waiting> waiting_;
};

}  // namespace weir
