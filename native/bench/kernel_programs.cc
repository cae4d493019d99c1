#include "bench/kernel_programs.h"

#include <linux/bpf.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "base/native_error.h"
#include "bench/bpf_program.h"
#include "bench/traffic_host.h"

namespace weir::bench {
namespace {

constexpr uint32_t kBatch = 64;         // frames per turn of the kernel
constexpr int32_t kLatest = 1'000'000;  // ns that are made up for
constexpr int32_t kXdpDrop = XDP_DROP;
constexpr int32_t kXdpPass = XDP_PASS;

void ignore(int) {}

// Places for values in a map that has one per CPU.
size_t possible_cpus() {
  std::string text;
  std::getline(std::ifstream("/sys/devices/system/cpu/possible"), text);  // "0-3"
  const size_t dash = text.find_last_of("-,");
  return std::stoul(dash == std::string::npos ? text : text.substr(dash + 1)) + 1;
}

}  // namespace

LiveFrames::LiveFrames(int interface_index, double rate)
    : map_(create_map(BPF_MAP_TYPE_ARRAY, sizeof(State))), program_([&] {
        // r6: the state; r7: the gap between two frames. A frame that is not due yet is dropped, and used again.
        const std::vector<bpf_insn> code{
            instruction(BPF_LD | BPF_DW | BPF_IMM, 6, BPF_PSEUDO_MAP_VALUE, 0, map_.get()),
            instruction(0, 0, 0, 0, 0),
            load(7, 6, offsetof(State, gap)),
            jump_if_zero(7, 9),
            call(BPF_FUNC_ktime_get_ns),
            load(1, 6, offsetof(State, next)),
            jump_if_below(0, 1, 11),  // goes to the drop
            copy(2, 1),
            add(2, kLatest),
            jump_if_below(0, 2, 1),
            copy(1, 0),
            add_register(1, 7),
            store(6, offsetof(State, next), 1),
            load(1, 6, offsetof(State, sent)),
            add(1, 1),
            store(6, offsetof(State, sent), 1),
            set(1, interface_index),
            jump(2),
            set(0, kXdpDrop),
            leave(),
            set(2, 0),
            call(BPF_FUNC_redirect),
            leave(),
        };
        return load_program(BPF_PROG_TYPE_XDP, BPF_XDP, code);
      }()) {
  const State state{static_cast<uint64_t>(now()), rate > 0 ? static_cast<uint64_t>(1e9 / rate + 0.5) : 0, 0};
  update(map_.get(), &state);
}

uint64_t LiveFrames::run(std::span<const uint8_t> frame, Time end) {
  struct sigaction action {};
  action.sa_handler = ignore;  // has no SA_RESTART
  sigaction(SIGALRM, &action, nullptr);
  State before{};
  look_up(map_.get(), &before);
  for (Time left = end - now(); left > 0; left = end - now()) {
    // The timer rings again and again, for the case that it rings between two calls.
    const itimerval timer{{0, 10'000}, {left / kSecond, std::max<Time>(left % kSecond / 1'000, 1)}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    bpf_attr attributes{};
    attributes.test.prog_fd = static_cast<uint32_t>(program_.get());
    attributes.test.data_in = address(frame.data());
    attributes.test.data_size_in = static_cast<uint32_t>(frame.size());
    attributes.test.repeat = 1u << 30;
    attributes.test.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
    attributes.test.batch_size = kBatch;
    if (bpf(BPF_PROG_TEST_RUN, attributes) < 0 && errno != EINTR) checked(-1, "cannot send live frames", "needs Linux 5.18");
  }
  const itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  State after{};
  look_up(map_.get(), &after);
  return after.sent - before.sent;
}

DropCounter::DropCounter(int interface_index, bool xdp)
    : map_(create_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint64_t))),
      program_([&] {
        const std::vector<bpf_insn> code{
            instruction(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
            copy(2, 10),
            add(2, -4),
            instruction(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map_.get()),
            instruction(0, 0, 0, 0, 0),
            call(BPF_FUNC_map_lookup_elem),
            jump_if_zero(0, 5),
            load(1, 0, 0),
            add(1, 1),
            store(0, 0, 1),
            set(0, xdp ? kXdpDrop : kTcDrop),
            leave(),
            set(0, xdp ? kXdpPass : kTcNext),
            leave(),
        };
        return xdp ? load_xdp(code) : load_ingress(code);
      }()),
      link_(xdp ? attach_xdp(program_.get(), interface_index) : attach_ingress(program_.get(), interface_index)) {}

uint64_t DropCounter::count() const {
  std::vector<uint64_t> counts(possible_cpus());
  look_up(map_.get(), counts.data());
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return sum;
}

}  // namespace weir::bench
