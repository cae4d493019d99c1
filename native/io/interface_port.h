// A port of one network interface, by its name in a network namespace: all backends do this alike, however frames pass. It knows
// the interface's state, and whether the name now stands for another.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "io/interface_claim.h"
#include "io/packet_port.h"
#include "io/port_options.h"

namespace weir {

class InterfacePort : public PacketPort {
 public:
  InterfacePort(const InterfacePort&) = delete;
  InterfacePort& operator=(const InterfacePort&) = delete;

  // `replaced` also when a reopen() failed: to be tried again.
  PortState state() override;
  uint32_t mtu() override;
  void take_groups() override;
  void reopen() override {
    shut();
    start(false);
  }

 protected:
  explicit InterfacePort(const PortOptions& options) : options_(options) {}

  // A backend adds these. open() has the calling thread in the interface's namespace; `first`: not by reopen(). Throws
  // NativeError.
  virtual void open(int interface_index, bool first) = 0;
  // Idempotent; what was lost is still known afterwards.
  virtual void close() = 0;

  // Must end the constructor: opens it; the calling thread is in its own namespace again afterwards. Throws NativeError: ENODEV
  // (no such interface), EPERM, INTERFACE_IN_USE, ..., and is closed then.
  void start(bool first = true);
  // Must be called by the destructor.
  void shut();
  // IFF_PROMISC until shut(): groups, too. Throws NativeError.
  void make_promiscuous();
  // Receive queues that the interface has now, asked of the system; 1 where it does not tell.
  uint32_t receive_queues() const;
  // Runs `action` in the interface's namespace, and returns that one's inode; 0: it has no path. Throws NativeError.
  ino_t inside(const std::function<void()>& action) const;
  // Opens a socket without a protocol: it receives nothing, and answers for its namespace. Throws NativeError.
  int packet_socket(int flags = 0) const;

  const PortOptions options_;

 private:
  void look_up();
  void look_up_lent();
  // Asks for a membership until shut(). False, with errno, if it is refused. `group`: MAC address, for PACKET_MR_MULTICAST.
  bool ask_for(int membership, uint64_t group = 0) const;

  int asked_ = -1;  // a packet socket, by which the kernel is asked of the interface
  int index_ = 0;
  bool takes_groups_ = false;
  std::optional<InterfaceClaim> claim_;
  ino_t namespace_inode_ = 0;  // inode of namespace_path when it was opened
};

}  // namespace weir
