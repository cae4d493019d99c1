// One network interface by its name, in a network namespace: what has become of it, and whether the name now stands for another.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "io/interface_claim.h"
#include "io/packet_port.h"
#include "io/port_options.h"

namespace weir {

class InterfaceWatch {
 public:
  // `options` must outlive it.
  explicit InterfaceWatch(const PortOptions& options) : options_(options) {}
  ~InterfaceWatch() { close(); }
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  // Looks the interface up and calls `open(index)` with the calling thread in its namespace; the thread is in its own again
  // afterwards. Whatever is thrown, the watch is closed. Throws NativeError: ENODEV (no such interface), EPERM, INTERFACE_IN_USE,
  // ...
  void open(const std::function<void(int index)>& open);
  void close();
  // `replaced` also when not open: to be opened (again).
  PortState state() const;
  // Its MTU now; 0 when it is gone, or the watch not open.
  uint32_t mtu() const;
  // IFF_PROMISC for as long as the watch is open. Throws NativeError.
  void make_promiscuous();

 private:
  void look_up();

  const PortOptions& options_;
  int socket_ = -1;  // a packet socket without a protocol: receives nothing, and answers for its own namespace
  int index_ = 0;
  std::optional<InterfaceClaim> claim_;
  ino_t namespace_inode_ = 0;  // of namespace_path when it was opened
};

}  // namespace weir
