// Program at the other end of a veth, as this end shows it: the other one may be in a namespace that nobody here may enter.
#pragma once

#include <string>

namespace weir {

// Whether the peer of an interface of the socket's namespace has an XDP program in its driver. Then veth has no segmentation
// offload, and none can be switched on (veth_xdp_set() in drivers/net/veth.c).
// False where it is no veth, or nothing can be asked.
bool peer_runs_xdp(int socket, const std::string& interface);

}  // namespace weir
