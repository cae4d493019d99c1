// Processes of programs in virtual time, and the network in which they have sockets: one for all, apart from the machine's, where
// each host has its address.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

// Descriptor of a new network namespace whose loopback has the addresses (IPv4, dotted). Throws NativeError where the system
// refuses.
int make_program_network(const std::vector<std::string>& addresses);

struct ProgramStart {
  std::string command;
  std::vector<std::string> environment;
  std::string output;
  std::string errors;
  int network = -1;
};
// Starts `sh -c command` as process 1 of its own namespace, whose addresses of memory are those of each run, and which ends with
// the calling thread. Throws NativeError.
pid_t start_program(const ProgramStart& start);

}  // namespace weir
