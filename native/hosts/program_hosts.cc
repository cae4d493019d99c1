#include "hosts/program_hosts.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/native_error.h"
#include "base/random.h"
#include "endpoint/program_turns.h"
#include "engine/worker_clock.h"
#include "hosts/program_process.h"

namespace weir {
namespace {

constexpr uint8_t kEct0 = 2;
// Of real time.
constexpr Time kLongestRun = 50 * kMillisecond;
constexpr double kMostCompute = 1'000;

std::string text_of(const uint8_t* ip) {
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, ip, text, sizeof text);
  return text;
}

}  // namespace

ProgramHosts::ProgramHosts(const SimulationConfig& config, ProgramPlan plan)
    : nics_(config.nics.begin(), config.nics.end()),
      plan_(std::move(plan)),
      states_(plan_.programs.size()),
      has_listener_(plan_.programs.size()),
      turns_(plan_.folder + "/turns", static_cast<uint32_t>(nics_.size()), [this] { return serve(); }),
      brokers_(nics_.size()) {
  require(plan_.programs.size() <= kTurnPrograms, "programs", "there are 256 at most");
  require(plan_.names.size() == nics_.size() && plan_.path_mtus.size() == nics_.size(), "programs.names",
          "there is one for each NIC, and a path MTU");
  for (const PlannedProgram& one : plan_.programs) {
    require(one.nic < nics_.size() && nics_[one.nic].parameters.verbs_queue_pairs > 0, "programs.nic",
            "it is one with queue pairs for programs");
    const auto exists = [&](uint32_t other) { return other < plan_.programs.size(); };
    require(std::ranges::all_of(one.after, exists), "programs.after", "they are programs that exist");
    require(one.compute >= 0 && one.compute <= kMostCompute, "programs.compute", "it is 0 to 1000");
  }
}

ProgramHosts::~ProgramHosts() {
  end();
  for (const int one : {namespaces_.network, namespaces_.ipc}) {
    if (one >= 0) ::close(one);
  }
}

void ProgramHosts::end() {
  for (uint32_t i = 0; i < plan_.programs.size(); ++i) {
    const pid_t process = turns_.process(i);
    if (process == 0) continue;
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    turns_.set_process(i, 0);
  }
  brokers_.clear();
  processor_.reset();
}

void ProgramHosts::begin(Fabric& fabric) {
  fabric_ = &fabric;
  processor_.emplace();
  std::vector<std::string> addresses;
  for (uint32_t i = 0; i < nics_.size(); ++i) {
    addresses.push_back(text_of(nics_[i].ip));
    if (nics_[i].parameters.verbs_queue_pairs == 0) continue;
    NicBroker::Nic own{.mac = nics_[i].parameters.mac, .rate = nics_[i].parameters.rate, .path_mtu = plan_.path_mtus[i]};
    std::memcpy(own.ip, nics_[i].ip, sizeof own.ip);
    brokers_[i] = std::make_unique<NicBroker>(
        plan_.folder + "/" + plan_.names[i] + ".verbs", own, fabric.nic_at(i),
        [this, i](const ProgramRequest& request, uint32_t number) { return find_way(i, request, number); },
        [this, i](HostNews news) {
          news.nic = i;
          news_.push_back(std::move(news));
        },
        [this] { return turns_.last_process(); });
  }
  namespaces_ = make_program_namespaces(addresses);
  const auto has_programs = [](const auto& broker) { return broker != nullptr; };
  first_ = static_cast<uint32_t>(std::ranges::find_if(brokers_, has_programs) - brokers_.begin());
  for (const PlannedProgram& one : plan_.programs) ask_for(one.start);
}

