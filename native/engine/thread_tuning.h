// A worker asks the host for some things for its thread.
#pragma once

#include <string>
#include <vector>

#include "engine/config.h"
#include "wire/packet.h"

namespace weir {

struct ThreadTuning {
  bool real_time = false;            // it has that priority
  std::vector<std::string> refused;  // things that the host did not let us do
};

// Gives the calling thread its name, its CPU and its priority, and keeps the packets in memory.
ThreadTuning tune_thread(const WorkerConfig& config, PacketMemory& memory);

// The calling thread is to run soon after it wakes up, as a worker's; one that is no ordinary thread stays what it is.
void schedule_soon();

}  // namespace weir
