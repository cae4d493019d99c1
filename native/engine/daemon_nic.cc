#include "engine/daemon_nic.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

// Throws if the daemon has refused.
void require_agreed(uint32_t error) {
  const auto number = static_cast<int>(error);
  switch (number) {
    case 0:
      return;
    case EIO:
      throw NativeError("NO_DAEMON", number, "", "the NIC's daemon is gone", "start weir nic again, then open the device anew");
    case ENOMEM:
      throw NativeError("NO_RESOURCES", number, "", "the NIC has no place left for this program",
                        std::to_string(kProgramQueuePairs) + " queue pairs and " + std::to_string(kProgramAddressHandles) +
                            " address handles at most: destroy what is not used");
    case EHOSTUNREACH:
      throw NativeError("UNREACHABLE", number, "", "nobody answers at the peer's address",
                        "look whether the peer is up, and on the NIC's link");
    default:
      throw NativeError("REFUSED", number, "", std::string("the NIC's daemon refuses: ") + std::strerror(number), "see its log");
  }
}

void put(ProgramRequest& request, const ProgramWay& way) {
  request.gid = way.gid;
  request.source_index = way.source_index;
  request.traffic_class = way.traffic_class;
  request.service_level = way.service_level;
}

}  // namespace

DaemonNic::DaemonNic(const std::string& socket, std::function<void()> doorbell)
    : ProgramTransports(socket), doorbell_(std::move(doorbell)) {
  start();
}

uint32_t DaemonNic::register_memory(const MemoryRegion& region) {
  const std::lock_guard lock(mutex());
  return memory().add(region);
}

bool DaemonNic::deregister_memory(uint32_t key) {
  const std::lock_guard lock(mutex());
  return memory().remove(key);
}

uint32_t DaemonNic::create_queue_pair(const VerbsQueuePairParameters& parameters) {
  const uint32_t send_depth = parameters.send_depth, receive_depth = parameters.receive_depth;
  budget_.require(send_depth, receive_depth);
  auto pair = std::make_unique<ProgramPair>();
  const Service service = parameters.datagram     ? Service::datagram
                          : parameters.unreliable ? Service::unreliable
                                                  : Service::connection;
  require_agreed(create(*pair, service, send_depth, receive_depth));
  const uint32_t qpn = pair->qpn;
  budget_.take(qpn, send_depth, receive_depth);
  owned_[qpn] = std::move(pair);
  return qpn;
}

void DaemonNic::modify_queue_pair(uint32_t qpn, const ProgramChange& change) {
  const auto found = owned_.find(qpn);
  if (found == owned_.end()) throw NativeError("INVALID_QPN", 0, "", "there is no such queue pair", "it was destroyed");
  ProgramRequest request;
  put(request, change.way);
  require_agreed(ProgramTransports::change(*found->second, change.state, change.attributes, request));
}

bool DaemonNic::destroy_queue_pair(uint32_t qpn) {
  const auto found = owned_.find(qpn);
  if (found == owned_.end()) return false;
  // The last acknowledgement, for one, without which the peer's last request fails.
  let_leave(*found->second);
  {
    const std::lock_guard lock(mutex());
    remove(*found->second);
  }
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyQueuePair;
  request.object = qpn;
  ask(request);
  owned_.erase(found);
  budget_.give_back(qpn);
  return true;
}

ProgramAnswer DaemonNic::create_address_handle(const ProgramWay& way) {
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateAddressHandle;
  put(request, way);
  ++asking_;
  const ProgramAnswer answer = ask(request);
  --asking_;
  require_agreed(answer.error);
  return answer;
}

void DaemonNic::destroy_address_handle(uint32_t handle) {
  let_leave_by(handle);
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyAddressHandle;
  request.object = handle;
  ask(request);
}

void DaemonNic::post(const std::function<bool(WorkCommand&)>& next) {
  const std::lock_guard lock(mutex());
  ProgramPair* last = nullptr;
  for (WorkCommand command; next(command);) {
    ProgramPair* const pair = find(command.qpn);
    if (pair == nullptr) continue;
    if (last != nullptr && last != pair) attend(*last);
    last = pair;
    const SendWork& work = command.work;
    if (command.receive) {
      pair->transport->post_receive({work.id, work.local_address, work.length, work.local_key}, command.times);
    } else {
      pair->transport->post_send(work, command.times);
    }
  }
  if (last != nullptr) attend(*last);
  submit();
}

TransportCounters DaemonNic::counted() {
  const std::lock_guard lock(mutex());
  return counters();
}

void DaemonNic::close() {
  if (!failed()) let_all_leave();
  // While another thread waits for the daemon nothing can be asked: the end of the connection destroys them, too.
  while (!owned_.empty() && !failed() && asking_ == 0) destroy_queue_pair(owned_.begin()->first);
  hang_up();
  stop();
}

void DaemonNic::complete(const Completion& completion) {
  completions_.push(completion);
  if (!announced_.exchange(true)) doorbell_();
}

// Queue pairs that had nothing posted hear of it, too.
void DaemonNic::changed(ProgramPair& pair, QueuePairState from, QueuePairState to) {
  if (failed() && to == QueuePairState::error && from != to) {
    complete({.qpn = pair.qpn, .status = WorkStatus::flushed, .retired = 0});
  }
}

void DaemonNic::ended() {
  over_.store(true, std::memory_order_release);
  doorbell_();
}

}  // namespace weir
