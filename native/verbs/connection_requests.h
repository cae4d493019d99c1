// Fate of a command of librdmacm: to which NIC's daemon it goes, and what the program is told.
#pragma once

#include <cstdint>

#include "verbs/connection_abi.h"
#include "verbs/connection_commands.h"

namespace weir {

struct ConnectionRequest {
  uint64_t key;  // key of the channel
  CommandHeader header;
  Bytes bytes;
  Bytes extra;  // data that the command points to
  uint32_t id = 0;

  // Asks a NIC's daemon; the command names one of its ids.
  ConnectionAnswer ask(size_t nic, uint32_t number);
};

// Runs any request but getEvent.
ConnectionAnswer run_connection_request(ConnectionRequest& request);

// The event that waits at a NIC. EAGAIN: there is none; ENODEV: its daemon is gone.
ConnectionAnswer next_connection_event(uint64_t key, size_t nic);
// RDMA_CM_EVENT_DEVICE_REMOVAL of an id whose NIC is gone; ENODEV when all have been told.
ConnectionAnswer connection_removal(uint64_t key, size_t nic);
// Number of ids that have not been told.
uint32_t untold_removals(uint64_t key, size_t nic);

// These are called around a fork.
void lock_connection_requests();
void unlock_connection_requests(bool in_child);

}  // namespace weir
