// Weir's own use of bpf(2), without libbpf: maps, programs put together from instructions here, links, a test run. The
// instruction set is RFC 9669, the system call bpf(2) and <linux/bpf.h>.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir {

enum class BpfRegister : uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, frame };
enum class BpfSize : uint8_t { word = BPF_W, half = BPF_H, byte = BPF_B, double_word = BPF_DW };
// Test of two words, both unsigned, 32 bits wide with a constant and 64 bits with a register.
enum class BpfTest : uint8_t { equal = BPF_JEQ, not_equal = BPF_JNE, above = BPF_JGT, below = BPF_JLT, any_bit = BPF_JSET };

// Writes instructions one after the other. Jumps go forward, to labels that are bound later.
class BpfCode {
 public:
  using Register = BpfRegister;
  struct Label {
    size_t index;
  };

  void set(Register to, Register from) { put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(Register to, int32_t constant) { put(BPF_ALU64 | BPF_MOV | BPF_K, to, kNone, 0, constant); }
  // The descriptor becomes the map's address when the kernel loads the program.
  void set_map(Register to, int map) {
    put(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, map);
    put(0, kNone, kNone, 0, 0);
  }
  // The same of the first value of an array map, from `offset` on: no look-up is needed for it.
  void set_map_value(Register to, int map, int32_t offset) {
    put(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_VALUE), 0, map);
    put(0, kNone, kNone, 0, offset);
  }
  void add(Register to, Register from) { put(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
  void add(Register to, int32_t constant) { put(BPF_ALU64 | BPF_ADD | BPF_K, to, kNone, 0, constant); }
  void subtract(Register to, Register from) { put(BPF_ALU64 | BPF_SUB | BPF_X, to, from, 0, 0); }
  void bit_and(Register to, int32_t constant) { put(BPF_ALU64 | BPF_AND | BPF_K, to, kNone, 0, constant); }
  void shift_left(Register to, int32_t bits) { put(BPF_ALU64 | BPF_LSH | BPF_K, to, kNone, 0, bits); }
  void shift_right(Register to, int32_t bits) { put(BPF_ALU64 | BPF_RSH | BPF_K, to, kNone, 0, bits); }
  // 16 bits from big endian to the host's order, the rest becomes 0.
  void swap_half(Register to) { put(BPF_ALU | BPF_END | BPF_TO_BE, to, kNone, 0, 16); }
  void load(BpfSize size, Register to, Register address, int16_t offset) {
    put(BPF_LDX | BPF_MEM | static_cast<int>(size), to, address, offset, 0);
  }
  void store(BpfSize size, Register address, int16_t offset, Register from) {
    put(BPF_STX | BPF_MEM | static_cast<int>(size), address, from, offset, 0);
  }
  void store(BpfSize size, Register address, int16_t offset, int32_t constant) {
    put(BPF_ST | BPF_MEM | static_cast<int>(size), address, kNone, offset, constant);
  }
  // Adds a double word to one in memory, as one step for all CPUs.
  void add_atomic(Register address, int16_t offset, Register from) {
    put(BPF_STX | BPF_ATOMIC | BPF_DW, address, from, offset, BPF_ADD);
  }
  // BPF_FUNC_...; r1 to r5 are lost, the result is in r0.
  void call(int32_t helper) { put(BPF_JMP | BPF_CALL, kNone, kNone, 0, helper); }
  // Calls the function by its BTF id, see bpf_kernel_function().
  void call_kernel(uint32_t function) {
    constexpr auto kKernelFunction = static_cast<Register>(2);  // BPF_PSEUDO_KFUNC_CALL
    put(BPF_JMP | BPF_CALL, kNone, kKernelFunction, 0, static_cast<int32_t>(function));
  }
  // Leaves the program with r0.
  void leave() { put(BPF_JMP | BPF_EXIT, kNone, kNone, 0, 0); }

  Label label() { return {labels_++}; }
  void bind(Label label);
  void jump(Label to) { jump_to(to, BPF_JMP | BPF_JA, kNone, kNone, 0); }
  void jump_if(Register left, BpfTest test, Register right, Label to) {
    jump_to(to, BPF_JMP | static_cast<int>(test) | BPF_X, left, right, 0);
  }
  void jump_if(Register left, BpfTest test, int32_t right, Label to) {
    jump_to(to, BPF_JMP32 | static_cast<int>(test) | BPF_K, left, kNone, right);
  }
  // Tests a pointer: a look-up returns one, or 0.
  void jump_if_null(Register pointer, Label to) { jump_to(to, BPF_JMP | BPF_JEQ | BPF_K, pointer, kNone, 0); }

  std::span<const bpf_insn> instructions() const { return code_; }

 private:
  static constexpr Register kNone = Register::r0;  // stands for an operand that there is not

  struct Jump {
    size_t at;
    size_t label;
  };
  void put(int code, Register to, Register from, int16_t offset, int32_t constant);
  void jump_to(Label to, int code, Register left, Register right, int32_t constant);

  std::vector<bpf_insn> code_;
  std::vector<Jump> jumps_;
  size_t labels_ = 0;
};

// All of these return a descriptor that the caller owns (closed on exec), and throw NativeError. They need CAP_BPF and
// CAP_NET_ADMIN (Linux 5.8) in the initial user namespace.

// `flags`: BPF_F_...
int bpf_create_map(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, const char* name,
                   uint32_t flags = 0);
// `flags` as in BPF_PROG_LOAD; `interface_index` for programs bound to a device, else 0. When the verifier refuses the program
// the hint is the end of what it says.
int bpf_load_xdp(std::span<const bpf_insn> code, uint32_t flags, uint32_t interface_index, const char* name);
// A program of type BPF_PROG_TYPE_RAW_TRACEPOINT; needs CAP_PERFMON, too.
int bpf_load_raw_tracepoint(std::span<const bpf_insn> code, const char* name);
// Such a program runs whenever the kernel passes the tracepoint, until the last descriptor of it is closed.
int bpf_open_raw_tracepoint(int program, const char* tracepoint);
// The program runs on the interface, in this thread's network namespace, until the link's last descriptor is closed: also when
// the process is killed. `flags` are XDP_FLAGS_* of <linux/if_link.h>. Returns -1 with errno set where the others throw.
int bpf_link_xdp(int program, int interface_index, uint32_t flags);
// Another program runs in place of the link's, without a moment between. Returns false with errno set.
bool bpf_update_link(int link, int program);

// Runs an XDP program `repeat` times, each time for a frame of `bytes` bytes that the kernel makes, and does with the frames what
// the program says (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18), `batch` of them at a time. Needs no capability. Returns false with
// errno set; what was done until then is done.
bool bpf_run_live(int program, uint32_t bytes, uint32_t repeat, uint32_t batch);

// Sets one element; returns false with errno set.
bool bpf_update(int map, const void* key, const void* value);

// Reads one element; returns false with errno set.
bool bpf_look_up(int map, const void* key, void* value);

// The BTF id of a function of the running kernel that programs may call (kfunc), or 0 if it has none of that name.
uint32_t bpf_kernel_function(const std::string& name);

}  // namespace weir
