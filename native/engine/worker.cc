#include "engine/worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/native_error.h"
#include "engine/thread_tuning.h"

namespace weir {
namespace {

constexpr Time kCheckInterval = 250 * kMillisecond;
constexpr Time kListenInterval = 5 * kMillisecond;

// Throws NativeError unless both have the same devices, ports and queue pairs.
void require_alike(const WorkerConfig& running, const WorkerConfig& config) {
  bool same = config.switches.size() == running.switches.size() && config.nics.size() == running.nics.size();
  for (size_t i = 0; same && i < config.switches.size(); ++i) {
    same = config.switches[i].ports.size() == running.switches[i].ports.size();
    for (size_t p = 0; same && p < config.switches[i].ports.size(); ++p) {
      same = config.switches[i].ports[p].interface == running.switches[i].ports[p].interface;
    }
  }
  for (size_t i = 0; same && i < config.nics.size(); ++i) {
    same = config.nics[i].queue_pairs.size() == running.nics[i].queue_pairs.size() &&
           config.nics[i].port.interface == running.nics[i].port.interface;
  }
  if (!same) {
    throw NativeError("INVALID_CONFIG", 0, "", "devices, ports or queue pairs differ from those that run",
                      "stop and start again to change them");
  }
}

WorkerConfig checked(WorkerConfig config) {
  check(config);
  return config;
}

}  // namespace

Worker::Worker(WorkerConfig config, PortFactory factory)
    : config_(laid_out(checked(std::move(config)))),
      factory_(std::move(factory)),
      own_memory_(config_.shared ? nullptr : config_.memory()),
      memory_(config_.shared ? config_.shared->memory() : *own_memory_),
      pool_(memory_, config_.share, config_.shared ? config_.shared->workers() : 1),
      lent_packets_(memory_, pool_),
      records_(1 << 16),
      punted_(256),
      injected_(256),
      scratch_(std::make_unique<PuntedFrame>()),
      waker_(std::make_shared<Waker>()),
      wait_policy_(config_, devices_, counters_, link_news_, *waker_) {
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
      devices_.settle_counters();
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
  if (!ready() || nic >= nics().size() || nics()[nic]->verbs() == nullptr) return false;
  return nics()[nic]->verbs()->commands.push(command);
}

void Worker::wake() { waker_->wake(); }

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
    for (Device* device : devices_.all()) device->stop_traffic(monotonic_now());
  });
}

void Worker::reconfigure(WorkerConfig changed, std::span<Worker* const> others) {
  const WorkerConfig config = laid_out(std::move(changed));
  require_alike(config_, config);
  for (const Worker* other : others) require_alike(other->config_, config);
  for (const SwitchDeviceConfig& device : config.switches) check(device);
  for (const NicDeviceConfig& device : config.nics) check(device.parameters);
  // One waits for the next, the last for all: none of them waits for another while it runs.
  const std::function<void(size_t)> hold = [&](size_t next) {
    if (next < others.size()) return others[next]->between_turns([&] { hold(next + 1); });
    devices_.reconfigure(config);
    for (Worker* other : others) other->devices_.reconfigure(config);
  };
  between_turns([&] { hold(0); });
}

void Worker::run() {
  try {
    open_ports();
    const ThreadTuning tuning = tune_thread(config_, memory_);
    fidelity_.real_time = tuning.real_time;
    fidelity_.tuning = tuning.refused;
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
    doorbell_.ring();
  }
}

void Worker::send_injected() {
  while (injected_.pop(*scratch_)) {
    const std::span<Device* const> devices = devices_.all();
    const bool exists = scratch_->device < devices.size() && scratch_->port < devices[scratch_->device]->ports().size();
    const PacketId id = exists ? pool_.allocate(scratch_->length) : kNoPacket;
    if (id == kNoPacket) {
      ++fidelity_.inject_refused;
      continue;
    }
    pool_[id].reset();
    pool_[id].ingress_port = kNoIngress;
    pool_[id].length = scratch_->length;
    std::copy_n(scratch_->bytes, pool_[id].length, pool_.data(id));
    devices[scratch_->device]->ports()[scratch_->port].send(pool_, id);
  }
}

// Checks from time to time, when a port is known to change, and as soon as the kernel says that a link has changed.
void Worker::check_ports(Time now) {
  bool due = now - checked_ >= kCheckInterval || now >= change_due_;
  if (now - listened_ >= kListenInterval) {
    listened_ = now;
    due = link_news_.take() || due;
  }
  if (!due) return;
  checked_ = now;
  change_due_ = kNever;
  for (const auto& device : switches()) device->tell_storms(now, records_);
  for (size_t device = 0; device < devices_.all().size(); ++device) {
    std::vector<WirePort>& ports = devices_.all()[device]->ports();
    for (size_t port = 0; port < ports.size(); ++port) {
      const WirePort::Changes changes = ports[port].check(now);
      change_due_ = std::min(change_due_, ports[port].port().next_state_change());
      if (!changes.any()) continue;
      if (changes.up) devices_.all()[device]->link_changed(port);
      const auto at = static_cast<uint32_t>(port);
      if (changes.stall) {
        const double stalled = ports[port].transmit_stalled() ? 1 : 0;
        const double stuck = ports[port].receive_stuck() ? 1 : 0;
        const double falls_back = ports[port].falls_back() ? 1 : 0;
        records_.push({now, Record::Kind::stall, static_cast<uint16_t>(device), at, {stalled, stuck, falls_back}});
      }
      if (changes.queues) {
        const PortQueues& queues = ports[port].queues();
        const double in = queues.receive_zero_copy ? 1 : 0, out = queues.transmit_zero_copy ? 1 : 0;
        const auto receive = static_cast<double>(queues.receive);
        records_.push({now, Record::Kind::queues, static_cast<uint16_t>(device), at, {receive, in, out}});
      }
      if (!changes.up && !changes.mtu && !changes.reopened) continue;
      wait_policy_.forget_descriptors();
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
  devices_.settle_counters();
  if (last) {
    for (Device* device : devices_.all()) {
      for (WirePort& port : device->ports()) {
        port.settle();
        for (const auto meaning : {CounterMeaning::overrun, CounterMeaning::refused, CounterMeaning::thrown}) {
          fidelity_.host_drops += port.counters().sum(meaning);
        }
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
  last ? doorbell_.ring() : doorbell_.ring_seldom(now);
}

}  // namespace weir
