// Which host of the network a process in virtual time is of.
#pragma once

#include <cstdint>

namespace weir {

// Number of the NIC of the host that a process is of which has just become another program: the one of before, `nic`, unless the
// launcher has moved it. What its environment says of that is set right, for who starts programs on other hosts may hand the
// environment of its own on to them, as launchers of MPI do. Before anything reads `variables`, the process' environment.
uint32_t settle_host(char** variables, uint32_t nic);

}  // namespace weir
