// The part of the worker's handle that serves applications: memory, queue pairs, work and completions.
#include <bit>
#include <cstring>
#include <string>

#include "addon/decode.h"
#include "addon/errors.h"
#include "addon/memory.h"
#include "addon/unwrap.h"
#include "addon/worker_handle.h"

namespace weir {
namespace {

// Words of 64 bits; src/verbs/wire_format.ts has the same picture.
constexpr uint32_t kWorkWords = 10;
constexpr uint32_t kCompletionWords = 4;

NicDevice& nic_at(const Napi::CallbackInfo& info, Worker& worker) {
  const uint32_t index = info[0].IsNumber() ? info[0].As<Napi::Number>().Uint32Value() : UINT32_MAX;
  if (!worker.ready() || index >= worker.nics().size() || worker.nics()[index]->verbs() == nullptr) {
    throw Napi::RangeError::New(info.Env(), "no such NIC, not running yet, or without verbs");
  }
  return *worker.nics()[index];
}

uint32_t number(const Napi::CallbackInfo& info, size_t argument) { return info[argument].ToNumber().Uint32Value(); }

// A number as JavaScript holds it.
uint64_t integer(uint64_t bits) {
  const double value = std::bit_cast<double>(bits);
  return value >= 0 && value < 0x1p63 ? static_cast<uint64_t>(value) : 0;
}

constexpr uint32_t low(uint64_t word) { return static_cast<uint32_t>(word); }
constexpr uint32_t high(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

WorkCommand decode_work(const uint64_t* words) {
  WorkCommand command;
  command.qpn = low(words[0]);
  command.receive = (words[0] >> 32 & 1) != 0;
  command.work.opcode = static_cast<WorkOpcode>(words[0] >> 40 & 0xff);
  command.work.flags = static_cast<uint8_t>(words[0] >> 48);
  command.work.id = words[1];
  command.work.local_address = integer(words[2]);
  command.work.length = low(words[3]);
  command.work.local_key = high(words[3]);
  command.work.remote_address = words[4];
  command.work.remote_key = low(words[5]);
  command.work.immediate = high(words[5]);
  command.work.compare = words[6];
  command.work.swap_add = words[7];
  command.work.address_handle = low(words[8]);
  command.work.remote_qpn = high(words[8]);
  command.work.queue_key = low(words[9]);
  return command;
}

void encode_completion(const Completion& completion, uint64_t* words) {
  words[0] = completion.id;
  words[1] = completion.qpn | static_cast<uint64_t>(completion.status) << 32 | static_cast<uint64_t>(completion.receive) << 40 |
             static_cast<uint64_t>(completion.opcode) << 48 | static_cast<uint64_t>(completion.flags) << 56;
  words[2] = completion.bytes | static_cast<uint64_t>(completion.immediate) << 32;
  words[3] = completion.source_qpn | static_cast<uint64_t>(completion.retired) << 32;
}

Napi::BigUint64Array words_of(const Napi::CallbackInfo& info, size_t argument) {
  if (!info[argument].IsTypedArray() || info[argument].As<Napi::TypedArray>().TypedArrayType() != napi_biguint64_array) {
    throw Napi::TypeError::New(info.Env(), "words must be a BigUint64Array");
  }
  return info[argument].As<Napi::BigUint64Array>();
}

QueueAttributes decode_attributes(const Fields& f) {
  QueueAttributes a;
  f.number("domain", a.domain);
  f.number("partition_key", a.partition_key);
  f.number("access", a.access);
  f.number("path_mtu", a.path_mtu);
  f.number("remote_qpn", a.remote_qpn);
  f.number("send_psn", a.send_psn);
  f.number("receive_psn", a.receive_psn);
  f.number("timeout", a.timeout);
  f.number("retry_count", a.retry_count);
  f.number("rnr_retry", a.rnr_retry);
  f.number("min_rnr_timer", a.min_rnr_timer);
  f.number("max_rd_atomic", a.max_rd_atomic);
  f.number("max_dest_rd_atomic", a.max_dest_rd_atomic);
  f.choice("recovery", a.recovery, {"go-back-n", "selective-repeat"});
  f.number("window", a.window);
  f.number("queue_key", a.queue_key);
  return a;
}

}  // namespace

Napi::Value WorkerHandle::register_memory(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  const std::shared_ptr<LazyMemory>& block = unwrap<Memory>(info[1]).block();
  MemoryRegion region;
  region.data = block->data();
  region.address = reinterpret_cast<uintptr_t>(block->data());
  region.length = block->all().size();
  region.access = static_cast<uint8_t>(number(info, 2));
  region.domain = number(info, 3);
  region.owner = block;
  uint32_t key = 0;
  w.between_turns([&] { key = nic.soft_nic().memory().add(region); });
  return Napi::Number::New(info.Env(), key);
}

Napi::Value WorkerHandle::deregister_memory(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  bool known = false;
  w.between_turns([&] { known = nic.soft_nic().memory().remove(number(info, 1)); });
  return Napi::Boolean::New(info.Env(), known);
}

Napi::Value WorkerHandle::create_queue_pair(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  return translated(info.Env(), [&]() -> Napi::Value {
    VerbsQueuePairParameters parameters;
    const Fields f(info[1], "queue_pair");
    f.boolean("datagram", parameters.datagram);
    f.number("send_depth", parameters.send_depth);
    f.number("receive_depth", parameters.receive_depth);
    uint32_t qpn = 0;
    w.between_turns([&] { qpn = nic.create_queue_pair(parameters); });
    return Napi::Number::New(info.Env(), qpn);
  });
}

Napi::Value WorkerHandle::destroy_queue_pair(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  const uint32_t qpn = number(info, 1);
  bool known = false;
  w.between_turns([&] { known = nic.destroy_queue_pair(qpn); });
  return Napi::Boolean::New(info.Env(), known);
}

Napi::Value WorkerHandle::modify_queue_pair(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  translated(info.Env(), [&] {
    const uint32_t qpn = number(info, 1);
    const Fields f(info[2], "queue_pair");
    QueuePairState to{};
    f.choice("state", to, {"reset", "init", "rtr", "rts", "error"});
    const QueueAttributes attributes = decode_attributes(f);
    const RocePath path = decode_path(f.object("path"));
    uint8_t priority = 0;
    Rate rate_cap = 0;
    f.number("priority", priority);
    f.number("rate_cap", rate_cap);
    w.between_turns([&] { nic.soft_nic().modify_queue_pair(qpn, to, attributes, path, priority, rate_cap); });
  });
  return info.Env().Undefined();
}

Napi::Value WorkerHandle::create_address_handle(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  return translated(info.Env(), [&]() -> Napi::Value {
    const RocePath path = decode_path(Fields(info[1], "path"));
    uint32_t handle = 0;
    w.between_turns([&] { handle = nic.create_address_handle(path); });
    return Napi::Number::New(info.Env(), handle);
  });
}

Napi::Value WorkerHandle::destroy_address_handle(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  const uint32_t handle = number(info, 1);
  bool known = false;
  w.between_turns([&] { known = nic.destroy_address_handle(handle); });
  return Napi::Boolean::New(info.Env(), known);
}

Napi::Value WorkerHandle::post(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  const uint32_t nic = number(info, 0);
  const Napi::BigUint64Array words = words_of(info, 1);
  const size_t count = std::min<size_t>(number(info, 2), words.ElementLength() / kWorkWords);
  size_t taken = 0;
  while (taken < count && w.post(nic, decode_work(words.Data() + taken * kWorkWords))) ++taken;
  if (taken > 0) w.wake();
  return Napi::Number::New(info.Env(), static_cast<double>(taken));
}

Napi::Value WorkerHandle::drain_completions(const Napi::CallbackInfo& info) {
  Worker& w = worker(info);
  NicDevice& nic = nic_at(info, w);
  Napi::BigUint64Array words = words_of(info, 1);
  const size_t room = words.ElementLength() / kCompletionWords;
  size_t count = 0;
  w.rearm_doorbell();
  for (Completion completion; count < room && nic.verbs()->completions.pop(completion); ++count) {
    encode_completion(completion, words.Data() + count * kCompletionWords);
  }
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

}  // namespace weir
