// BPF programs of the benchmarks: instructions by name, and what bpf(2) does with maps and programs. Everything throws
// NativeError.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>

namespace weir::bench {

inline bpf_insn instruction(int code, int to, int from, int offset, int32_t constant) {
  bpf_insn one{};
  one.code = static_cast<uint8_t>(code);
  one.dst_reg = static_cast<uint8_t>(to) & 0xf;
  one.src_reg = static_cast<uint8_t>(from) & 0xf;
  one.off = static_cast<int16_t>(offset);
  one.imm = constant;
  return one;
}
inline bpf_insn set(int to, int32_t constant) { return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, constant); }
inline bpf_insn copy(int to, int from) { return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
inline bpf_insn add(int to, int32_t constant) { return instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, constant); }
inline bpf_insn add_register(int to, int from) { return instruction(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
inline bpf_insn load(int to, int from, int offset) { return instruction(BPF_LDX | BPF_MEM | BPF_DW, to, from, offset, 0); }
inline bpf_insn store(int to, int offset, int from) { return instruction(BPF_STX | BPF_MEM | BPF_DW, to, from, offset, 0); }
inline bpf_insn call(int32_t helper) { return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
inline bpf_insn leave() { return instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
inline bpf_insn jump(int over) { return instruction(BPF_JMP | BPF_JA, 0, 0, over, 0); }
inline bpf_insn jump_if_zero(int what, int over) { return instruction(BPF_JMP | BPF_JEQ | BPF_K, what, 0, over, 0); }
inline bpf_insn jump_if_below(int left, int right, int over) {
  return instruction(BPF_JMP | BPF_JLT | BPF_X, left, right, over, 0);
}

inline constexpr int32_t kTcNext = -1;  // TCX_NEXT
inline constexpr int32_t kTcDrop = 2;   // TCX_DROP

int bpf(bpf_cmd command, bpf_attr& attributes);
int checked(int result, const char* what, const char* hint = "needs root in the initial user namespace");
uint64_t address(const void* pointer);

// Keys are numbers of 32 bits.
int create_map(uint32_t type, uint32_t value_bytes, uint32_t entries = 1);
void look_up(int map, void* value, uint32_t key = 0);
void update(int map, const void* value, uint32_t key = 0);
int load_program(uint32_t type, uint32_t attach_type, std::span<const bpf_insn> code);
// Attaches to the first hook behind the driver (tcx ingress, Linux 6.6): returns a link, which ends with its descriptor.
int load_ingress(std::span<const bpf_insn> code);
int attach_ingress(int program, int interface_index);
// The same in the driver: an XDP program.
int load_xdp(std::span<const bpf_insn> code);
int attach_xdp(int program, int interface_index);

}  // namespace weir::bench
