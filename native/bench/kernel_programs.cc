#include "bench/kernel_programs.h"

#include <linux/bpf.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/native_error.h"

namespace weir::bench {
namespace {

constexpr const char* kRights = "needs root in the initial user namespace";
constexpr uint32_t kTcxIngress = 46;    // BPF_TCX_INGRESS of later headers
constexpr uint32_t kBatch = 64;         // frames per turn of the kernel
constexpr int32_t kLatest = 1'000'000;  // ns that are made up for
constexpr int32_t kXdpDrop = XDP_DROP;
constexpr int32_t kTcNext = -1;  // TCX_NEXT
constexpr int32_t kTcDrop = 2;   // TCX_DROP

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

int checked(int result, const char* what, const char* hint = kRights) {
  if (result < 0) throw NativeError::from_errno("bpf", what, hint);
  return result;
}

bpf_insn instruction(int code, int to, int from, int offset, int32_t constant) {
  bpf_insn one{};
  one.code = static_cast<uint8_t>(code);
  one.dst_reg = static_cast<uint8_t>(to) & 0xf;
  one.src_reg = static_cast<uint8_t>(from) & 0xf;
  one.off = static_cast<int16_t>(offset);
  one.imm = constant;
  return one;
}
bpf_insn set(int to, int32_t constant) { return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, constant); }
bpf_insn copy(int to, int from) { return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
bpf_insn add(int to, int32_t constant) { return instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, constant); }
bpf_insn add_register(int to, int from) { return instruction(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
bpf_insn load(int to, int from, int offset) { return instruction(BPF_LDX | BPF_MEM | BPF_DW, to, from, offset, 0); }
bpf_insn store(int to, int offset, int from) { return instruction(BPF_STX | BPF_MEM | BPF_DW, to, from, offset, 0); }
bpf_insn call(int32_t helper) { return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
bpf_insn leave() { return instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
bpf_insn jump(int over) { return instruction(BPF_JMP | BPF_JA, 0, 0, over, 0); }
bpf_insn jump_if_zero(int what, int over) { return instruction(BPF_JMP | BPF_JEQ | BPF_K, what, 0, over, 0); }
bpf_insn jump_if_below(int left, int right, int over) { return instruction(BPF_JMP | BPF_JLT | BPF_X, left, right, over, 0); }

int create_map(uint32_t type, uint32_t value_bytes) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = sizeof(uint32_t);
  attributes.value_size = value_bytes;
  attributes.max_entries = 1;
  return checked(bpf(BPF_MAP_CREATE, attributes), "cannot make a BPF map");
}

int load_program(uint32_t type, uint32_t attach_type, std::span<const bpf_insn> code) {
  char log[4096] = {};
  bpf_attr attributes{};
  attributes.prog_type = type;
  attributes.expected_attach_type = attach_type;
  attributes.insns = address(code.data());
  attributes.insn_cnt = static_cast<uint32_t>(code.size());
  attributes.license = address("Dual MIT/GPL");
  attributes.log_buf = address(log);
  attributes.log_size = sizeof log;
  attributes.log_level = 4;  // statistics only, unless it is refused
  return checked(bpf(BPF_PROG_LOAD, attributes), "the kernel refuses a program of the benchmark", log);
}

void look_up(int map, void* value) {
  const uint32_t key = 0;
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(&key);
  attributes.value = address(value);
  checked(bpf(BPF_MAP_LOOKUP_ELEM, attributes), "cannot read a BPF map");
}

void update(int map, const void* value) {
  const uint32_t key = 0;
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(&key);
  attributes.value = address(value);
  checked(bpf(BPF_MAP_UPDATE_ELEM, attributes), "cannot write a BPF map");
}

Time now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

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
            jump_if_below(0, 1, 11),  // to the drop
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
  action.sa_handler = ignore;  // without SA_RESTART
  sigaction(SIGALRM, &action, nullptr);
  State before{};
  look_up(map_.get(), &before);
  for (Time left = end - now(); left > 0; left = end - now()) {
    // Again and again, for the case that it rings between two calls.
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

DropCounter::DropCounter(int interface_index)
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
            set(0, kTcDrop),
            leave(),
            set(0, kTcNext),
            leave(),
        };
        return load_program(BPF_PROG_TYPE_SCHED_CLS, kTcxIngress, code);
      }()),
      link_([&] {
        bpf_attr attributes{};
        attributes.link_create.prog_fd = static_cast<uint32_t>(program_.get());
        attributes.link_create.target_ifindex = static_cast<uint32_t>(interface_index);
        attributes.link_create.attach_type = kTcxIngress;
        return checked(bpf(BPF_LINK_CREATE, attributes), "cannot count what comes in", "needs Linux 6.6");
      }()) {}

uint64_t DropCounter::count() const {
  std::vector<uint64_t> counts(possible_cpus());
  look_up(map_.get(), counts.data());
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return sum;
}

}  // namespace weir::bench
