// Serves the programs of one simulated NIC at its socket: identities, queue pairs, ways to their peers, as a daemon does on the
// wire (endpoint/program_protocol.h). It never waits: who carries out turns calls it when a program may have asked. What programs
// of librdmacm say there is handed on (src/daemon/programs/connections.ts has the messages).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "endpoint/program_protocol.h"
#include "engine/nic_applications.h"
#include "hosts/host_news.h"

namespace weir {

class NicBroker {
 public:
  struct Nic {
    uint64_t mac = 0;
    Rate rate = 0;
    uint8_t ip[4] = {};
    uint32_t path_mtu = 0;  // the largest
  };
  struct Way {
    RocePath path;
    uint8_t priority = 0;
  };
  // Nothing: there is no such peer. The number tells queue pairs to one peer apart.
  using FindWay = std::function<std::optional<Way>(const ProgramRequest& request, uint32_t number)>;

  // Takes what connection management is to hear, but for the NIC's number.
  using HandOn = std::function<void(HostNews news)>;

  // Number of the process that asks.
  using FindProcess = std::function<uint32_t()>;

  // Throws NativeError when it cannot listen at `socket`.
  NicBroker(std::string socket, const Nic& nic, SoftNic& device, FindWay find_way, HandOn hand_on, FindProcess find_process);
  ~NicBroker();
  NicBroker(const NicBroker&) = delete;
  NicBroker& operator=(const NicBroker&) = delete;

  // Takes in and answers what was asked; returns whether there was anything.
  bool serve();
  // Connection management's part of a session that was handed on; one that is over hears nothing.
  void tell(uint32_t number, std::span<const uint8_t> bytes);
  void end_session(uint32_t number);
  // The process that has opened the NIC as that program.
  uint32_t process_of(uint32_t program) const { return processes_.at(program); }
  NicApplications& applications() { return applications_; }
  SoftNic& device() { return device_; }

 private:
  struct Session {
    int socket = -1;
    uint32_t program = 0;
    std::set<uint32_t> handles;
    bool connects = false;          // it is one of librdmacm
    std::vector<uint8_t> unsent{};  // what there was no room for
  };

  bool hear(uint32_t number, Session& session, bool& any);
  bool hear_connections(uint32_t number, Session& session);
  static void flush(Session& session);
  ProgramAnswer answer(Session& session, const ProgramRequest& request, ProgramOpening& opening);
  ProgramAnswer modify(const ProgramRequest& request);
  void end(Session& session);

  std::string path_;
  Nic nic_;
  SoftNic& device_;
  FindWay find_way_;
  HandOn hand_on_;
  FindProcess find_process_;
  std::map<uint32_t, uint32_t> processes_;  // by the programs that are open
  std::vector<WirePort> no_ports_;
  NicApplications applications_;
  int listening_ = -1;
  uint32_t last_session_ = 0;
  std::map<uint32_t, Session> sessions_;  // by their numbers
};

}  // namespace weir
