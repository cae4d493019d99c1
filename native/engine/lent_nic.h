// A program's own NIC, on a path that the NIC's daemon has lent it (engine/lent_path.h): it drives the connections whose peers
// are on the wire, whose frames come and go without the daemon. One lock is for all of it, which is its user's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/lent_path.h"
#include "engine/nic_device.h"
#include "engine/waker.h"
#include "engine/worker_clock.h"
#include "io/network_namespace.h"
#include "transport/program_rings.h"

namespace weir {

class LentNic {
 public:
  // Takes both descriptors, which are its own. Throws NativeError.
  LentNic(int config, int socket);
  LentNic(const LentNic&) = delete;
  LentNic& operator=(const LentNic&) = delete;

  // The transport of a queue pair, which is in the state init, is its own from now on. False: there is no room for it now.
  bool adopt(uint32_t qpn, bool unreliable, std::unique_ptr<VerbsTransport>& transport);
  std::unique_ptr<VerbsTransport> give_back(uint32_t qpn) { return nic().applications().give_back(qpn); }
  // Throws as VerbsTransport::modify().
  void modify(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path, uint8_t priority) {
    nic().applications().modify(qpn, to, attributes, path, priority, 0);
  }
  void attend(uint32_t qpn) {
    nic().applications().attend_to(qpn);
    ++attended_;
  }
  // Whether something was attended to since the last turn, and how much.
  uint32_t attended() const { return attended_; }
  // Returns whether frames have come or gone.
  bool turn();
  // When the last one was.
  Time turned() const { return clock_.now(); }
  Time next_deadline() { return device_->next_deadline(); }
  // Whether frames came just now: a thread had better stay awake for those that follow.
  bool lingers() const { return clock_.now() - came_at_ < kLinger; }
  // All that it was given has left.
  bool sent_all() { return device_->ports().front().unsent() == 0; }

  // Any thread: sleeps until frames come, it is rung, or that time is over. `frames`: false: only for the ring.
  void sleep(Time duration, bool frames);
  void ring() { waker_.ring(); }

  // Whether the daemon captures: it is to be woken for that.
  bool captured() const { return shared_->mirror.wanted.load(std::memory_order_relaxed) != 0; }
  // Tells the daemon what was counted and what has become of queue pairs, from time to time.
  void tell(ProgramMemory& memory);
  // The daemon's NIC is another now. Throws NativeError, as while the daemon writes: nothing has changed then.
  void reconfigure();

 private:
  static constexpr Time kLinger = 50 * kMicrosecond;

  SoftNic& nic() { return device_->soft_nic(); }

  Descriptor socket_;
  MappedLentMemory shared_;
  WorkerClock clock_;
  std::unique_ptr<PacketMemory> memory_;
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<LentPackets> lent_packets_;
  FrameRing punted_{1};
  SpscRing<Record> records_{1};
  std::unique_ptr<NicDevice> device_;
  Waker waker_;
  uint32_t attended_ = 0;
  uint64_t seen_ = 0;
  Time came_at_ = 0;
  Time checked_ = 0;
};

}  // namespace weir
