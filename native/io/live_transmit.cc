#include "io/live_transmit.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/native_error.h"
#include "io/bpf.h"

namespace weir {
namespace {

using Label = BpfCode::Label;
using enum BpfRegister;
using enum BpfSize;
using enum BpfTest;

// The kernel collects so many frames for an interface before it hands them over (DEV_MAP_BULK_SIZE). A batch is as large, so that
// the program knows the outcome of one before it begins the next.
constexpr uint32_t kBatch = 16;
constexpr int32_t kStoreBytes = 190;  // BPF_FUNC_xdp_store_bytes, not in the headers of older distributions
constexpr uint32_t kShortest = 14;    // shortest length for which the kernel makes a frame
constexpr size_t kPage = 4096;

// Says what all of it takes where a part of it is refused.
template <class Step>
auto permitted(const Step& step) {
  try {
    return step();
  } catch (NativeError& error) {
    if (error.code == "EPERM" || error.code == "EACCES") {
      error.hint =
          "transmit: live needs CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN in the initial user namespace: run as "
          "root; backend: auto does without";
    }
    throw;
  }
}

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* map_memory(int map, size_t bytes, const char* what) {
  void* memory = ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, map, 0);
  if (memory == MAP_FAILED) throw NativeError::from_errno("mmap", what, "ask for a smaller buffer.total");
  return memory;
}

struct MappedPacketBytes final : MappedBytes {
  explicit MappedPacketBytes(const PacketShape& shape)
      : owned(permitted([&] {
          return bpf_create_map(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), shape.stride, shape.count, "weir_packets", BPF_F_MMAPABLE);
        })) {
    map = owned.get();
    const size_t size = size_t{shape.count} * shape.stride;
    bytes = {static_cast<uint8_t*>(map_memory(map, size, "cannot map packet memory")), size};
  }
  ~MappedPacketBytes() override { ::munmap(bytes.data(), whole_pages(bytes.size())); }
  Descriptor owned;
};

}  // namespace

std::unique_ptr<MappedBytes> map_packet_bytes(const PacketShape& shape) { return std::make_unique<MappedPacketBytes>(shape); }

// Shared with the programs.
struct LiveTransmit::Control {
  struct Frame {
    uint32_t packet, length;
  };
  uint32_t next;    // frame
  uint32_t count;   // number of frames
  uint32_t port;    // the port of all of them
  uint32_t length;  // length of the frames that the kernel makes
  uint32_t taken;   // the interface has so many
  uint32_t failed;  // it can take none, or the program could not make one: no more of them
  uint32_t bulk;    // frames redirected that the kernel has not handed over yet, ...
  uint32_t cpu;     // ... on this CPU
  uint32_t left;    // pages that had not come back when the kernel gave up what it takes them from ...
  uint64_t task;    // ... for this one, which sends
  Frame frames[kMost];
};

LiveTransmit::LiveTransmit(const PacketMemory& memory)
    : control_map_(
          bpf_create_map(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), whole_pages(sizeof(Control)), 1, "weir_live", BPF_F_MMAPABLE)),
      interfaces_(bpf_create_map(BPF_MAP_TYPE_DEVMAP, sizeof(uint32_t), sizeof(uint32_t), kMostPorts, "weir_interfaces")) {
  permitted([&] { load(memory); });
  control_ = static_cast<Control*>(map_memory(control_map_.get(), sizeof(Control), "cannot map a BPF map"));
}

LiveTransmit::~LiveTransmit() {
  if (control_ != nullptr) ::munmap(control_, whole_pages(sizeof(Control)));
}

