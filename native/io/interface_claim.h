// One interface serves one Weir: a second one there would answer, or forward, every frame once more.
//
// A claim is a socket with an abstract address (unix(7)) that names the interface by its index. Such addresses are those of one
// network namespace, whatever file systems and users there are, and are gone with the process, however it ends. A second socket
// beside it says in its address whose the claim is, for anybody to read in /proc/net/unix.
#pragma once

#include <string>

#include "io/network_namespace.h"

namespace weir {

class InterfaceClaim {
 public:
  // Claims an interface of the calling thread's network namespace for the device `owner`. Throws NativeError INTERFACE_IN_USE.
  InterfaceClaim(int index, const std::string& interface, const std::string& owner);

 private:
  Descriptor lock_;
  Descriptor label_;
};

}  // namespace weir
