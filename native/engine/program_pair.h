// One queue pair of a program, as those see it that drive its transport.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/verbs_transport.h"

namespace weir {

// One queue pair of the program, as far as its transport is concerned.
struct ProgramPair {
  uint32_t qpn = 0;
  VerbsTransport* transport = nullptr;
  std::unique_ptr<VerbsTransport> kept;  // the same, unless the program's own NIC has it
  bool direct = false;                   // that has it
  bool watched = false;                  // attended() is called whenever that NIC has moved
  bool datagram = false;
  bool reliable = false;
  uint32_t unsent = 0;  // packets that the daemon has, acknowledgements among them
  // Data packets that the daemon has. Congestion control may hold requests there: what answers the peer does not wait for that.
  struct Share {
    uint32_t submitted = 0;
    uint32_t most = 64;
  };
  Share requests;
  Share responses;
  bool withdrawn = false;  // requests that the daemon has, as the queue pair has failed
  bool dirty = false;      // has more to send, perhaps
};

}  // namespace weir