namespace {

// r6 context, r7 control, r8 frame or its length, r9 packet.
template <class Control>
BpfCode assemble_sender(const PacketMemory& memory, int control, int interfaces) {
  constexpr int16_t kKey = -4;  // place on the stack
  constexpr int32_t kFrames = offsetof(Control, frames);
  static_assert((LiveTransmit::kMost & (LiveTransmit::kMost - 1)) == 0);
  const int32_t headroom = static_cast<int32_t>(memory.shape().headroom);
  const int32_t longest = static_cast<int32_t>(std::min(LiveTransmit::kLongest, memory.shape().stride - memory.shape().headroom));
  BpfCode code;
  const Label drop = code.label(), some = code.label(), inside = code.label(), fits = code.label(), fail = code.label();
  code.set(r6, r1);
  code.set_map_value(r7, control, 0);
  code.load(word, r8, r7, offsetof(Control, next));
  code.load(word, r1, r7, offsetof(Control, count));
  code.jump_if(r8, below, r1, some);
  code.jump(drop);
  code.bind(some);
  code.load(word, r1, r7, offsetof(Control, failed));
  code.jump_if(r1, not_equal, 0, drop);
  code.set(r1, r8);
  code.bit_and(r1, kBatch - 1);
  code.jump_if(r1, not_equal, 0, inside);
  code.load(word, r1, r7, offsetof(Control, taken));
  code.jump_if(r1, not_equal, r8, drop);
  code.bind(inside);
  code.set(r1, r8);
  code.add(r1, 1);
  code.store(word, r7, offsetof(Control, next), r1);
  code.bit_and(r8, LiveTransmit::kMost - 1);
  code.shift_left(r8, 3);
  code.set_map_value(r1, control, kFrames);
  code.add(r1, r8);
  code.load(word, r2, r1, offsetof(typename Control::Frame, packet));
  code.load(word, r8, r1, offsetof(typename Control::Frame, length));
  code.store(word, frame, kKey, r2);
  code.set_map(r1, memory.mapped()->map);
  code.set(r2, frame);
  code.add(r2, kKey);
  code.call(BPF_FUNC_map_lookup_elem);
  code.jump_if_null(r0, fail);
  code.set(r9, r0);
  code.jump_if(r8, below, kShortest, fail);
  code.jump_if(r8, above, longest, fail);
  code.set(r2, r8);
  code.load(word, r1, r7, offsetof(Control, length));
  code.subtract(r2, r1);
  code.jump_if(r2, equal, 0, fits);
  code.set(r1, r6);
  code.call(BPF_FUNC_xdp_adjust_tail);
  code.jump_if(r0, not_equal, 0, fail);
  code.bind(fits);
  code.set(r1, r6);
  code.set(r2, 0);
  code.set(r3, r9);
  code.add(r3, headroom);
  code.set(r4, r8);
  code.call(kStoreBytes);
  code.jump_if(r0, not_equal, 0, fail);
  code.set_map(r1, interfaces);
  code.load(word, r2, r7, offsetof(Control, port));
  code.set(r3, XDP_DROP);  // the outcome where the interface is gone
  code.call(BPF_FUNC_redirect_map);
  code.jump_if(r0, not_equal, XDP_REDIRECT, fail);
  code.load(word, r1, r7, offsetof(Control, bulk));
  code.add(r1, 1);
  code.store(word, r7, offsetof(Control, bulk), r1);
  code.call(BPF_FUNC_get_smp_processor_id);
  code.store(word, r7, offsetof(Control, cpu), r0);
  code.set(r0, XDP_REDIRECT);
  code.leave();
  code.bind(fail);
  code.store(word, r7, offsetof(Control, failed), 1);
  code.bind(drop);
  code.set(r0, XDP_DROP);
  code.leave();
  return code;
}

// Runs at xdp:xdp_devmap_xmit(from, to, sent, dropped, error), which everybody's frames pass. Between a batch's first frame and
// this, no others are handed over on the same CPU; a bulk of another size is not ours.
template <class Control>
BpfCode assemble_counter(int control) {
  constexpr int16_t kSent = 16, kDropped = 24, kError = 32;
  BpfCode code;
  const Label leave = code.label();
  code.set(r6, r1);
  code.set_map_value(r7, control, 0);
  code.load(word, r8, r7, offsetof(Control, bulk));
  code.jump_if(r8, equal, 0, leave);
  code.call(BPF_FUNC_get_smp_processor_id);
  code.load(word, r1, r7, offsetof(Control, cpu));
  code.jump_if(r0, not_equal, r1, leave);
  code.load(double_word, r1, r6, kSent);
  code.load(double_word, r2, r6, kDropped);
  code.set(r3, r1);
  code.add(r3, r2);
  code.jump_if(r3, not_equal, r8, leave);
  code.store(word, r7, offsetof(Control, bulk), 0);
  code.load(word, r2, r7, offsetof(Control, taken));
  code.add(r2, r1);
  code.store(word, r7, offsetof(Control, taken), r2);
  code.call(BPF_FUNC_get_current_pid_tgid);
  code.store(double_word, r7, offsetof(Control, task), r0);
  code.load(double_word, r1, r6, kError);
  code.jump_if(r1, equal, 0, leave);
  code.store(word, r7, offsetof(Control, failed), 1);
  code.bind(leave);
  code.set(r0, 0);
  code.leave();
  return code;
}

// Runs at page_pool_release(pool, pages that are not back, ...), which everybody's pools pass.
template <class Control>
BpfCode assemble_watcher(int control) {
  constexpr int16_t kInFlight = 8;
  BpfCode code;
  const Label leave = code.label();
  code.set(r6, r1);
  code.set_map_value(r7, control, 0);
  code.call(BPF_FUNC_get_current_pid_tgid);
  code.load(double_word, r1, r7, offsetof(Control, task));
  code.jump_if(r0, not_equal, r1, leave);
  code.load(double_word, r1, r6, kInFlight);
  code.store(word, r7, offsetof(Control, left), r1);
  code.bind(leave);
  code.set(r0, 0);
  code.leave();
  return code;
}

}  // namespace

