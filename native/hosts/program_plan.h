// Programs that a simulation runs, as TypeScript hands them over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct PlannedProgram {
  uint32_t nic = 0;
  std::string command;
  std::vector<std::string> environment;
  Time start = 0;
  std::vector<uint32_t> after;
  uint32_t listens = 0;
  double compute = 0;
  std::string output;
  std::string errors;
};
void describe(auto& v, Of<PlannedProgram> auto& program) {
  v.type("NativePlannedProgram", "A program in virtual time.");
  v("nic", program.nic, field::any("Of its host."));
  v("command", program.command, field::any("For sh -c."));
  v("environment", program.environment, field::any("All of it, NAME=VALUE."));
  v("start", program.start, field::ns("Not before."));
  v("after", program.after, field::any("Numbers of the programs that have to be ready."));
  v("listens", program.listens, field::within(0, 65535, "It is ready when it listens at this port; 0: when it has ended well."));
  v("compute", program.compute, field::any("Virtual time that it takes for a time of the processor that it uses; 0: none."));
  v("output", program.output, field::any("Path of the file that is its standard output."));
  v("errors", program.errors, field::any("Of its standard error."));
}

struct ProgramPlan {
  std::string folder;
  std::vector<std::string> names;
  std::vector<uint32_t> path_mtus;
  uint32_t priority = 0;
  std::vector<PlannedProgram> programs;
};
void describe(auto& v, Of<ProgramPlan> auto& plan) {
  v.type("NativeProgramPlan", "Programs, and what they know of their network.");
  v("folder", plan.folder, field::any("For sockets and shared memory: its path has 80 characters at most."));
  v("names", plan.names, field::any("Of hosts, by NIC."));
  v("path_mtus", plan.path_mtus, field::any("Largest, by NIC.", "bytes"));
  v("priority", plan.priority, field::priority("Of their queue pairs, where they do not say."));
  v("programs", plan.programs, field::any("Numbered from 0."));
}

// What has become of one.
struct ProgramFate {
  std::optional<Time> started;
  std::optional<Time> ended;
  uint32_t status = 0;
  uint32_t signal = 0;
  std::string failure;
};
void describe(auto& v, Of<ProgramFate> auto& state) {
  v.type("ProgramFate", "What has become of a program in virtual time.");
  v("started", state.started, field::optional(field::any("Virtual time; absent: it was not.", "ns")));
  v("ended", state.ended, field::optional(field::any("Likewise.", "ns")));
  v("status", state.status, field::any("Exit status."));
  v("signal", state.signal, field::any("That ended it; 0: none."));
  v("failure", state.failure, field::any("Why it was not started, or was ended; empty: nothing of the kind."));
}

}  // namespace weir
