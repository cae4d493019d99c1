// Which frames of an interface a packet socket gets: the kernel drops the rest before it is copied.
#pragma once

#include <cstdint>

#include "io/port_options.h"

namespace weir {

// Those of PortOptions::roce_only. Of RoCEv2 packets those arrive whose queue pair is in one of `blocks` (PacketPort::lend()),
// by bit; `alone`: besides these only MAC control frames do. Throws NativeError.
void accept_roce_only(int socket, const PortOptions& options, uint16_t blocks, bool alone);
// Those whose source address begins with these two bytes. Throws NativeError.
void accept_source(int socket, uint16_t prefix);

}  // namespace weir
