#include "bench/bpf_program.h"

#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/native_error.h"

namespace weir::bench {
namespace {

constexpr uint32_t kTcxIngress = 46;  // BPF_TCX_INGRESS of later headers

}  // namespace

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

int checked(int result, const char* what, const char* hint) {
  if (result < 0) throw NativeError::from_errno("bpf", what, hint);
  return result;
}

int create_map(uint32_t type, uint32_t value_bytes, uint32_t entries) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = sizeof(uint32_t);
  attributes.value_size = value_bytes;
  attributes.max_entries = entries;
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

void look_up(int map, void* value, uint32_t key) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(&key);
  attributes.value = address(value);
  checked(bpf(BPF_MAP_LOOKUP_ELEM, attributes), "cannot read a BPF map");
}

void update(int map, const void* value, uint32_t key) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(&key);
  attributes.value = address(value);
  checked(bpf(BPF_MAP_UPDATE_ELEM, attributes), "cannot write a BPF map");
}

int load_ingress(std::span<const bpf_insn> code) { return load_program(BPF_PROG_TYPE_SCHED_CLS, kTcxIngress, code); }

int load_xdp(std::span<const bpf_insn> code) { return load_program(BPF_PROG_TYPE_XDP, BPF_XDP, code); }

static int attach(int program, int interface_index, uint32_t type, uint32_t flags) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<uint32_t>(program);
  attributes.link_create.target_ifindex = static_cast<uint32_t>(interface_index);
  attributes.link_create.attach_type = type;
  attributes.link_create.flags = flags;
  return checked(bpf(BPF_LINK_CREATE, attributes), "cannot count what comes in", "needs Linux 6.6");
}

int attach_ingress(int program, int interface_index) { return attach(program, interface_index, kTcxIngress, 0); }
int attach_xdp(int program, int interface_index) { return attach(program, interface_index, BPF_XDP, XDP_FLAGS_DRV_MODE); }

}  // namespace weir::bench
