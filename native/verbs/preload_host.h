// Which host of the network a process in virtual time is of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace weir {

// Calls found(number of its NIC, name, address) of the hosts in a text as kNamesVariable has it, until it returns true.
template <class Found>
void each_host(std::string_view names, const Found& found) {
  for (uint32_t number = 0; !names.empty(); ++number) {
    const std::string_view one = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), one.size() + 1));
    const size_t end = std::min(one.find('='), one.size());
    if (found(number, one.substr(0, end), one.substr(std::min(end + 1, one.size())))) return;
  }
}

// Number of the NIC of the host that a process is of which has just become another program: the one of before, `nic`, unless the
// launcher has moved it. What its environment says of that is set right, for who starts programs on other hosts may hand the
// environment of its own on to them, as launchers of MPI do. Before anything reads `variables`, the process' environment.
uint32_t settle_host(char** variables, uint32_t nic);

}  // namespace weir
