// The programs that use a NIC from outside: the memory that each shares with it, their descriptors, and how they wake each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/describe.h"
#include "endpoint/program_protocol.h"
#include "endpoint/soft_nic.h"
#include "engine/lent_path.h"
#include "engine/wire_port.h"
#include "transport/program_link.h"

namespace weir {

// Opening that a program is given; the descriptors stay the NIC's.
struct ProgramOpening {
  uint32_t number = 0;  // counted from 1
  int memory = -1;      // a sealed memfd: ProgramMemory
  int wake = -1;        // an eventfd: written when something was submitted to a NIC that sleeps
  uint32_t address_handles = kProgramAddressHandles;
  uint32_t memberships = kProgramMemberships;
};
void describe(auto& v, Of<ProgramOpening> auto& opening) {
  v.type("ProgramOpening", "What a program needs of a NIC. The descriptors end with closeProgram().");
  v("number", opening.number, field::any("The program's, from 1."));
  v("memory", opening.memory, field::any("Descriptor of the memory that both share."));
  v("wake", opening.wake, field::any("Descriptor of the eventfd that wakes the NIC."));
  v("address_handles", opening.address_handles, field::any("How many it may have."));
  v("memberships", opening.memberships, field::any("How often its queue pairs may be members of multicast groups."));
}

class NicPrograms {
 public:
  // Descriptors that the NIC has for a program.
  static constexpr uint32_t kMost = 256;

  NicPrograms();
  ~NicPrograms();
  NicPrograms(const NicPrograms&) = delete;
  NicPrograms& operator=(const NicPrograms&) = delete;

  // Runs on the worker's thread, between two turns. Throws NativeError NO_RESOURCES, or why the host refuses.
  ProgramOpening open();
  // Its queue pairs must be gone. False when there is none of this number.
  bool close(uint32_t number);
  // Null when there is none of this number.
  ProgramLink* find(uint32_t number);
  // Numbers of its queue pairs.
  std::set<uint32_t>& queue_pairs(uint32_t number);
  // One of them is gone, which had counted so much.
  void forget(uint32_t number, uint32_t qpn, const QpCounters& counted);
  // Hands captures of the port what passes by paths of their own.
  void witness();
  // Its path of its own; null: it has none.
  LentPath* path(uint32_t number);
  void give_path(uint32_t number, std::unique_ptr<LentPath> path);
  // The NIC is another now: those with paths of their own are told.
  void rewrite_paths(const LentNicConfig& config);
  // Numbers of all programs, from the oldest.
  std::vector<uint32_t> numbers() const;
  // Counters of its queue pairs that are gone.
  const QpCounters& past(uint32_t number) const;

  // Adds what their transports have counted, and what those with paths of their own have, for which there is a port.
  void count(SoftNic& nic, WirePort* port);
  void count(uint32_t number, SoftNic& nic, WirePort* port);

  // Takes in a turn what programs have submitted; gives back and wakes.
  void take(SoftNic& nic);
  // `told`: called of each program that has cause to look since the last time, if it polls (ProgramLink::has_cause()); `rings`:
  // and if it sleeps.
  using Told = std::function<void(uint32_t number, bool rings)>;
  void publish(const Told& told = nullptr);
  // The link is there, or not: programs hear of changes.
  void tell_link(bool up) {
    if (up != link_up_) change_link(up);
  }
  // Programs that are there hear that the table of GIDs has changed, and all of the largest path MTU.
  bool tell(bool gids, uint32_t path_mtu);
  // Whether any has no room for more frames.
  bool crowded(Time now);

  // The worker is about to sleep on descriptor(), or has risen.
  int descriptor() const { return descriptor_; }
  void doze();
  void rise();
  bool waiting() const;
  bool empty() const { return programs_.empty(); }

 private:
  struct Program;

  void change_link(bool up);

  bool link_up_ = true;
  uint32_t path_mtu_ = 0;  // 0: nobody has told
  int descriptor_ = -1;
  uint32_t last_ = 0;
  std::map<uint32_t, std::unique_ptr<Program>> programs_;
};

}  // namespace weir