std::optional<NicBroker::Way> ProgramHosts::find_way(uint32_t nic, const ProgramRequest& request, uint32_t number) const {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const uint8_t* const address = request.gid.data() + sizeof kMapped;
  if (std::memcmp(request.gid.data(), kMapped, sizeof kMapped) != 0 || request.source_index != 0) return std::nullopt;
  const auto peer = std::ranges::find_if(nics_, [&](const SimulatedNic& one) { return std::memcmp(one.ip, address, 4) == 0; });
  const SimulatedNic& own = nics_[nic];
  // No switch sends a frame back to where it came from.
  if (peer == nics_.end()) return std::nullopt;
  if (request.traffic_class > 0xff || request.service_level >= static_cast<uint32_t>(kPriorities)) return std::nullopt;
  const auto& priorities = own.parameters.priority_map.dscp;
  const uint32_t meant = request.service_level != 0 ? request.service_level : plan_.priority;
  const auto of_priority = static_cast<uint8_t>(std::ranges::find(priorities, meant) - priorities.begin());
  NicBroker::Way way;
  way.path.destination_mac = own.gateway_mac != 0 && &*peer != &own ? own.gateway_mac : peer->parameters.mac;
  way.path.source_mac = own.parameters.mac;
  std::memcpy(way.path.source_ip, own.ip, sizeof own.ip);
  std::memcpy(way.path.destination_ip, peer->ip, sizeof peer->ip);
  way.path.dscp = request.traffic_class >> 2 != 0 ? static_cast<uint8_t>(request.traffic_class >> 2) : of_priority & 63;
  way.path.ecn = kEct0;
  if (request.hop_limit > 0) way.path.ttl = static_cast<uint8_t>(request.hop_limit);
  way.path.udp_source_port = static_cast<uint16_t>(0xc000 | (Random::mix(number) & 0x3fff));
  way.priority = priorities[way.path.dscp];
  return way;
}

bool ProgramHosts::serve() {
  bool any = false;
  for (const auto& broker : brokers_) {
    if (broker != nullptr) any |= broker->serve();
  }
  return any;
}

void ProgramHosts::ask_for(Time at) {
  if (at >= asked_) return;
  asked_ = at;
  fabric_->wake_host(first_, at);
}

void ProgramHosts::heard(uint32_t, Time now) { ask_for(now); }

void ProgramHosts::punted(uint32_t nic, Time, std::span<const uint8_t> frame) {
  HostNews news{.kind = HostNews::Kind::frame, .nic = nic};
  news.bytes.assign(frame.begin(), frame.end());
  news_.push_back(std::move(news));
  fabric_->pause(nic);
}

void ProgramHosts::tell(uint32_t nic, uint32_t session, std::span<const uint8_t> bytes) {
  if (broker(nic) == nullptr) return;
  broker(nic)->tell(session, bytes);
  turns_.tell_all();
  ask_for(fabric_->now());
}

void ProgramHosts::end_session(uint32_t nic, uint32_t session) {
  if (broker(nic) == nullptr) return;
  broker(nic)->end_session(session);
  turns_.tell_all();
  ask_for(fabric_->now());
}

void ProgramHosts::send(uint32_t nic, std::span<const uint8_t> frame) {
  if (broker(nic) == nullptr) return;
  unsent_.push_back({nic, {frame.begin(), frame.end()}});
  ask_for(fabric_->now());
}

bool ProgramHosts::note_listener(uint32_t program) {
  if (program >= has_listener_.size() || !states_[program].started) return false;
  has_listener_[program] = true;
  ask_for(fabric_->now());
  return true;
}

