// What Weir needs of bpf(2), without libbpf: maps, programs put together from instructions here, links, a test run. The
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
// Of two words, both unsigned, 32 bits wide with a constant and 64 bits with a register.
enum class BpfTest : uint8_t { equal = BPF_JEQ, not_equal = BPF_JNE, above = BPF_JGT, below = BPF_JLT, any_bit = BPF_JSET };

// Writes instructions one after the other. Jumps go forward, to labels that are bound later.
class BpfCode {
 public:
  using Register = BpfRegister;
  struct Label {
    size_t index;
  };

  void set(Register to, Register from);
  void set(Register to, int32_t constant);
  void set_map(Register to, int map);  // the descriptor becomes the map's address when the kernel loads the program
  void add(Register to, Register from);
  void add(Register to, int32_t constant);
  void bit_and(Register to, int32_t constant);
  void shift_left(Register to, int32_t bits);
  void shift_right(Register to, int32_t bits);
  void swap_half(Register to);  // 16 bits from big endian to the host's order, the rest becomes 0
  void load(BpfSize size, Register to, Register address, int16_t offset);
  void store(BpfSize size, Register address, int16_t offset, Register from);
  void store(BpfSize size, Register address, int16_t offset, int32_t constant);
  void call(int32_t helper);            // BPF_FUNC_...; r1 to r5 are lost, the result is in r0
  void call_kernel(uint32_t function);  // by its BTF id, see bpf_kernel_function()
  void leave();                         // with r0

  Label label();
  void bind(Label label);
  void jump(Label to);
  void jump_if(Register left, BpfTest test, Register right, Label to);
  void jump_if(Register left, BpfTest test, int32_t right, Label to);

  std::span<const bpf_insn> instructions() const { return code_; }

 private:
  struct Jump {
    size_t at;
    size_t label;
  };
  void put(int code, Register to, Register from, int16_t offset, int32_t constant);

  std::vector<bpf_insn> code_;
  std::vector<Jump> jumps_;
  size_t labels_ = 0;
};

// All of these return a descriptor that the caller owns (closed on exec), and throw NativeError. They need CAP_BPF and
// CAP_NET_ADMIN (Linux 5.8) in the initial user namespace.

int bpf_create_map(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, const char* name);
// `flags` as in BPF_PROG_LOAD; `interface_index` for programs bound to a device, else 0. When the verifier refuses the program
// the hint is the end of what it says.
int bpf_load_xdp(std::span<const bpf_insn> code, uint32_t flags, uint32_t interface_index, const char* name);
// The program runs on the interface, in this thread's network namespace, until the link's last descriptor is closed: also when
// the process is killed. `flags` are XDP_FLAGS_* of <linux/if_link.h>. Returns -1 with errno set where the others throw.
int bpf_link_xdp(int program, int interface_index, uint32_t flags);

// Sets one element; returns false with errno set.
bool bpf_update(int map, const void* key, const void* value);

// The BTF id of a function of the running kernel that programs may call (kfunc), or 0 if it has none of that name.
uint32_t bpf_kernel_function(const std::string& name);

}  // namespace weir
