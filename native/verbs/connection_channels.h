// Channels that librdmacm takes for /dev/infiniband/rdma_cm: a channel of events is a socket to the NIC's daemon, which keeps the
// ids and says by a byte that an event waits; commands go by another one, of the process. src/daemon/programs/connections.ts has
// the messages. With several NICs it is one end of a pair of sockets (connection_pump.h), and each id goes to the NIC that has or
// reaches its address (connection_requests.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

namespace weir {

// A descriptor; -1, with errno.
int open_connection_channel(int flags);

// Does the descriptor belong to a channel, by whatever number it is known?
bool is_connection_channel(int descriptor);

// Whether what is written may be a command for a channel at all: cheap, for all that the program writes.
bool may_be_connection_command(const void* bytes, size_t length);

// Returns what write(2) on a channel returns, with errno; nothing: the descriptor is no channel's.
std::optional<ssize_t> run_connection_command(int descriptor, const void* bytes, size_t length);

}  // namespace weir
