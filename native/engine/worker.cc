#include "engine/worker.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr Time kDoorbellInterval = 20 * kMillisecond;
constexpr Time kCheckInterval = 250 * kMillisecond;
constexpr Time kListenInterval = 5 * kMillisecond;
constexpr Time kOffsetInterval = 10 * kMillisecond;

Time read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

WorkerConfig checked(WorkerConfig config) {
  check(config);
  return config;
}

}  // namespace

Time monotonic_now() { return read_clock(CLOCK_MONOTONIC); }

Worker::Worker(WorkerConfig config, PortFactory factory)
    : config_(checked(std::move(config))),
      factory_(std::move(factory)),
      own_memory_(config_.shared ? nullptr : config_.memory()),
      memory_(config_.shared ? config_.shared->memory() : *own_memory_),
      pool_(memory_, config_.share, config_.shared ? config_.shared->workers() : 1),
      lent_packets_(memory_, pool_),
      records_(1 << 16),
      punted_(256),
      injected_(256),
      scratch_(std::make_unique<PuntedFrame>()),
      waker_(std::make_shared<Waker>()) {
  clock_.read = monotonic_now;
  if (config_.shared) config_.shared->attend(config_.share, waker_);
}

Worker::~Worker() { stop(); }

void Worker::open() {
  std::unique_lock lock(mutex_);
  if (std::exchange(started_, true)) throw NativeError("INVALID_STATE", 0, "", "the worker was opened before", "make another");
  thread_ = std::thread([this] { run(); });
  changed_.wait(lock, [this] { return opened_ok_ || error_ != nullptr; });
  if (error_ == nullptr) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(error_);
}

void Worker::begin(Time at) {
  const std::lock_guard lock(mutex_);
  begin_at_ = at;
  changed_.notify_all();
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  waker_->ring();
  thread_.join();
  opened_.clear();
}

void Worker::between_turns(const std::function<void()>& action) {
  std::unique_lock lock(mutex_);
  // Once begun, the thread is building devices until it is ready.
  if (opened_ok_ && begin_at_ != kNever) changed_.wait(lock, [this] { return ready() || ended_; });
  if (!ready() || ended_) return action();
  action_ = &action;
  action_error_ = nullptr;
  action_waits_.store(true, std::memory_order_release);
  waker_->ring();
  changed_.wait(lock, [this] { return action_ == nullptr || ended_; });
  if (std::exchange(action_, nullptr) != nullptr) return action();
  if (action_error_ != nullptr) std::rethrow_exception(action_error_);
}

void Worker::look(const std::function<void()>& action) {
  between_turns([&] {
    if (ready() && !ended_) {
      for (Device* device : devices_) device->settle_counters();
      counters_.publish(turned_);
    }
    action();
  });
}

bool Worker::inject(uint16_t device, uint16_t port, std::span<const uint8_t> bytes) {
  const bool taken = injected_.push(device, port, 0, bytes);
  waker_->ring();
  return taken;
}

bool Worker::post(size_t nic, const WorkCommand& command) {
  if (!ready() || nic >= nics_.size() || nics_[nic]->verbs() == nullptr) return false;
  return nics_[nic]->verbs()->commands.push(command);
}

void Worker::wake() { waker_->wake(); }

bool Worker::work_waits() const {
  if (config_.shared && config_.shared->exchange().waiting(config_.share)) return true;
  for (const auto& nic : nics_) {
    if (nic->verbs() != nullptr && !nic->verbs()->commands.empty()) return true;
    if (nic->programs() != nullptr && nic->programs()->waiting()) return true;
  }
  return false;
}

// The doorbell rings at once when frames or completions have come for the application, but only once until it is looked at.
void Worker::announce() {
  if (!doorbell_) return;
  if (announced_.load(std::memory_order_seq_cst)) {
    // Asked again behind a fence: else rearm_doorbell() might come in between what was pushed and this, and see neither.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (announced_.load(std::memory_order_seq_cst)) return;
  }
  bool waits = !punted_.empty();
  for (const auto& nic : nics_) waits = waits || (nic->verbs() != nullptr && !nic->verbs()->completions.empty());
  if (!waits) return;
  announced_.store(true, std::memory_order_seq_cst);
  doorbell_();
}

