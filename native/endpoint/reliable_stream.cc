#include "endpoint/reliable_stream.h"

#include <array>
#include <bit>

#include "base/random.h"

namespace weir {
namespace {

// Pause from the failure of a connection to the next. The peer may refuse what it is sent, and that at once.
constexpr Time kPause = 100 * kMillisecond;
// One for the message under way, one for that behind it.
constexpr uint32_t kEndless = 2;
// READs under way, as many as mlx5 has.
constexpr uint8_t kReads = 16;
// Indexed by Operation.
constexpr std::array kOpcodes{WorkOpcode::write, WorkOpcode::send, WorkOpcode::read};

}  // namespace

ReliableStream::ReliableStream(uint32_t qpn, const QueuePairParameters& parameters, const StreamContext& context,
                               QpCounters& by_pair)
    : qpn_(qpn),
      parameters_(parameters),
      context_(context),
      by_pair_(by_pair),
      sizes_(parameters.sizes.empty() ? MessageSizes(parameters.stream.message_bytes, parameters.stream.total_bytes)
                                      : MessageSizes(parameters.sizes)),
      unacknowledged_(sizes_),
      demand_(parameters.on_demand ? std::make_unique<Demand>() : nullptr),
      sequence_(parameters.stream.first_psn),
      endless_(begins_again() ? receive_depth() : 0) {
  require_attributes(attributes(0));
}

MemoryRegion ReliableStream::region(uint8_t* bytes, uint8_t* sink, uint32_t domain) {
  return {.data = bytes,
          .address = 0,
          .length = UINT64_MAX,
          .domain = domain,
          .access = kLocalWrite | kRemoteWrite | kRemoteRead,
          .owner = nullptr,
          .scratch = true,
          .sink = sink};
}

QueueAttributes ReliableStream::attributes(uint32_t first_psn) const {
  QueueAttributes attributes = parameters_.transport;
  attributes.domain = context_.domain;
  attributes.access = parameters_.reads() ? kRemoteRead : kRemoteWrite;
  attributes.path_mtu = parameters_.stream.path_mtu;
  attributes.remote_qpn = parameters_.remote_qpn;
  attributes.send_psn = attributes.receive_psn = first_psn;
  attributes.max_rd_atomic = parameters_.reads() ? kReads : 1;
  attributes.max_dest_rd_atomic = parameters_.reads() ? kReads : 0;
  attributes.informs = context_.informs;
  attributes.telemetry = context_.telemetry;
  return attributes;
}

// Ready to receive.
std::unique_ptr<StreamConnection> ReliableStream::connect(uint32_t send_depth, uint32_t receive_depth, uint32_t first_psn) {
  const TransportContext context{context_.memory, *this, context_.counters, context_.payload};
  SharedReceives* const shared = begins_again() ? &endless_ : nullptr;
  auto connection = std::make_unique<StreamConnection>(qpn_, context, send_depth, receive_depth, shared);
  connection->modify(QueuePairState::init, attributes(first_psn));
  connection->modify(QueuePairState::rtr, attributes(first_psn));
  return connection;
}

// ---- sending ----

void ReliableStream::begin(Time now) {
  now_ = now;
  open();
  replenish();
}

void ReliableStream::open() {
  uint32_t first_psn = parameters_.stream.first_psn;
  SendWork opening;
  if (begins_again()) {
    Random random(parameters_.connection_seed, qpn_, ++opened_);
    first_psn = static_cast<uint32_t>(random.next() >> 32) & kPsnMask;
    opening.immediate = static_cast<uint32_t>(random.next() >> 32);
  }
  sends_ = connect(parameters_.outstanding, 1, first_psn);
  sends_->modify(QueuePairState::rts, attributes(first_psn));
  if (!begins_again()) return;
  opening.opcode = WorkOpcode::write_immediate;
  opening.flags = kSignaled;
  opening_ = true;
  sends_->post_send(opening);
}

void ReliableStream::fall_back() {
  sends_.reset();
  failed_ = opening_ = false;
  under_way_ = 0;
  sizes_ = unacknowledged_;
  if (demand_ != nullptr) demand_->next = demand_->offset = demand_->acknowledged = 0;
  resumes_at_ = now_ + kPause;
  tell(false);
}

// Tells once of each turn for the better or worse.
void ReliableStream::tell(bool connected) {
  const Told news = connected ? Told::connected : Told::failed;
  if (told_ == news) return;
  told_ = news;
  if (context_.listener != nullptr) context_.listener->stream_connected(qpn_, connected ? WorkStatus::success : why_, now_);
}

// Messages that it has asked for are still received.
void ReliableStream::close() {
  over_ = true;
  opening_ = false;
  resumes_at_ = kNever;
  if (!parameters_.reads() || under_way_ == 0 || failed_) sends_.reset();
  if (!begins_again()) receives_.reset();
}

void ReliableStream::post() {
  if (demand_ != nullptr) return post_demanded();
  while (under_way_ < parameters_.outstanding) {
    const uint32_t bytes = sizes_.next();
    if (bytes == 0) return;
    post(kOpcodes[static_cast<size_t>(parameters_.stream.operation)], bytes, 0);
  }
}

// Messages complete in order: the work request's id is free to say when it was posted.
void ReliableStream::post(WorkOpcode opcode, uint32_t bytes, uint32_t immediate) {
  SendWork work;
  work.id = static_cast<uint64_t>(now_);
  work.opcode = opcode;
  work.flags = kSignaled;
  work.length = bytes;
  work.local_key = context_.key;
  work.remote_key = context_.key;  // the peer has its region in the same place
  work.remote_address = parameters_.remote_address;
  work.immediate = immediate;
  ++under_way_;
  sends_->post_send(work);
}

bool ReliableStream::post(Time now, uint32_t word, uint64_t bytes) {
  now_ = now;
  demand_->messages.push_back({word, bytes, now});
  if (sends_ == nullptr) return resumes_at_ == kNever && !over_;
  replenish();
  return false;
}

void ReliableStream::post_demanded() {
  Demand& demand = *demand_;
  const bool sends = parameters_.stream.operation == Operation::send;
  while (under_way_ < parameters_.outstanding && demand.next < demand.messages.size()) {
    const Demand::Message& message = demand.messages[demand.next];
    const uint64_t left = message.bytes - demand.offset;
    if (left > kMaxMessage) {
      post(WorkOpcode::write, kMaxMessage, 0);
      demand.offset += kMaxMessage;
      continue;
    }
    post(sends ? WorkOpcode::send_immediate : WorkOpcode::write_immediate, static_cast<uint32_t>(left), message.word);
    demand.offset = 0;
    ++demand.next;
  }
}

// The oldest work request of a stream on demand is.
void ReliableStream::acknowledge() {
  Demand& demand = *demand_;
  const Demand::Message message = demand.messages.front();
  demand.acknowledged += kMaxMessage;
  if (demand.acknowledged < message.bytes) return;
  demand.acknowledged = 0;
  demand.messages.pop_front();
  --demand.next;
  const uint64_t number = completed_++;
  if (context_.listener == nullptr) return;
  context_.listener->message_completed(qpn_, number, message.bytes, message.posted, now_);
  context_.listener->posted_message(MessageListener::Posted::acknowledged, qpn_, message.word, now_);
}

void ReliableStream::complete(const Completion& completion) {
  if (completion.receive) {
    if (completion.status != WorkStatus::success) return;
    ++consumed_;
    // The first request of a connection is no message.
    const bool message = demand_ != nullptr && !accepting_;
    if (message && context_.listener != nullptr)
      context_.listener->posted_message(MessageListener::Posted::arrived, qpn_, completion.immediate, now_);
  } else if (completion.status != WorkStatus::success) {
    failed_ = true;
    if (completion.status != WorkStatus::flushed) why_ = completion.status;
  } else if (completion.retired > 0) {
    if (opening_) {
      opening_ = false;
      return tell(true);
    }
    --under_way_;
    by_pair_.rx_messages += parameters_.reads() ? 1 : 0;
    if (over_) return;
    if (demand_ != nullptr) return acknowledge();
    unacknowledged_.next();
    const uint64_t number = completed_++;
    if (context_.listener == nullptr) return;
    context_.listener->message_completed(qpn_, number, completion.bytes, static_cast<Time>(completion.id), now_);
  }
}

// Receives that the connections have completed are replaced once they have done their own work.
void ReliableStream::replenish() {
  for (; consumed_ > 0; --consumed_) post_receive();
  if (sends_ == nullptr || over_ || (opening_ && !failed_)) return;
  if (!failed_) post();
  if (!failed_ && (under_way_ > 0 || demand_ != nullptr)) return;
  if (failed_ && begins_again()) return fall_back();
  close();
  if (context_.listener != nullptr) context_.listener->stream_ended(qpn_, failed_, now_);
}

bool ReliableStream::take_data(Time now, OutgoingPacket& out) {
  now_ = now;
  const bool taken = data_source()->take_data(now, out);
  if (failed_) replenish();
  return taken;
}

void ReliableStream::advance(Time now) {
  now_ = now;
  if (resumes_at_ <= now) {
    resumes_at_ = kNever;
    return open();
  }
  if (sends_ == nullptr || over_) return;
  sends_->advance(now);
  replenish();
}

// ---- receiving ----

void ReliableStream::post_receive() {
  ReceiveWork work;
  work.length = kMaxMessage;
  work.local_key = context_.key;
  if (begins_again()) {
    endless_.push(work);
  } else {
    receives_->post_receive(work);
  }
}

// Whether a request is the first of a connection.
bool ReliableStream::opens(const uint8_t* frame, const PacketMeta& meta) const {
  return begins_again() && plain_opcode(meta.opcode) == kOpcodeRcWriteOnlyImmediate && meta.payload_length == 0 &&
         load_bth(frame + meta.bth_offset).partition_key == kDefaultPartitionKey;
}

// Whatever takes up a receive: a power of two, which credits can say as it is, so that a sender with as many messages under way
// never waits for them.
uint32_t ReliableStream::receive_depth() const {
  const uint32_t whole = std::bit_ceil(parameters_.outstanding);
  if (parameters_.on_demand) return whole;
  if (begins_again()) return kEndless;
  return parameters_.stream.operation == Operation::send ? whole : 1;
}

// The connection receives from this PSN on; packets before it are over.
void ReliableStream::accept(uint32_t first_psn) {
  const uint32_t depth = receive_depth();
  endless_.clear();
  sequence_ = SequenceCheck(first_psn);
  receives_ = connect(1, depth, first_psn);
  for (uint32_t i = 0; i < depth; ++i) post_receive();
}

// Where both ends know the first PSN, any packet says that the peer is there.
bool ReliableStream::accepts() {
  if (receives_ == nullptr && !over_ && !begins_again()) accept(parameters_.stream.first_psn);
  return receives_ != nullptr;
}

void ReliableStream::receive_trimmed(Time now, const uint8_t* frame, const PacketMeta& meta) {
  if (!is_response(plain_opcode(meta.opcode))) {
    if (accepts()) receives_->receive_trimmed(now, frame, meta);
  } else if (sends_ != nullptr) {
    sends_->receive_trimmed(now, frame, meta);
  }
}

// An acknowledgement, or what a READ has asked for: each packet of that has a PSN of those which the request takes up.
bool ReliableStream::receive_answer(Time now, const uint8_t* frame, const PacketMeta& meta) {
  if (sends_ == nullptr) return ++context_.counters.drop_wrong_state, false;
  const bool has_data = parameters_.reads() && plain_opcode(meta.opcode) != kOpcodeRcAcknowledge;
  const SequenceCheck::Verdict verdict = has_data ? sequence_.observe(meta.psn) : SequenceCheck::Verdict{};
  const Received before = sends_->received();
  const bool valid = sends_->receive(now, frame, meta);
  const Received& after = sends_->received();
  count_received(by_pair_, before, after, meta.bth_offset);
  by_pair_.arrived += has_data ? 1 : 0;
  by_pair_.lost += verdict.missing;
  by_pair_.duplicate += verdict.duplicate && after.packets == before.packets ? 1 : 0;
  return replenish(), valid;
}

bool ReliableStream::receive(Time now, const uint8_t* frame, const PacketMeta& meta) {
  now_ = now;
  if (is_response(plain_opcode(meta.opcode))) return receive_answer(now, frame, meta);
  const bool opening = opens(frame, meta);
  if (opening) {
    const uint8_t* immediate = frame + meta.bth_offset + kBthHeader + kRethHeader;
    const uint64_t number = uint64_t{load_be32(immediate)} << 32 | meta.psn;
    if (receives_ == nullptr || number != peers_number_) accept(meta.psn);
    peers_number_ = number;
  }
  if (!accepts()) return ++context_.counters.drop_wrong_state, false;
  // Losses count as without acknowledgements: a gap when it shows for the first time, and the packets that fill it are no news.
  if (!parameters_.reads()) {
    by_pair_.lost += sequence_.observe(meta.psn).missing;
    ++by_pair_.arrived;
  }
  const Received before = receives_->received();
  accepting_ = opening;
  const bool valid = receives_->receive(now, frame, meta);
  accepting_ = false;
  Received after = receives_->received();
  if (opening) after.messages = before.messages;
  count_received(by_pair_, before, after, meta.bth_offset);
  return replenish(), valid;
}

}  // namespace weir