void LiveTransmit::load(const PacketMemory& memory) {
  const BpfCode sender = assemble_sender<Control>(memory, control_map_.get(), interfaces_.get());
  program_.emplace(bpf_load_xdp(sender.instructions(), 0, 0, "weir_transmit"));
  const BpfCode counter = assemble_counter<Control>(control_map_.get());
  counter_.emplace(bpf_load_raw_tracepoint(counter.instructions(), "weir_transmitted"));
  tracepoint_.emplace(bpf_open_raw_tracepoint(counter_->get(), "xdp_devmap_xmit"));
  const BpfCode watcher = assemble_watcher<Control>(control_map_.get());
  watcher_.emplace(bpf_load_raw_tracepoint(watcher.instructions(), "weir_left"));
  left_.emplace(bpf_open_raw_tracepoint(watcher_->get(), "page_pool_release"));
  anchor_.emplace(in_new_namespace([&] {
    const int link = bpf_link_xdp(program_->get(), static_cast<int>(::if_nametoindex("lo")), XDP_FLAGS_SKB_MODE);
    if (link < 0) throw NativeError::from_errno("bpf", "cannot attach an XDP program to a loopback", "needs Linux 5.18");
    link_.emplace(link);
  }));
}

uint32_t LiveTransmit::add_port() {
  if (ports_ == kMostPorts) {
    throw NativeError("INVALID_CONFIG", 0, "", "more than 256 ports of one worker transmit live frames",
                      "spread them over more workers");
  }
  return ports_++;
}

void LiveTransmit::connect(uint32_t port, int interface_index) {
  if (bpf_update(interfaces_.get(), &port, &interface_index)) return;
  throw NativeError::from_errno("bpf", "cannot send live frames to an interface", "backend: af_xdp does without");
}

LiveTransmit::Done LiveTransmit::run(uint32_t port, std::span<const TxFrame> frames) {
  Control& control = *control_;
  uint32_t length = kShortest;
  uint32_t count = 0;
  for (const TxFrame& frame : frames) {
    control.frames[count++] = {frame.packet, frame.length};
    length = std::max(length, frame.length);
  }
  control.next = control.taken = control.failed = control.bulk = control.left = 0;
  control.count = count;
  control.port = port;
  control.length = length;
  // A signal ends it early, EINTR: what was taken until then counts.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool whole = bpf_run_live(program_->get(), length, count, kBatch);
  const int reason = errno;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Done done{.sent = std::min(__atomic_load_n(&control.taken, __ATOMIC_ACQUIRE), count), .left_pages = control.left > 0};
  if (done.sent == count) return done;
  if (!whole) {
    done.refused = reason != EINTR;
    return done;
  }
  // Frames that were redirected and then not told of were refused one by one: the interface takes none at all now.
  done.refused = control.failed != 0 || control.bulk != 0;
  return done;
}

}  // namespace weir
