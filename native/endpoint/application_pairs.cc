#include "endpoint/application_pairs.h"

#include <string>

#include "base/native_error.h"

namespace weir {

uint32_t ApplicationPairs::create(const VerbsQueuePairParameters& parameters) {
  const uint32_t index = nic().pairs.create(parameters);
  if (index == kNone) return 0;
  nic().flow_table->reset(index, nic().pairs[index], nic().now);
  return nic().pairs[index].qpn;
}

const QueuePair* ApplicationPairs::find(uint32_t qpn) const {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  return index == kNone ? nullptr : &nic().pairs[index];
}

QpCounters* ApplicationPairs::counters(uint32_t qpn) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  return index == kNone ? nullptr : &nic().pairs[index].counters;
}

bool ApplicationPairs::destroy(uint32_t qpn) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone) return false;
  end(index, qpn);
  return true;
}

std::unique_ptr<VerbsTransport> ApplicationPairs::give_back(uint32_t qpn) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone) return nullptr;
  flows().forget_pair(index);
  std::unique_ptr<VerbsTransport> out(static_cast<VerbsTransport*>(nic().pairs[index].transport.release()));
  events_.end();
  return out;
}

void ApplicationPairs::end(uint32_t index, uint32_t qpn) {
  flows().forget_pair(index);
  nic().groups.forget(qpn);
  nic().pairs[index].transport.reset();
  events_.end();  // it may have been another's turn since
}

void ApplicationPairs::attach_group(uint32_t qpn, const IpAddress& group) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone || !nic().pairs[index].datagram()) {
    throw NativeError("INVALID_QPN", 0, "", "there is no queue pair of datagrams " + std::to_string(qpn),
                      "it may have been destroyed");
  }
  if (!nic().groups.attach(group, qpn)) {
    throw NativeError("NO_RESOURCES", 0, "", "no room for one more member of a multicast group",
                      "4096 groups, and 256 queue pairs in each, are as many as can be: leave some of them");
  }
}

bool ApplicationPairs::abandon(uint32_t qpn, std::optional<uint32_t> told) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone || !nic().pairs.abandon(index, told)) return false;
  flows().attend_to_pair(index);
  events_.end();
  return true;
}

void ApplicationPairs::modify(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path,
                              uint8_t priority, Rate rate_cap) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone) {
    throw NativeError("INVALID_QPN", 0, "", "there is no queue pair " + std::to_string(qpn), "it may have been destroyed");
  }
  QueuePair& qp = nic().pairs[index];
  QueuePairParameters parameters = qp.parameters;
  parameters.remote_qpn = attributes.remote_qpn;
  parameters.path = path;
  parameters.priority = priority;
  parameters.rate_cap = rate_cap;
  parameters.transport = attributes;
  if (nic().hears(kHearsAcknowledgements)) parameters.transport.informs = true;
  if (nic().hears(kHearsTelemetry)) parameters.transport.telemetry = true;
  check(parameters);
  if (to == QueuePairState::init || to == QueuePairState::rtr)
    require_room(nic().pool, attributes.path_mtu, nic().hears(kHearsTelemetry));
  qp.verbs()->modify(to, parameters.transport);
  if (to == QueuePairState::reset) flows().forget_pair(index);
  if (to == QueuePairState::rtr) {
    qp.parameters = parameters;
    qp.connected = !qp.datagram();
    nic().flow_table->reset(index, qp, nic().now);
    flows().bind_to_group(index);
  }
  if (to == QueuePairState::rts) {
    qp.parameters.rate_cap = rate_cap;
    nic().flow_table->set_cap(index, rate_cap);
    flows().repace_pair(index);
  }
  flows().attend_to_pair(index);
  events_.end();
}

void ApplicationPairs::post_send(uint32_t qpn, const SendWork& work, uint32_t times) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone) return;
  nic().pairs[index].verbs()->post_send(work, times);
  flows().attend_to_pair(index);
  events_.end();
}

void ApplicationPairs::attend_to(uint32_t qpn) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index == kNone) return;
  flows().attend_to_pair(index);
  events_.end();
}

void ApplicationPairs::post_receive(uint32_t qpn, const ReceiveWork& work, uint32_t times) {
  const uint32_t index = nic().pairs.find_verbs(qpn);
  if (index != kNone) nic().pairs[index].verbs()->post_receive(work, times);
}

}  // namespace weir
