#include "endpoint/reliable_stream.h"

#include <bit>

namespace weir {

ReliableStream::ReliableStream(uint32_t qpn, const QueuePairParameters& parameters, const StreamContext& context,
                               QpCounters& by_pair)
    : qpn_(qpn),
      parameters_(parameters),
      context_(context),
      by_pair_(by_pair),
      sizes_(parameters.sizes.empty() ? MessageSizes(parameters.stream.message_bytes, parameters.stream.total_bytes)
                                      : MessageSizes(parameters.sizes)),
      sequence_(parameters.stream.first_psn) {
  require_attributes(attributes());
}

MemoryRegion ReliableStream::region(uint8_t* bytes, uint32_t domain) {
  return {.data = bytes,
          .address = 0,
          .length = UINT64_MAX,
          .domain = domain,
          .access = kLocalWrite | kRemoteWrite,
          .owner = nullptr,
          .scratch = true};
}

QueueAttributes ReliableStream::attributes() const {
  QueueAttributes attributes = parameters_.transport;
  attributes.domain = context_.domain;
  attributes.access = kRemoteWrite;
  attributes.path_mtu = parameters_.stream.path_mtu;
  attributes.remote_qpn = parameters_.remote_qpn;
  attributes.send_psn = attributes.receive_psn = parameters_.stream.first_psn;
  attributes.max_rd_atomic = 1;
  attributes.max_dest_rd_atomic = 0;
  attributes.informs = context_.informs;
  return attributes;
}

void ReliableStream::connect(uint32_t send_depth, uint32_t receive_depth, QueuePairState state) {
  const TransportContext context{context_.memory, *this, context_.counters, context_.payload};
  connection_ = std::make_unique<ReliableConnection>(qpn_, context, send_depth, receive_depth);
  connection_->modify(QueuePairState::init, attributes());
  connection_->modify(QueuePairState::rtr, attributes());
  if (state == QueuePairState::rts) connection_->modify(QueuePairState::rts, attributes());
}

void ReliableStream::begin(Time now) {
  now_ = now;
  role_ = Role::sends;
  connect(parameters_.outstanding, 1, QueuePairState::rts);
  replenish();
}

void ReliableStream::close() {
  role_ = Role::over;
  connection_.reset();
}

// Messages complete in order: the work request's id is free to say when it was posted.
void ReliableStream::post() {
  while (under_way_ < parameters_.outstanding) {
    const uint32_t bytes = sizes_.next();
    if (bytes == 0) return;
    SendWork work;
    work.id = static_cast<uint64_t>(now_);
    work.opcode = parameters_.stream.operation == Operation::write ? WorkOpcode::write : WorkOpcode::send;
    work.flags = kSignaled;
    work.length = bytes;
    work.local_key = context_.key;
    work.remote_key = context_.key;  // the peer has its region in the same place
    work.remote_address = parameters_.remote_address;
    ++under_way_;
    connection_->post_send(work);
  }
}

void ReliableStream::post_receive() {
  ReceiveWork work;
  work.length = kMaxMessage;
  work.local_key = context_.key;
  connection_->post_receive(work);
}

void ReliableStream::complete(const Completion& completion) {
  if (completion.receive) {
    consumed_ += completion.status == WorkStatus::success;
  } else if (completion.status != WorkStatus::success) {
    failed_ = true;
  } else if (completion.retired > 0 && role_ == Role::sends) {
    --under_way_;
    const uint64_t number = completed_++;
    if (context_.listener == nullptr) return;
    context_.listener->message_completed(qpn_, number, completion.bytes, static_cast<Time>(completion.id), now_);
  }
}

// What the connection has completed is replaced once it has done its own work.
void ReliableStream::replenish() {
  if (role_ == Role::receives) {
    for (; consumed_ > 0; --consumed_) post_receive();
    return;
  }
  if (!failed_) post();
  if (!failed_ && under_way_ > 0) return;
  close();
  if (context_.listener != nullptr) context_.listener->stream_ended(qpn_, failed_, now_);
}

bool ReliableStream::receive(Time now, const uint8_t* frame, const PacketMeta& meta) {
  now_ = now;
  const bool for_sender = is_response(meta.opcode);
  if (role_ == Role::over || (role_ != Role::sends && for_sender)) return ++context_.counters.drop_wrong_state, false;
  if (role_ == Role::sends) {
    const bool valid = connection_->receive(now, frame, meta);
    return replenish(), valid;
  }
  if (role_ == Role::none) {
    role_ = Role::receives;
    // A power of two: credits can say it as it is, so that a sender with as many messages under way never waits for them.
    const uint32_t depth = parameters_.stream.operation == Operation::send ? std::bit_ceil(parameters_.outstanding) : 1;
    connect(1, depth, QueuePairState::rtr);
    for (uint32_t i = 0; i < depth; ++i) post_receive();
  }
  // As without acknowledgements: a gap counts when it shows for the first time, and what fills it is no news.
  by_pair_.lost += sequence_.observe(meta.psn).missing;
  const Received before = connection_->received();
  const bool valid = connection_->receive(now, frame, meta);
  count_received(by_pair_, before, connection_->received(), meta);
  return replenish(), valid;
}

bool ReliableStream::take_data(Time now, OutgoingPacket& out) {
  now_ = now;
  const bool taken = connection_->take_data(now, out);
  if (failed_) replenish();
  return taken;
}

void ReliableStream::advance(Time now) {
  now_ = now;
  if (role_ != Role::sends) return;
  connection_->advance(now);
  replenish();
}

}  // namespace weir
