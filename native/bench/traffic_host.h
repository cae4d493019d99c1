// What the senders and receivers of the benchmarks need of the host.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace weir::bench {

// CLOCK_MONOTONIC.
Time now();
// Before other work of this machine, and on this CPU; -1: any. What the host refuses is left as it is: the benchmark then shows
// what else the machine does.
void come_first(int cpu);
// "02:57:45:00:00:01".
uint64_t parse_mac(const std::string& text);
// In this thread's network namespace, as the next one.
int interface_index(const std::string& name);
// A bound, promiscuous packet socket; one that does not receive only sends, past the queueing discipline.
int packet_socket(const std::string& interface, bool receives);

}  // namespace weir::bench
