#include "endpoint/queue_pair_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "endpoint/stream_transport.h"
#include "transport/abandoned_connection.h"
#include "transport/datagram.h"
#include "transport/reliable_connection.h"
#include "wire/classify.h"

namespace weir {
namespace {

constexpr uint32_t kMaxPayload = 4'096;
constexpr uint32_t kStreamDomain = UINT32_MAX;

// The key of the region of streams is the same at every NIC, whatever it has to hide of others: peers write to it, and what they
// write nobody reads.
uint32_t add_stream_region(MemoryTable& memory, uint8_t* bytes, uint8_t* sink) {
  const uint32_t key = memory.add(ReliableStream::region(bytes, sink, kStreamDomain));
  const uint32_t common = KeySequence(0).next();
  return memory.rename(key, common) ? common : key;
}

}  // namespace

QueuePairTable::QueuePairTable(const NicParameters& parameters, const std::vector<QueuePairParameters>& streams,
                               const PacketPool& pool, CompletionSink* completions)
    : streams_(static_cast<uint32_t>(streams.size())),
      size_(streams_ + parameters.verbs_queue_pairs),
      first_qpn_(parameters.first_qpn),
      mac_(parameters.mac),
      has_payload_(pool.has_payload()),
      completions_(completions),
      generations_(parameters.verbs_queue_pairs),
      memory_(parameters.memory_regions + 1, parameters.key_secret),
      payload_(has_payload_ ? 2 * kMaxPayload : kMaxPayload),
      stream_context_{.bytes = payload_.data(),
                      .memory = memory_,
                      .key = add_stream_region(memory_, payload_.data(), has_payload_ ? payload_.data() + kMaxPayload : nullptr),
                      .domain = kStreamDomain,
                      .counters = counters_,
                      .listener = parameters.listener,
                      .payload = has_payload_,
                      .informs = (hears(parameters.congestion) & kHearsAcknowledgements) != 0,
                      .telemetry = (hears(parameters.congestion) & kHearsTelemetry) != 0} {
  for (size_t i = 0; i < kMaxPayload; ++i) payload_[i] = static_cast<uint8_t>(i);
  pairs_.reserve(size_);  // transports refer to what is in them
  for (const QueuePairParameters& stream : streams) {
    QueuePair& qp = pairs_.emplace_back(stream);
    qp.qpn = first_qpn_ + static_cast<uint32_t>(pairs_.size()) - 1;
    qp.connected = true;
    if (stream.reliable) {
      qp.kind = QueuePair::Kind::reliable_stream;
      qp.transport = std::make_unique<ReliableStream>(qp.qpn, qp.parameters, stream_context_, qp.counters);
    } else {
      qp.transport = std::make_unique<StreamTransport>(qp.qpn, qp.parameters, stream_context_, qp.counters);
    }
    if (stream.path.source_mac != mac_) own_macs_.insert(stream.path.source_mac);
  }
  for (uint32_t i = 0; i < parameters.verbs_queue_pairs; ++i) pairs_.emplace_back(QueuePairParameters{});
}

uint32_t QueuePairTable::find(uint32_t qpn) const {
  const uint32_t stream = qpn - first_qpn_;
  if (stream < streams_) return stream;
  if (generations_.empty()) return kNone;
  const uint32_t place = streams_ + qpn % static_cast<uint32_t>(generations_.size());
  return pairs_[place].qpn == qpn && pairs_[place].transport != nullptr ? place : kNone;
}

// The number of a place changes with every queue pair in it, so that what is still on its way to the old one finds nobody. A
// place is free again once no list of those that wait for the link holds it any more. Null: there is none.
QueuePair* QueuePairTable::place_for(const VerbsQueuePairParameters& parameters) {
  const auto places = static_cast<uint32_t>(generations_.size());
  if (parameters.qpn != 0) {
    QueuePair& qp = pairs_[streams_ + parameters.qpn % places];
    if (!is_free(qp)) return nullptr;
    qp = QueuePair(QueuePairParameters{});
    qp.qpn = parameters.qpn;
    return &qp;
  }
  for (uint32_t place = 0; place < places; ++place) {
    const uint32_t block = lent_block_of(place);
    if (parameters.block >= 0 ? block != static_cast<uint32_t>(parameters.block) : (lent_blocks_ >> block & 1) != 0) continue;
    QueuePair& qp = pairs_[streams_ + place];
    if (!is_free(qp)) continue;
    uint32_t& generation = generations_[place];
    // The last generation would have kMulticastQpn.
    generation = generation + 2 < (1u << 24) / places ? generation + 1 : 1;
    const uint32_t qpn = generation * places + place;
    if (qpn <= kGsiQpn || qpn - first_qpn_ < streams_) continue;
    qp = QueuePair(QueuePairParameters{});
    qp.qpn = qpn;
    return &qp;
  }
  return nullptr;
}

uint32_t QueuePairTable::create(const VerbsQueuePairParameters& parameters) {
  QueuePair* const place = place_for(parameters);
  if (place == nullptr) return kNone;
  QueuePair& qp = *place;
  const uint32_t qpn = qp.qpn;
  if (parameters.transport != nullptr) {
    qp.kind = parameters.unreliable ? QueuePair::Kind::unreliable : QueuePair::Kind::connection;
    qp.transport.reset(parameters.transport);
    return static_cast<uint32_t>(place - pairs_.data());
  }
  const TransportContext context{
      .memory = memory_, .completions = *completions_, .counters = counters_, .addresses = &address_handles_};
  if (parameters.link != nullptr) {
    using Service = RelayedTransport::Service;
    const auto [kind, service] = parameters.datagram     ? std::pair(QueuePair::Kind::datagram, Service::datagram)
                                 : parameters.unreliable ? std::pair(QueuePair::Kind::unreliable, Service::unreliable)
                                                         : std::pair(QueuePair::Kind::connection, Service::connection);
    qp.kind = kind;
    qp.transport = std::make_unique<RelayedTransport>(qpn, context, *parameters.link, service);
  } else if (parameters.datagram) {
    qp.kind = QueuePair::Kind::datagram;
    qp.transport = std::make_unique<Datagram>(qpn, context, parameters.send_depth, parameters.receive_depth);
  } else {
    qp.kind = QueuePair::Kind::connection;
    qp.transport = std::make_unique<ReliableConnection>(qpn, context, parameters.send_depth, parameters.receive_depth);
  }
  return static_cast<uint32_t>(place - pairs_.data());
}

// Places of the first half are for all others.
int QueuePairTable::lend_block() {
  constexpr uint32_t kBlock = 1u << kLentBlockShift;
  if (generations_.size() != kBlock * kLentBlocks) return -1;
  for (uint32_t block = kLentBlocks / 2; block < kLentBlocks; ++block) {
    if ((lent_blocks_ >> block & 1) != 0) continue;
    const auto first = pairs_.begin() + streams_ + block * kBlock;
    if (!std::all_of(first, first + kBlock, is_free)) continue;
    lent_blocks_ = static_cast<uint16_t>(lent_blocks_ | 1u << block);
    return static_cast<int>(block);
  }
  return -1;
}

bool QueuePairTable::abandon(uint32_t index, std::optional<uint32_t> told) {
  QueuePair& qp = pairs_[index];
  if (qp.kind != QueuePair::Kind::connection || !qp.connected || !qp.verbs()->may_receive()) return false;
  const auto& relayed = static_cast<const RelayedTransport&>(*qp.transport);
  const TransportContext context{.memory = memory_, .completions = *completions_, .counters = counters_};
  const uint32_t unanswered = told.value_or(relayed.unanswered()) & 0xffffff;
  const QueueAttributes attributes = relayed.attributes();
  qp.kind = QueuePair::Kind::abandoned;
  qp.transport = std::make_unique<AbandonedConnection>(qp.qpn, context, attributes, unanswered, !told);
  return true;
}

void QueuePairTable::take_path(uint32_t index, const RocePath& path) {
  QueuePair& qp = pairs_[index];
  qp.headers = RoceTemplate(path);
  if (has_payload_) return;
  uint8_t frame[kMaxHeaders];
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  classify(frame, qp.headers.build_data(frame, header, nullptr, 0), qp.shape);
}

}  // namespace weir
