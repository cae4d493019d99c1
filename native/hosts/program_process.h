// Processes of programs in virtual time, and what they share apart from the machine: a network in which each host has its
// address, and memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

// Descriptors of new namespaces; -1: none.
struct ProgramNamespaces {
  int network = -1;
  int ipc = -1;  // System V's
};
// The network's loopback has the addresses (IPv4, dotted). Throws NativeError where the system refuses.
ProgramNamespaces make_program_namespaces(const std::vector<std::string>& addresses);

struct ProgramStart {
  std::string command;
  std::vector<std::string> environment;
  std::string output;
  std::string errors;
  ProgramNamespaces namespaces;
  std::string shared_memory;  // folder that is their /dev/shm
};
// Starts `sh -c command` as process 1 of its own namespace, whose addresses of memory are those of each run, and which ends with
// the calling thread. Throws NativeError.
pid_t start_program(const ProgramStart& start);

}  // namespace weir