void Worker::run_action() {
  if (!action_waits_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  action_waits_.store(false, std::memory_order_relaxed);
  if (action_ == nullptr) return;
  try {
    (*action_)();
  } catch (...) {
    action_error_ = std::current_exception();
  }
  action_ = nullptr;
  changed_.notify_all();
}

void Worker::stop_traffic() {
  between_turns([this] {
    for (Device* device : devices_) device->stop_traffic(monotonic_now());
  });
}

void Worker::check_change(const WorkerConfig& config) const {
  bool same = config.switches.size() == config_.switches.size() && config.nics.size() == config_.nics.size();
  for (size_t i = 0; same && i < config.switches.size(); ++i) {
    same = config.switches[i].ports.size() == config_.switches[i].ports.size();
    for (size_t p = 0; same && p < config.switches[i].ports.size(); ++p) {
      same = config.switches[i].ports[p].interface == config_.switches[i].ports[p].interface;
    }
  }
  for (size_t i = 0; same && i < config.nics.size(); ++i) {
    same = config.nics[i].queue_pairs.size() == config_.nics[i].queue_pairs.size() &&
           config.nics[i].port.interface == config_.nics[i].port.interface;
  }
  if (!same) {
    throw NativeError("INVALID_CONFIG", 0, "", "devices, ports or queue pairs differ from those that run",
                      "stop and start again to change them");
  }
}

void Worker::apply(const WorkerConfig& config) {
  for (size_t i = 0; i < switches_.size(); ++i) switches_[i]->reconfigure(config.switches[i]);
  for (size_t i = 0; i < nics_.size(); ++i) {
    nics_[i]->reconfigure(config.nics[i]);
  }
}

void Worker::reconfigure(const WorkerConfig& config, std::span<Worker* const> others) {
  check_change(config);
  for (const Worker* other : others) other->check_change(config);
  for (const SwitchDeviceConfig& device : config.switches) check(device);
  for (const NicDeviceConfig& device : config.nics) check(device.parameters);
  // One waits for the next, the last for all: none of them waits for another while it runs.
  const std::function<void(size_t)> hold = [&](size_t next) {
    if (next < others.size()) return others[next]->between_turns([&] { hold(next + 1); });
    apply(config);
    for (Worker* other : others) other->apply(config);
  };
  between_turns([&] { hold(0); });
}

void Worker::run() {
  try {
    open_ports();
    tune();
    Time begin = kNever;
    {
      std::unique_lock lock(mutex_);
      opened_ok_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return begin_at_ != kNever || stopping_.load(std::memory_order_acquire); });
      begin = begin_at_;
    }
    if (begin != kNever) {
      build_devices(begin);
      loop(begin);
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  } catch (...) {
    {
      const std::lock_guard turning(turning_);
      turns_ = false;
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    error_ = std::current_exception();
    if (!opened_ok_) {
      changed_.notify_all();
      return;
    }
    try {
      throw;
    } catch (const std::exception& e) {
      failure_ = e.what();
    } catch (...) {
      failure_ = "unknown error";
    }
    failed_.store(true, std::memory_order_release);
    records_.push({monotonic_now(), Record::Kind::ended, 0, 0, {1}});
    if (doorbell_) doorbell_();
  }
}

// The two clocks are read around each other; a reading that was interrupted in between is not taken.
void Worker::refresh_clock() {
  clock_.now = monotonic_now();
  if (offset_checked_ != 0 && clock_.now - offset_checked_ < kOffsetInterval) return;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Time before = monotonic_now();
    const Time real = read_clock(CLOCK_REALTIME);
    const Time after = monotonic_now();
    if (after - before > 2 * kMicrosecond && (attempt < 2 || offset_checked_ != 0)) continue;
    clock_.realtime_offset = before + (after - before) / 2 - real;
    offset_checked_ = after;
    return;
  }
}

void Worker::send_injected() {
  while (injected_.pop(*scratch_)) {
    const bool exists = scratch_->device < devices_.size() && scratch_->port < devices_[scratch_->device]->ports().size();
    const PacketId id = exists ? pool_.allocate(scratch_->length) : kNoPacket;
    if (id == kNoPacket) {
      ++fidelity_.inject_refused;
      continue;
    }
    pool_[id].reset();
    pool_[id].ingress_port = kNoIngress;
    pool_[id].length = scratch_->length;
    std::copy_n(scratch_->bytes, pool_[id].length, pool_.data(id));
    devices_[scratch_->device]->ports()[scratch_->port].send(pool_, id);
  }
}

// Checks from time to time, and as soon as the kernel says that a link has changed.
void Worker::check_ports(Time now) {
  bool due = now - checked_ >= kCheckInterval;
  if (now - listened_ >= kListenInterval) {
    listened_ = now;
    due = link_news_.take() || due;
  }
  if (!due) return;
  checked_ = now;
  for (const auto& device : switches_) device->tell_storms(now, records_);
  for (size_t device = 0; device < devices_.size(); ++device) {
    std::vector<WirePort>& ports = devices_[device]->ports();
    for (size_t port = 0; port < ports.size(); ++port) {
      const WirePort::Changes changes = ports[port].check(now);
      if (!changes.any()) continue;
      if (changes.up) devices_[device]->link_changed(port);
      const auto at = static_cast<uint32_t>(port);
      if (changes.stall) {
        const double stalled = ports[port].transmit_stalled() ? 1 : 0;
        const double stuck = ports[port].receive_stuck() ? 1 : 0;
        const double falls_back = ports[port].falls_back() ? 1 : 0;
        records_.push({now, Record::Kind::stall, static_cast<uint16_t>(device), at, {stalled, stuck, falls_back}});
      }
      if (!changes.up && !changes.mtu && !changes.reopened) continue;
      waits_are_old_ = true;  // descriptors may have changed
      const double up = ports[port].up() ? 1 : 0;
      const auto mtu = static_cast<double>(ports[port].mtu());
      const double reopened = changes.reopened ? 1 : 0;
      records_.push({now, Record::Kind::port, static_cast<uint16_t>(device), at, {up, mtu, reopened}});
    }
  }
}

void Worker::publish(Time now, bool last) {
  if (!last && now - published_ < kPublishInterval) return;
  published_ = now;
  for (Device* device : devices_) device->settle_counters();
  worst_gap_.store(fidelity_.loop_gap.max(), std::memory_order_relaxed);
  if (last) {
    for (Device* device : devices_) {
      for (WirePort& port : device->ports()) {
        port.settle();
        fidelity_.host_drops += port.counters().sum(CounterMeaning::overrun) + port.counters().sum(CounterMeaning::refused);
      }
    }
    fidelity_.record_overflow = records_.overflow();
    fidelity_.punt_refused = punted_.refused();
    fidelity_.inject_refused += injected_.refused();
    records_.push({now, Record::Kind::ended, 0, 0, {0}});
  }
  if (last) {
    counters_.publish(now);
  } else {
    counters_.publish_part(now);
  }
  if (doorbell_ && (last || now - rung_ >= kDoorbellInterval)) {
    rung_ = now;
    doorbell_();
  }
}

}  // namespace weir
