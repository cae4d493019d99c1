#include "engine/nic_applications.h"

#include <set>
#include <string>

#include "base/native_error.h"

namespace weir {
namespace {

// Time for which a peer is told that a program has ended: as long as the usual timeouts and retries may take.
constexpr Time kAbandoned = 60 * kSecond;

}  // namespace

void NicApplications::take(Time now) {
  take_work();
  programs_.take(nic_);
  programs_.witness();
  if (nic_.waits_for_programs() && !programs_.crowded(nic_.now())) nic_.programs_have_room();
  if (!abandoned_.empty() && abandoned_.front().until <= now) reclaim_pair();
}

void NicApplications::take_work() {
  for (WorkCommand command; rings_.commands.pop(command);) {
    const SendWork& work = command.work;
    if (command.receive) {
      nic_.applications().post_receive(command.qpn, {work.id, work.local_address, work.length, work.local_key}, command.times);
    } else {
      nic_.applications().post_send(command.qpn, work, command.times);
    }
  }
}

bool NicApplications::close_program(uint32_t number) {
  ProgramLink* const link = programs_.find(number);
  if (link == nullptr) return false;
  programs_.count(number, nic_, port());
  link->drop_frames(nic_.transport_counters());
  for (const uint32_t qpn : std::set(programs_.queue_pairs(number))) {
    const LentPairNews* told = news(qpn);
    const auto expected = told == nullptr ? std::nullopt : std::optional(told->expected.load(std::memory_order_relaxed));
    if (nic_.applications().abandon(qpn, expected)) {
      owners_.erase(qpn);
      abandoned_.push_back({qpn, nic_.now() + kAbandoned});
    } else {
      destroy_queue_pair(qpn);
    }
  }
  if (const LentPath* path = programs_.path(number); path != nullptr) nic_.applications().take_block_back(path->block());
  return programs_.close(number);
}

LentDescriptors NicApplications::lend_path(uint32_t number, const LentNicConfig& config) {
  if (programs_.find(number) == nullptr || programs_.path(number) != nullptr) return {};
  // Those of programs that were killed make room.
  int block = nic_.applications().lend_block();
  for (; block < 0 && !abandoned_.empty(); block = nic_.applications().lend_block()) reclaim_pair();
  if (block < 0) return {};
  try {
    std::unique_ptr<LentPath> path = LentPath::lend(ports_.front().port(), block, config);
    if (path == nullptr) {
      nic_.applications().take_block_back(block);
      return {};
    }
    const LentDescriptors out{block, path->config(), path->socket()};
    programs_.give_path(number, std::move(path));
    return out;
  } catch (...) {
    nic_.applications().take_block_back(block);
    throw;
  }
}

uint32_t NicApplications::owner(uint32_t qpn) const {
  const auto found = owners_.find(qpn);
  return found == owners_.end() ? 0 : found->second;
}

const LentPairNews* NicApplications::news(uint32_t qpn) {
  const auto owner = owners_.find(qpn);
  if (owner == owners_.end() || programs_.path(owner->second) == nullptr) return nullptr;
  const LentPairNews& told = programs_.find(owner->second)->lent_news().pairs[qpn % (1u << kLentBlockShift)];
  return told.qpn.load(std::memory_order_acquire) == qpn ? &told : nullptr;
}

void NicApplications::reclaim_pair() {
  nic_.applications().destroy(abandoned_.front().qpn);
  abandoned_.pop_front();
}

// The living come first.
uint32_t NicApplications::create_or_reclaim(const VerbsQueuePairParameters& parameters) {
  uint32_t qpn = nic_.applications().create(parameters);
  for (; qpn == 0 && !abandoned_.empty(); qpn = nic_.applications().create(parameters)) reclaim_pair();
  return qpn;
}

uint32_t NicApplications::create_queue_pair(const VerbsQueuePairParameters& parameters) {
  if (parameters.program != 0) return create_for_program(parameters);
  budget_.require(parameters.send_depth, parameters.receive_depth);
  const uint32_t qpn = create_or_reclaim(parameters);
  if (qpn == 0) {
    throw NativeError("NO_RESOURCES", 0, "", "no queue pair is left on this device", "destroy queue pairs that are not used");
  }
  budget_.take(qpn, parameters.send_depth, parameters.receive_depth);
  return qpn;
}

uint32_t NicApplications::create_for_program(VerbsQueuePairParameters parameters) {
  parameters.link = programs_.find(parameters.program);
  if (parameters.link == nullptr) throw NativeError("INVALID_PROGRAM", 0, "", "there is no such program", "it may have ended");
  std::set<uint32_t>& held = programs_.queue_pairs(parameters.program);
  uint32_t qpn = 0;
  if (held.size() < kProgramQueuePairs) {
    // What may come to go by the program's own path has a number of its block.
    const LentPath* path = programs_.path(parameters.program);
    if (path != nullptr && !parameters.datagram) {
      parameters.block = path->block();
      qpn = nic_.applications().create(parameters);
      parameters.block = -1;
    }
    if (qpn == 0) qpn = create_or_reclaim(parameters);
  }
  if (qpn == 0) {
    throw NativeError("NO_RESOURCES", 0, "", "no queue pair is left for this program", "destroy queue pairs that are not used");
  }
  held.insert(qpn);
  owners_[qpn] = parameters.program;
  return qpn;
}

bool NicApplications::destroy_queue_pair(uint32_t qpn) {
  take_work();
  const QueuePair* pair = nic_.applications().find(qpn);
  if (pair == nullptr) return false;
  if (const auto owner = owners_.find(qpn); owner != owners_.end()) {
    programs_.forget(owner->second, qpn, pair->counters);
    owners_.erase(owner);
    return nic_.applications().destroy(qpn);
  }
  nic_.applications().destroy(qpn);
  budget_.give_back(qpn);
  return true;
}

uint32_t NicApplications::create_address_handle(const RocePath& path) {
  const uint32_t handle = nic_.applications().create_address_handle(path);
  if (handle != AddressTable::kNone) return handle;
  throw NativeError("NO_RESOURCES", 0, "",
                    "no address handle is left on this device: it has " + std::to_string(AddressTable::kMost),
                    "destroy address handles that are not used");
}

bool NicApplications::destroy_address_handle(uint32_t handle) {
  take_work();
  return nic_.applications().destroy_address_handle(handle);
}

bool NicApplications::attach_group(uint32_t qpn, const IpAddress& group) {
  nic_.applications().attach_group(qpn, group);
  if (port() != nullptr) port()->port().take_groups();
  return true;
}

}  // namespace weir
