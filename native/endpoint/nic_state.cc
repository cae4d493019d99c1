#include "endpoint/nic_state.h"

#include <algorithm>
#include <cstddef>

#include "base/native_error.h"
#include "endpoint/stream_transport.h"

namespace weir {
namespace {

constexpr size_t kDueBehindFrame = 256;

WEIR_FETCHES inline void fetch_pair(const QueuePair& qp) {
  const auto* behind = reinterpret_cast<const char*>(&qp.parameters.path);
  fetch_bytes(&qp, static_cast<size_t>(behind - reinterpret_cast<const char*>(&qp)));
  fetch_bytes(&qp.counters, 1);
}

const NicParameters& checked(const NicSetup& setup) {
  check(setup.parameters, setup.queue_pairs, setup.pool);
  return setup.parameters;
}

}  // namespace

void check(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, const PacketPool& pool) {
  check(parameters);
  for (const QueuePairParameters& qp : queue_pairs) check(qp, pool, (hears(parameters.congestion) & kHearsTelemetry) != 0);
}

NicState::NicState(const NicSetup& setup)
    : driver(setup.driver),
      pool(setup.pool),
      egress(checked(setup).rate, parameters.scheduler,
             static_cast<uint32_t>(setup.queue_pairs.size()) + setup.parameters.verbs_queue_pairs +
                 StackQueues::count(setup.parameters.stack_queue)),
      parameters(setup.parameters),
      pairs(parameters, setup.queue_pairs, setup.pool, setup.completions),
      stack(parameters.stack_queue),
      notifications(pairs.size(), parameters.verbs_queue_pairs > 0, counters.np_cnp_withheld),
      receive_buffer(parameters.receive_buffer) {
  first_timer = 2 * (pairs.size() + stack.size());
  itself = first_timer + pairs.size();
  // As many as wait behind one frame, but for a NIC of very many: what is sent takes no memory.
  due.reserve(std::min<size_t>(pairs.size() + stack.size(), kDueBehindFrame));
}

Time NicState::next_event() const {
  const bool turn = notifications.next_cnp() <= now;
  const auto cnps = static_cast<uint8_t>(notifications.owed() && turn ? 1u << parameters.cnp_priority : 0u);
  const Time next_cnp = notifications.owed() && !turn ? notifications.next_cnp() : kNever;
  return earliest(egress.next_deadline(cnps), due.empty() ? kNever : egress.busy_until(), retry_at,
                  receive_buffer.next_deadline(), notifications.next_deadline(), next_cnp, storm_at);
}

void NicState::schedule_timer(uint32_t index, Time at) {
  Time& wakes = pairs[index].timer_wakes;
  if (wakes <= at) return;
  wakes = at;
  driver.wake(timer(index), at);
}

void NicState::schedule_flow(uint32_t number, Time at) {
  Time& wakes = flow(number).wakes;
  if (wakes == at) return;
  wakes = at;
  driver.wake(number, at);
}

void NicState::schedule_behind_frame(uint32_t index, Time at) {
  Time& wakes = flow(index).wakes;
  if (wakes == at) return;
  wakes = at;
  const Due own{at, index};
  due.insert(std::ranges::upper_bound(due, own), own);
}

const std::vector<uint32_t>* NicState::members(const uint8_t* frame, const PacketMeta& meta) const {
  if (groups.empty() || meta.destination_qp != kMulticastQpn) return nullptr;
  return groups.members(meta.ip_version,
                        frame + meta.l3_offset + ip_source_offset(meta.ip_version) + ip_address_length(meta.ip_version));
}

// Hardly anything of a queue pair is in a cache when its time comes, where there are many of them.
void NicState::fetch_flow(uint32_t what) const {
  if (what >= flow_table->size()) return;
  fetch_bytes(&flow(what), sizeof(Flow));
  if (what < pairs.size()) fetch_pair(pairs[what]);
}

void NicState::fetch_transport(uint32_t what) const {
  if (what < pairs.size()) return fetch_bytes(pairs[what].transport.get(), sizeof(StreamTransport));
  if (what >= flow_table->size()) return;
  if (const uint32_t first = flow(what).first; first != kNone) fetch_pair(pairs[first]);
}

}  // namespace weir
