// A native thread that owns ports and devices and runs them to completion, turn by turn.
//
//   Worker(config, factory)   nothing happens yet
//   open()                    starts the thread; returns when its ports are open, throws NativeError if one is not
//   begin(at)                 devices start to live; their times count from `at` (CLOCK_MONOTONIC ns)
//   stop()                    ends and joins the thread; idempotent. After it the distributions may be read.
//
// The configuration's Polling says how the loop waits between turns. Without load it sleeps on its descriptors until the next
// deadline, unless it polls busily. The clock is read once per turn.
#pragma once

#include <poll.h>

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
#include "engine/device.h"
#include "engine/frame_ring.h"
#include "engine/impairment_port.h"
#include "engine/nic_device.h"
#include "engine/record_ring.h"
#include "engine/shared_switch.h"
#include "engine/switch_device.h"
#include "engine/waker.h"
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

  // Called on the worker thread: at most every 20 ms while records may wait, once when punted frames or completions have come
  // until rearm_doorbell() is called, and when the loop has ended.
  void set_doorbell(std::function<void()> doorbell) { doorbell_ = std::move(doorbell); }

  // Must precede the reading of punted frames or completions: those that come from now on ring again.
  void rearm_doorbell() { announced_.store(false, std::memory_order_seq_cst); }

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
  void reconfigure(const WorkerConfig& config, std::span<Worker* const> others = {});
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
  // Longest loop gap so far, ns. Any thread.
  uint64_t worst_gap() const { return worst_gap_.load(std::memory_order_relaxed); }
  // The longest of the last 10 to 20 s, as of the last turn.
  uint64_t recent_gap() const { return recent_gap_.load(std::memory_order_relaxed); }
  const CounterBlock& counters() const { return counters_; }  // valid from begin() on, once ready() is true
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  const std::string& name() const { return config_.name; }

  // These may be called after stop(), or between two turns.
  const Fidelity& fidelity() const { return fidelity_; }
  std::vector<std::unique_ptr<SwitchDevice>>& switches() { return switches_; }
  std::vector<std::unique_ptr<NicDevice>>& nics() { return nics_; }

 private:
  static constexpr Time kPublishInterval = 2 * kMillisecond;  // interval of the counters

  void run();
  void tune();
  void open_ports();
  std::unique_ptr<WirePort> open_port(const std::string& device, PortConfig config);
  void build_devices(Time begin);
  WirePort* find_port(const PortPlace& place);
  void loop(Time begin);
  void refresh_clock();
  void send_injected();
  void run_action();
  void check_change(const WorkerConfig& config) const;
  void apply(const WorkerConfig& config);
  void check_ports(Time now);
  void publish(Time now, bool last);
  void note_gap(Time now, uint64_t gap);
  // Whether the block has all that was counted.
  bool told() const { return published_ == turned_ && counters_.complete(); }
  void announce();
  bool work_waits() const;
  Time turn();
  void wait(Time now, Time deadline, Time quiet, std::unique_lock<std::mutex>& turning);
  void sleep_until(Time deadline, Time now, std::unique_lock<std::mutex>& turning);
  void end_sleep(Time now);
  bool comes_little(Time now);
  bool in_bulk(Time now) const;
  void yield(Time now, std::unique_lock<std::mutex>& turning);
  bool gives_way() const;
  void doze(Time duration);
  uint64_t frames_seen() const;
  uint64_t super_frames_seen() const;

  // prompt: super-frames that come closer than this are waited for awake. Waking costs the thread about as much as the packets in
  // them, and even more the sender, in whose time the kernel does it. 64 KiB in each are 5 Gb/s.
  static constexpr Time kBulkGap = 100 * kMicrosecond;

  WorkerConfig config_;
  PortFactory factory_;
  PortClock clock_;
  Time offset_checked_ = 0;
  std::unique_ptr<PacketMemory> own_memory_;  // null where workers share a switch
  PacketMemory& memory_;
  PacketPool pool_;
  LentPackets lent_packets_;
  std::vector<std::unique_ptr<WirePort>> opened_;
  std::vector<std::unique_ptr<SwitchDevice>> switches_;
  std::vector<std::unique_ptr<NicDevice>> nics_;
  std::vector<Device*> devices_;
  std::vector<const CapturePort*> captures_;  // ports that came by attach(), owned by the ports that they wrap
  std::vector<std::pair<CounterLabels, const ImpairmentPort*>> impairments_;
  CounterBlock counters_;
  SpscRing<Record> records_;
  FrameRing punted_;
  FrameRing injected_;
  std::unique_ptr<PuntedFrame> scratch_;
  std::function<void()> doorbell_;
  Time rung_ = 0;
  bool had_work_ = false;  // true for the last turn: frames came, or something was due
  Time napped_ = 0;        // spinning: when its last nap was to end
  Time shares_until_ = 0;  // adaptive, and in bulk: with another thread of this CPU
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
  uint64_t bulk_seen_ = 0;  // super-frames ...
  Time bulk_at_ = 0;        // ... the last of which came then ...
  Time bulk_gap_ = kNever;  // ... and so much later than the one before
  Time counted_from_ = 0;   // prompt: when this quantum began
  uint64_t counted_ = 0;
  bool little_ = true;  // true for the last quantum
  Time checked_ = 0;    // the ports
  Time listened_ = 0;
  LinkNews link_news_;
  std::vector<pollfd> waits_;  // the thread's own
  bool waits_are_old_ = true;
  Time sleeps_from_ = 0;          // time since when nobody has turned the loop, for want of load; 0: somebody does
  bool holds_ = false;            // the counters, meanwhile
  std::shared_ptr<Waker> waker_;  // rung by commands, injected frames, other workers and stop()

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
  std::atomic<bool> announced_{false};  // the doorbell rang for what waits now
  std::atomic<bool> ready_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> worst_gap_{0};
  std::atomic<uint64_t> recent_gap_{0};
  uint64_t gap_of_window_ = 0;
  uint64_t gap_of_last_window_ = 0;
  Time window_began_ = 0;
  std::string failure_;
  Fidelity fidelity_;
};

// CLOCK_MONOTONIC, ns.
Time monotonic_now();

void describe(auto& v, Of<Worker::PortPlace> auto& place) {
  v.type("CapturePlace", "A port, and the tap of a capture that is for it.");
  v("tap", place.tap, field::any("Of the capture."));
  v("device", place.device, field::any("Switches first."));
  v("port", place.port, field::any("Of that device."));
}

}  // namespace weir
