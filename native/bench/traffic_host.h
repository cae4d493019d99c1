// Help of the host for senders and receivers of the benchmarks.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace weir::bench {

// CLOCK_MONOTONIC.
Time now();
// Runs before other work of this machine, and on this CPU; -1: any. If the host refuses, that is left as it is: the benchmark
// then shows what else the machine does.
void come_first(int cpu);
// "02:57:45:00:00:01".
uint64_t parse_mac(const std::string& text);
// Both work in this thread's network namespace.
int interface_index(const std::string& name);
// A bound, promiscuous packet socket; one that does not receive only sends, past the queueing discipline.
int packet_socket(const std::string& interface, bool receives);

}  // namespace weir::bench
