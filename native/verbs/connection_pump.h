// A channel of several NICs: the program has one end of a pair of sockets, and a thread hands on what each of their daemons says,
// which is a byte for each event that waits. The program reads the number of the NIC, with kGone when its daemon has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

inline constexpr uint8_t kGone = 0x80;

class ConnectionPump {
 public:
  // Number of bytes that tell that a NIC of a channel is gone.
  using Untold = uint32_t (*)(uint64_t key, size_t nic);
  explicit ConnectionPump(Untold untold) : untold_(untold) {}

  // Takes descriptors over: the other end, and one for each NIC; -1: there is none. errno; 0: it runs.
  int add(uint64_t key, int end, const std::vector<int>& sockets);
  // Runs on in a child.
  int ensure();
  void lock();
  void unlock();
  void forked();

 private:
  struct Channel;
  struct Watch {
    Channel* channel;
    int nic;  // -1: the other end
  };
  static void* run(void* pump);
  void turn(int set);
  void take(Channel& channel, size_t nic);
  void hand_on(Channel& channel);
  void watch(int descriptor, const Watch& about, uint32_t events) const;
  void watch_all(const Channel& channel) const;
  void end(Channel& channel);
  int begin();

  Untold untold_;
  int set_ = -1;
  std::vector<Channel*> channels_;
};

}  // namespace weir
