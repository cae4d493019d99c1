// One network interface by its name, in a network namespace: what has become of it, and whether the name now stands for another.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "io/interface_claim.h"
#include "io/packet_port.h"

namespace weir {

struct InterfaceName {
  std::string interface;
  int namespace_fd = -1;            // network namespace to look in; -1: the calling thread's
  std::string namespace_path = {};  // the same by its path, which may come to name another one; empty: namespace_fd counts
  std::string owner = {};           // device for which the interface is claimed (io/interface_claim.h); empty: it is not
};

class InterfaceWatch {
 public:
  explicit InterfaceWatch(InterfaceName name) : name_(std::move(name)) {}
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
  const InterfaceName& name() const { return name_; }
  int index() const { return index_; }

 private:
  void look_up();

  const InterfaceName name_;
  int socket_ = -1;  // a packet socket without a protocol: receives nothing, and answers for its own namespace
  int index_ = 0;
  std::optional<InterfaceClaim> claim_;
  ino_t namespace_inode_ = 0;  // of namespace_path when it was opened
};

}  // namespace weir
