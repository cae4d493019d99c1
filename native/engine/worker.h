// A native thread that owns ports and devices and runs them to completion, turn by turn.
//
//   Worker(config, factory)   nothing happens yet
//   open()                    starts the thread; returns when its ports are open, throws NativeError if one is not
//   begin(at)                 devices start to live; their times count from `at` (CLOCK_MONOTONIC ns)
//   stop()                    ends and joins the thread; idempotent. After it the distributions may be read.
//
// The file engine/wait_policy.h says how the loop waits between turns. The clock is read once per turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "engine/config.h"
#include "engine/counter_block.h"
#include "engine/doorbell.h"
#include "engine/frame_ring.h"
#include "engine/gap_record.h"
#include "engine/impairment_port.h"
#include "engine/record_ring.h"
#include "engine/shared_switch.h"
#include "engine/wait_policy.h"
#include "engine/waker.h"
#include "engine/worker_clock.h"
#include "engine/worker_devices.h"
#include "io/capture.h"
#include "io/link_news.h"
#include "wire/packet_pool.h"

namespace weir {

class Worker {
 public:
  struct Fidelity {
    Histogram loop_gap;        // ns between the starts of two turns, intended idle sleep left out
    Time longest_gap_at = 0;   // when the longest of them began, from begin() on
    Histogram timer_lateness;  // ns by which turns came after the deadline they were for
    uint64_t busy = 0;         // ns of turns that had something to do
    uint64_t cpu_wait = 0;     // ns for which the thread was ready to run, and others had its CPU
    bool real_time = false;    // it has that priority
    uint64_t host_drops = 0;   // frames that the host lost: ring overruns, truncations, transmit errors
    uint64_t record_overflow = 0;
    uint64_t punt_refused = 0;
    uint64_t inject_refused = 0;      // frames to inject: ring full, too long, no such port, no descriptor
    std::vector<std::string> tuning;  // things that the host did not let us do
  };

  // Throws NativeError: a configuration that does not pass check(), or no descriptor is left.
  Worker(WorkerConfig config, PortFactory factory);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void open();  // once; a second time it throws NativeError INVALID_STATE
  void begin(Time at);
  void stop();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string failure() const { return failure_; }  // valid after stop()

  Doorbell& doorbell() { return doorbell_; }
  SpscRing<Record>& records() { return records_; }
  FrameRing& punted() { return punted_; }
  // Sends a frame out of a port; false if it was not taken. One caller at a time.
  bool inject(uint16_t device, uint16_t port, std::span<const uint8_t> bytes);
  // Work for queue pairs of applications on NIC number `nic`; false if the ring is full or there is none. One caller at a time.
  bool post(size_t nic, const WorkCommand& command);
  // Must follow posting: sees to it that the worker looks soon.
  void wake();
  // A caller that waits for something and polls takes a turn of the loop itself, unless the worker's thread is at it, which from
  // then on leaves the turns to such a helper: no thread has to be woken for frames that come. Must not be called from within
  // between_turns(). Returns whether frames have come or gone; completions that came do not ring.
  bool help();
  // The helper polls no more; without this the thread notices within some 3 ms.
  void rest();
  // Runs `action` on the worker's thread between two turns and waits for it; what it throws is thrown here. Once the thread has
  // ended, runs it here. Meant for configuration and inspection: the poll loop stands still meanwhile.
  void between_turns(const std::function<void()>& action);
  // The same for a look at state, with all counters published before: who reads them after it finds what led to that state.
  void look(const std::function<void()>& action);
  // Senders stop after the packet under way.
  void stop_traffic();
  // Changed parameters for the same devices and ports, here and at `others`, which share a switch with this one: all of them
  // stand still while it is done. Throws NativeError INVALID_CONFIG when devices or ports differ or the parameters do not pass
  // check(), FDB_FULL; then nothing has changed.
  void reconfigure(WorkerConfig changed, std::span<Worker* const> others = {});
  struct PortPlace {
    uint32_t tap = 0;   // the capture's number of it
    size_t device = 0;  // switches first
    size_t port = 0;
  };
  // May be called from open() on: frames of these ports go to `capture` too from then on, of which this worker is the only one to
  // record. Throws NativeError NO_PORT.
  void attach(const std::shared_ptr<Capture>& capture, std::span<const PortPlace> places);
  // Nothing is recorded to it any more.
  void detach(const Capture& capture);
  const GapRecord& gaps() const { return gaps_; }             // any thread
  const CounterBlock& counters() const { return counters_; }  // valid from begin() on, once ready() is true
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  const std::string& name() const { return config_.name; }

