// Frames of one EtherType on one interface: a few, which JavaScript sends and reads. Devices send their frames by their ports.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weir {

// A packet socket that does not wait, closed on exec, in this thread's network namespace; write(2) sends a whole frame. Returns
// the descriptor, which is the caller's to close. Throws NativeError: EPERM (no CAP_NET_RAW), ENODEV (no such interface).
int open_link_socket(const std::string& interface, uint16_t ethertype);

// Reads one frame into `data`, of which longer ones are cut, and its length and time of arrival (CLOCK_MONOTONIC, ns) into
// `words`. False when none waits, or the interface is down. Throws NativeError when `words` has no room for two.
bool read_link(int socket, std::span<uint8_t> data, std::span<double> words);

}  // namespace weir