void ProgramHosts::wake(uint32_t, Time now) {
  // One that was asked for before an earlier one was.
  if (now < asked_) return;
  asked_ = kNever;
  woken_ = now;
  for (const auto& broker : brokers_) {
    if (broker != nullptr) broker->device().advance(now);
  }
  for (const Frame& frame : std::exchange(unsent_, {})) fabric_->send_for_stack(frame.nic, now, frame.bytes);
  any_ended_ = false;
  // Functions that hold no more than this are made without memory of the heap.
  const auto ended = [this](uint32_t program, int status) { note_end(program, status); };
  publish();
  do {
    do {
      turns_.run(now, ended);
    } while (start_ready(now));
    for (const auto& broker : brokers_) {
      if (broker != nullptr) broker->applications().take(now);
    }
  } while (publish());
  Time next = turns_.next_deadline();
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].started && plan_.programs[i].start > now) next = std::min(next, plan_.programs[i].start);
  }
  if (next != kNever) ask_for(std::max(next, now + 1));
  // Between runs somebody looks at signals: turns may take long, however few events they are. And with a program the run may be
  // over: at that time, and not after as many events as happened to come before the next look.
  const Time real = monotonic_now();
  if (news_.empty() && !any_ended_ && real - looked_ < kLongestRun) return;
  looked_ = real;
  fabric_->pause(first_);
}

// Gives programs what has come for them; returns whether there was anything.
bool ProgramHosts::publish() {
  any_told_ = false;
  for (uint32_t nic = 0; nic < brokers_.size(); ++nic) {
    if (brokers_[nic] == nullptr) continue;
    brokers_[nic]->applications().programs().publish([this, nic](uint32_t number, bool rings) {
      any_told_ = true;
      turns_.tell(brokers_[nic]->process_of(number), rings);
    });
  }
  return any_told_;
}

void ProgramHosts::note_end(uint32_t program, int status) {
  ProgramFate& state = states_[program];
  state.ended = woken_;
  any_ended_ = true;
  if (turns_.overran(program)) state.failure = "was ended: for half a minute of real time it has not waited for anything";
  if (WIFSIGNALED(status)) {
    state.signal = static_cast<uint32_t>(WTERMSIG(status));
  } else {
    state.status = static_cast<uint32_t>(WEXITSTATUS(status));
  }
}

ProgramHosts::Readiness ProgramHosts::readiness(uint32_t program) const {
  const ProgramFate& state = states_[program];
  const uint32_t port = plan_.programs[program].listens;
  const bool listens = port != 0 && (has_listener_[program] || turns_.listens(program, static_cast<uint16_t>(port)));
  if (listens && state.started) return Readiness::ready;
  if (!state.ended) return state.failure.empty() ? Readiness::not_yet : Readiness::never;
  return port == 0 && state.status == 0 && state.signal == 0 ? Readiness::ready : Readiness::never;
}

bool ProgramHosts::start_ready(Time now) {
  bool any = false;
  for (uint32_t i = 0; i < plan_.programs.size(); ++i) {
    const PlannedProgram& one = plan_.programs[i];
    if (states_[i].started || !states_[i].failure.empty() || one.start > now) continue;
    const auto lost = std::ranges::find_if(one.after, [&](uint32_t other) { return readiness(other) == Readiness::never; });
    if (lost != one.after.end()) {
      states_[i].failure = "did not start: a program that it waits for ended before it was ready";
      any = true;
    } else if (std::ranges::all_of(one.after, [&](uint32_t other) { return readiness(other) == Readiness::ready; })) {
      start(i, now);
      any = true;
    }
  }
  return any;
}

void ProgramHosts::start(uint32_t number, Time now) {
  const PlannedProgram& one = plan_.programs[number];
  ProgramStart how{.command = one.command,
                   .environment = one.environment,
                   .output = one.output,
                   .errors = one.errors,
                   .namespaces = namespaces_,
                   .shared_memory = plan_.folder + "/shm"};
  std::string names;
  for (uint32_t i = 0; i < nics_.size(); ++i) names += (i > 0 ? " " : "") + plan_.names[i] + "=" + text_of(nics_[i].ip);
  const auto set = [&](const char* name, const std::string& value) { how.environment.push_back(name + ("=" + value)); };
  set(kTurnsVariable, turns_.path());
  set(kPlaceVariable, std::to_string(turns_.take_place(number, one.nic)));
  set(kProgramVariable, std::to_string(number));
  set(kNamesVariable, names);
  turns_.set_compute(number, one.compute);
  states_[number].started = now;
  turns_.set_process(number, start_program(how));
}

}  // namespace weir