  // These may be called after stop(), or between two turns.
  const Fidelity& fidelity() const { return fidelity_; }
  std::vector<std::unique_ptr<SwitchDevice>>& switches() { return devices_.switches(); }
  std::vector<std::unique_ptr<NicDevice>>& nics() { return devices_.nics(); }
  // Null: there is none, or none yet.
  const GraphTraffic* graph() const { return ready() ? devices_.graph() : nullptr; }

 private:
  friend class PortFaults;

  static constexpr Time kPublishInterval = 2 * kMillisecond;  // interval of the counters

  void run();
  void open_ports();
  void build_devices(Time begin);
  void loop(Time begin);
  void send_injected();
  void run_action();
  WirePort* find_port(const PortPlace& place);
  void check_ports(Time now);
  void publish(Time now, bool last);
  // Whether the block has all that was counted.
  bool told() const { return published_ == turned_ && counters_.complete(); }
  Time turn();
  void end_sleep(Time now);
  bool gives_way() const;

  WorkerConfig config_;
  PortFactory factory_;
  WorkerClock clock_;
  std::unique_ptr<PacketMemory> own_memory_;  // null where workers share a switch
  PacketMemory& memory_;
  PacketPool pool_;
  LentPackets lent_packets_;
  std::vector<std::unique_ptr<WirePort>> opened_;
  WorkerDevices devices_;
  std::vector<const CapturePort*> captures_;  // ports that came by attach(), owned by the ports that they wrap
  std::vector<std::pair<CounterLabels, const ImpairmentPort*>> impairments_;
  CounterBlock counters_;
  SpscRing<Record> records_;
  FrameRing punted_;
  FrameRing injected_;
  std::unique_ptr<PuntedFrame> scratch_;
  Doorbell doorbell_;
  bool had_work_ = false;  // true for the last turn: frames came, or something was due
  Time published_ = 0;
  Time turned_ = 0;  // up to when the devices have counted
  Time begin_ = 0;
  Time next_sample_ = kNever;
  Time reset_at_ = kNever;
  Time previous_ = 0;  // when the last turn began
  Time deadline_ = 0;
  Time idle_slept_ = 0;
  Time last_frame_ = 0;
  uint64_t seen_ = 0;
  Time checked_ = 0;          // the ports
  Time change_due_ = kNever;  // when a port is known to change
  Time listened_ = 0;
  LinkNews link_news_;
  std::shared_ptr<Waker> waker_;  // rung by commands, injected frames, other workers and stop()
  WaitPolicy wait_policy_;

  std::mutex turning_;  // its owner turns the loop
  bool turns_ = false;  // valid with it: the devices live
  std::exception_ptr helper_error_;
  std::atomic<Time> helped_{0};

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  bool opened_ok_ = false;
  Time begin_at_ = kNever;
  std::exception_ptr error_;
  const std::function<void()>* action_ = nullptr;  // action of between_turns(), until it has run
  std::exception_ptr action_error_;
  std::atomic<bool> action_waits_{false};
  bool ended_ = false;  // the loop takes no more actions
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ready_{false};
  std::atomic<bool> failed_{false};
  std::string failure_;
  Fidelity fidelity_;
  GapRecord gaps_;
};

void describe(auto& v, Of<Worker::PortPlace> auto& place) {
  v.type("CapturePlace", "A port, and the tap of a capture that is for it.");
  v("tap", place.tap, field::any("Of the capture."));
  v("device", place.device, field::any("Switches first."));
  v("port", place.port, field::any("Of that device."));
}

}  // namespace weir
