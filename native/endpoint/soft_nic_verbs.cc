// The part of the soft NIC that applications drive: queue pairs that come and go, and their work requests.
#include <string>
#include <utility>

#include "base/native_error.h"
#include "endpoint/soft_nic.h"
#include "transport/datagram.h"
#include "transport/reliable_connection.h"

namespace weir {

// The number of a place changes with every queue pair in it, so that what is still on its way to the old one finds nobody.
uint32_t SoftNic::create_queue_pair(const VerbsQueuePairParameters& parameters) {
  const uint32_t places = parameters_.verbs_queue_pairs;
  for (uint32_t place = 0; place < places; ++place) {
    QueuePair& qp = queue_pairs_[streams_ + place];
    if (qp.transport != nullptr || qp.state == QueuePair::State::ready || qp.answers) continue;
    uint32_t& generation = generations_[place];
    generation = generation + 1 < (1u << 24) / places ? generation + 1 : 1;
    const uint32_t qpn = generation * places + place;
    if (qpn <= kGsiQpn || qpn - parameters_.first_qpn < streams_) continue;
    qp = QueuePair(QueuePairParameters{});
    qp.qpn = qpn;
    qp.datagram = parameters.datagram;
    const TransportContext context{
        .memory = memory_, .completions = *completions_, .counters = transport_counters_, .addresses = &address_handles_};
    if (parameters.datagram) {
      auto transport = std::make_unique<Datagram>(qpn, context, parameters.send_depth, parameters.receive_depth);
      qp.verbs = transport.get();
      qp.transport = std::move(transport);
    } else {
      auto transport = std::make_unique<ReliableConnection>(qpn, context, parameters.send_depth, parameters.receive_depth);
      qp.verbs = transport.get();
      qp.transport = std::move(transport);
    }
    qp.reaction_point.configure(&parameters_.reaction_point, parameters_.rate);
    return qpn;
  }
  return 0;
}

// Its place is free again once no list holds it any more.
bool SoftNic::destroy_queue_pair(uint32_t qpn) {
  const uint32_t index = find_qp(qpn);
  if (index == UINT32_MAX || queue_pairs_[index].verbs == nullptr) return false;
  QueuePair& qp = queue_pairs_[index];
  forget(index);
  qp.transport.reset();
  qp.verbs = nullptr;
  if (!busy()) start_next();  // it may have been another's turn since
  return true;
}

// All that pacing and congestion control know of a queue pair. One that is in the list of those that are ready stays there.
void SoftNic::forget(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  if (qp.started) --active_;
  unbind(index);
  schedule(index, kNever);
  schedule_timer(index, kNever);
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  qp.started = false;
  qp.connected = false;
  qp.reaction_point.configure(&parameters_.reaction_point, parameters_.rate);
  notifications_.forget(index);
  count_limited(qp);
}

void SoftNic::modify_queue_pair(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path,
                                uint8_t priority, Rate rate_cap) {
  const uint32_t index = find_qp(qpn);
  if (index == UINT32_MAX || queue_pairs_[index].verbs == nullptr) {
    throw NativeError("INVALID_QPN", 0, "", "there is no queue pair " + std::to_string(qpn), "it may have been destroyed");
  }
  QueuePair& qp = queue_pairs_[index];
  QueuePairParameters parameters = qp.parameters;
  parameters.remote_qpn = attributes.remote_qpn;
  parameters.path = path;
  parameters.priority = priority;
  parameters.rate_cap = rate_cap;
  check(parameters);
  if (to == QueuePairState::init || to == QueuePairState::rtr) require_room(pool_, attributes.path_mtu);
  qp.verbs->modify(to, attributes);
  if (to == QueuePairState::reset) forget(index);
  if (to == QueuePairState::rtr) {
    qp.parameters = parameters;
    qp.headers = RoceTemplate(path);
    qp.connected = !qp.datagram;
    bind(index);
  }
  if (to == QueuePairState::rts) {
    qp.parameters.rate_cap = rate_cap;
    repace(index);
  }
  serve(index);
}

void SoftNic::post_send(uint32_t qpn, const SendWork& work) {
  const uint32_t index = find_qp(qpn);
  if (index == UINT32_MAX || queue_pairs_[index].verbs == nullptr) return;
  queue_pairs_[index].verbs->post_send(work);
  serve(index);
}

void SoftNic::post_receive(uint32_t qpn, const ReceiveWork& work) {
  const uint32_t index = find_qp(qpn);
  if (index == UINT32_MAX || queue_pairs_[index].verbs == nullptr) return;
  queue_pairs_[index].verbs->post_receive(work);
}

}  // namespace weir
