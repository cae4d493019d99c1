#include "bench/arrivals.h"

#include <linux/bpf.h>

#include <algorithm>
#include <cstddef>

#include "bench/bpf_program.h"

namespace weir::bench {
namespace {

constexpr int kBth = 14 + 20 + 8;
constexpr int kWhole = kBth + 12 + 4;
constexpr int kQpn = kBth + 5;  // three bytes, as the PSN
constexpr int kPsn = kBth + 9;
constexpr int kFrame = 10;  // register of the stack's end
constexpr int kKey = -4;    // place on the stack

bpf_insn load_byte(int to, int from, int offset) { return instruction(BPF_LDX | BPF_MEM | BPF_B, to, from, offset, 0); }
bpf_insn load_word(int to, int from, int offset) { return instruction(BPF_LDX | BPF_MEM | BPF_W, to, from, offset, 0); }
bpf_insn store_key(int from) { return instruction(BPF_STX | BPF_MEM | BPF_W, kFrame, from, kKey, 0); }
bpf_insn shift_left(int to, int bits) { return instruction(BPF_ALU64 | BPF_LSH | BPF_K, to, 0, 0, bits); }
bpf_insn jump_if_above(int left, int right, int over) { return instruction(BPF_JMP | BPF_JGT | BPF_X, left, right, over, 0); }
bpf_insn jump_if_not_zero(int what, int over) { return instruction(BPF_JMP | BPF_JNE | BPF_K, what, 0, over, 0); }

// r0: the element of `map` whose key is on the stack, or 0.
std::vector<bpf_insn> look_up_key(int map) {
  return {copy(2, kFrame), add(2, kKey), instruction(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
          instruction(0, 0, 0, 0, 0), call(BPF_FUNC_map_lookup_elem)};
}

// Three bytes of the frame at r2; r3 is lost.
std::vector<bpf_insn> load_three(int to, int offset) {
  return {load_byte(to, 2, offset), shift_left(to, 8),           load_byte(3, 2, offset + 1), add_register(to, 3),
          shift_left(to, 8),        load_byte(3, 2, offset + 2), add_register(to, 3)};
}

// r6: number of the queue pair; r7: of the packet; r8: the time; r9: the PSN.
std::vector<bpf_insn> record(int counts, int stamps, int pairs, uint32_t first_qpn) {
  std::vector<bpf_insn> code{
      load_word(2, 1, offsetof(__sk_buff, data)),
      load_word(3, 1, offsetof(__sk_buff, data_end)),
      copy(4, 2),
      add(4, kWhole),
      jump_if_above(4, 3, 1),
      jump(2),
      set(0, kTcNext),
      leave(),
  };
  const auto append = [&code](const std::vector<bpf_insn>& more) { code.insert(code.end(), more.begin(), more.end()); };
  append(load_three(6, kQpn));
  append(load_three(9, kPsn));
  append({add(6, -static_cast<int32_t>(first_qpn)), call(BPF_FUNC_ktime_get_ns), copy(8, 0), set(1, 0), store_key(1)});
  append(look_up_key(counts));
  append({jump_if_not_zero(0, 2), set(0, kTcNext), leave(), load(7, 0, 0), copy(1, 7), add(1, 1), store(0, 0, 1), store_key(7)});
  append(look_up_key(stamps));
  append({jump_if_zero(0, 1), store(0, 0, 8), store_key(6)});
  append(look_up_key(pairs));
  append({
      jump_if_zero(0, 8),
      load(1, 0, offsetof(QueuePairArrivals, packets)),
      jump_if_not_zero(1, 2),
      store(0, offsetof(QueuePairArrivals, first), 8),
      store(0, offsetof(QueuePairArrivals, first_psn), 9),
      store(0, offsetof(QueuePairArrivals, last), 8),
      store(0, offsetof(QueuePairArrivals, last_psn), 9),
      add(1, 1),
      store(0, offsetof(QueuePairArrivals, packets), 1),
      set(0, kTcDrop),
      leave(),
  });
  return code;
}

}  // namespace

ArrivalRecorder::ArrivalRecorder(int interface_index, uint32_t first_qpn, uint32_t queue_pairs, uint32_t stamps)
    : queue_pairs_(queue_pairs),
      stamps_(stamps),
      count_map_(create_map(BPF_MAP_TYPE_ARRAY, sizeof(uint64_t))),
      stamp_map_(create_map(BPF_MAP_TYPE_ARRAY, sizeof(uint64_t), std::max(stamps, 1u))),
      pair_map_(create_map(BPF_MAP_TYPE_ARRAY, sizeof(QueuePairArrivals), std::max(queue_pairs, 1u))),
      program_(load_ingress(record(count_map_.get(), stamp_map_.get(), pair_map_.get(), first_qpn))),
      link_(attach_ingress(program_.get(), interface_index)) {}

uint64_t ArrivalRecorder::count() const {
  uint64_t count = 0;
  look_up(count_map_.get(), &count);
  return count;
}

std::vector<QueuePairArrivals> ArrivalRecorder::queue_pairs() const {
  std::vector<QueuePairArrivals> all(queue_pairs_);
  for (uint32_t i = 0; i < queue_pairs_; ++i) look_up(pair_map_.get(), &all[i], i);
  return all;
}

std::vector<uint64_t> ArrivalRecorder::stamps() const {
  std::vector<uint64_t> all(std::min<uint64_t>(stamps_, count()));
  for (uint32_t i = 0; i < all.size(); ++i) look_up(stamp_map_.get(), &all[i], i);
  return all;
}

}  // namespace weir::bench
