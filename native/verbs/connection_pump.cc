#include "verbs/connection_pump.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace weir {
namespace {

std::mutex mutex;

}  // namespace

struct ConnectionPump::Channel {
  uint64_t key;
  int end;
  std::vector<int> sockets;
  std::vector<uint32_t> owed;  // bytes, of each NIC
  std::vector<uint32_t> gone;  // the same, of one that is gone
  std::vector<Watch> watches;  // watches of each, and of the other end
  bool waits = false;          // it waits for the program to read
};

int ConnectionPump::add(uint64_t key, int end, const std::vector<int>& sockets) {
  const std::lock_guard guard(mutex);
  auto* channel =
      new Channel{key, end, sockets, std::vector<uint32_t>(sockets.size()), std::vector<uint32_t>(sockets.size()), {}};
  for (size_t nic = 0; nic < sockets.size(); ++nic) channel->watches.push_back({channel, static_cast<int>(nic)});
  channel->watches.push_back({channel, -1});
  channels_.push_back(channel);
  if (set_ < 0) return begin();
  watch_all(*channel);
  return 0;
}

int ConnectionPump::ensure() {
  const std::lock_guard guard(mutex);
  return set_ < 0 && !channels_.empty() ? begin() : 0;
}

void ConnectionPump::lock() { mutex.lock(); }
void ConnectionPump::unlock() { mutex.unlock(); }

// The set is the parent's; what is in it is shared, and whoever is the first hands it on.
void ConnectionPump::forked() {
  if (set_ >= 0) ::close(set_);
  set_ = -1;
}

int ConnectionPump::begin() {
  set_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (set_ < 0) return errno;
  for (const Channel* channel : channels_) watch_all(*channel);
  // Signals are the program's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) pthread_detach(thread);
  return error;
}

void ConnectionPump::watch(int descriptor, const Watch& about, uint32_t events) const {
  epoll_event event{.events = events, .data = {.ptr = const_cast<Watch*>(&about)}};
  if (descriptor >= 0 && ::epoll_ctl(set_, EPOLL_CTL_ADD, descriptor, &event) < 0) {
    ::epoll_ctl(set_, EPOLL_CTL_MOD, descriptor, &event);
  }
}

void ConnectionPump::watch_all(const Channel& channel) const {
  for (size_t nic = 0; nic < channel.sockets.size(); ++nic) watch(channel.sockets[nic], channel.watches[nic], EPOLLIN);
  watch(channel.end, channel.watches.back(), EPOLLRDHUP);
}

void* ConnectionPump::run(void* pump) {
  auto& self = *static_cast<ConnectionPump*>(pump);
  for (;;) self.turn(self.set_);
}

void ConnectionPump::turn(int set) {
  epoll_event events[16];
  const int count = ::epoll_wait(set, events, 16, -1);
  const std::lock_guard guard(mutex);
  std::vector<Channel*> ended;
  for (int i = 0; i < count; ++i) {
    const Watch& about = *static_cast<const Watch*>(events[i].data.ptr);
    Channel& channel = *about.channel;
    if (about.nic >= 0) {
      take(channel, static_cast<size_t>(about.nic));
    } else if ((events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
      if (std::find(ended.begin(), ended.end(), &channel) == ended.end()) ended.push_back(&channel);
      continue;
    }
    hand_on(channel);
  }
  for (Channel* channel : ended) end(*channel);
}

void ConnectionPump::take(Channel& channel, size_t nic) {
  int& socket = channel.sockets[nic];
  if (socket < 0) return;
  char bytes[4096];
  const ssize_t got = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got > 0) channel.owed[nic] += static_cast<uint32_t>(got);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  ::close(socket);
  socket = -1;
  channel.owed[nic] = 0;  // nobody has those events any more
  channel.gone[nic] = untold_(channel.key, nic);
}

void ConnectionPump::hand_on(Channel& channel) {
  bool lives = false;
  bool full = false;
  for (size_t nic = 0; nic < channel.sockets.size(); ++nic) {
    lives |= channel.sockets[nic] >= 0;
    for (uint32_t* owed : {&channel.owed[nic], &channel.gone[nic]}) {
      while (*owed > 0 && !full) {
        const std::vector<uint8_t> bytes(std::min(*owed, 256u),
                                         static_cast<uint8_t>(nic | (owed == &channel.gone[nic] ? kGone : 0)));
        const ssize_t sent = ::send(channel.end, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) *owed -= static_cast<uint32_t>(sent);
        full = sent <= 0;
      }
    }
  }
  if (full != channel.waits) watch(channel.end, channel.watches.back(), full ? EPOLLRDHUP | EPOLLOUT : EPOLLRDHUP);
  channel.waits = full;
  // With no daemon left nothing more will come: the program reads its end.
  if (!lives && !full) ::shutdown(channel.end, SHUT_RDWR);
}

void ConnectionPump::end(Channel& channel) {
  for (const int socket : channel.sockets) {
    if (socket >= 0) ::close(socket);
  }
  ::close(channel.end);
  std::erase(channels_, &channel);
  delete &channel;
}

}  // namespace weir
