// A port of one network interface: what all backends do alike with it, however frames pass.
#pragma once

#include "io/interface_watch.h"
#include "io/packet_port.h"
#include "io/port_options.h"

namespace weir {

class InterfacePort : public PacketPort {
 public:
  InterfacePort(const InterfacePort&) = delete;
  InterfacePort& operator=(const InterfacePort&) = delete;

  // `replaced` also when a reopen() failed: to be tried again.
  PortState state() override { return watch_.state(); }
  uint32_t mtu() override { return watch_.mtu(); }
  void reopen() override {
    shut();
    start(false);
  }

 protected:
  explicit InterfacePort(const PortOptions& options) : options_(options), watch_(options_) {}

  // What a backend adds. open() has the calling thread in the interface's namespace; `first`: not by reopen(). Throws
  // NativeError.
  virtual void open(int interface_index, bool first) = 0;
  // Idempotent; what was lost is still known afterwards.
  virtual void close() = 0;

  // For the constructor's end: opens it. Throws NativeError, and is closed then.
  void start(bool first = true) {
    try {
      watch_.open([this, first](int index) { open(index, first); });
    } catch (...) {
      shut();
      throw;
    }
  }
  // For the destructor.
  void shut() {
    close();
    watch_.close();
  }

  const PortOptions options_;
  InterfaceWatch watch_;
};

}  // namespace weir
