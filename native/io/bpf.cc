#include "io/bpf.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr const char* kRights = "needs CAP_BPF and CAP_NET_ADMIN in the initial user namespace: run as root";
// MIT as all of Weir; only programs with a licence that the GPL is compatible with may call kernel functions.
constexpr const char* kLicence = "Dual MIT/GPL";

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

void set_name(char (&field)[BPF_OBJ_NAME_LEN], const char* name) { std::strncpy(field, name, sizeof field - 1); }

// The last lines: the reason stands there, before it the whole trace.
std::string last_lines(const std::string& log) {
  constexpr int kLines = 4;
  size_t from = log.find_last_not_of('\n');
  if (from == std::string::npos) return kRights;
  const size_t end = from + 1;
  for (int line = 0; line < kLines && from != std::string::npos && from > 0; ++line) from = log.rfind('\n', from - 1);
  return log.substr(from == std::string::npos || from == 0 ? 0 : from + 1, end - from);
}

// The program, as far as `attributes` do not have it yet; when the verifier refuses it, once more, for the reason.
int load(bpf_attr& attributes, std::span<const bpf_insn> code, const char* name, const char* refused) {
  attributes.insns = address(code.data());
  attributes.insn_cnt = static_cast<uint32_t>(code.size());
  attributes.license = address(kLicence);
  set_name(attributes.prog_name, name);
  int program = bpf(BPF_PROG_LOAD, attributes);
  if (program >= 0) return program;
  std::string log(256 * 1024, '\0');
  attributes.log_buf = address(log.data());
  attributes.log_size = static_cast<uint32_t>(log.size());
  attributes.log_level = 1;
  program = bpf(BPF_PROG_LOAD, attributes);
  if (program >= 0) return program;
  const int reason = errno;
  log.resize(std::strlen(log.c_str()));
  const std::string hint = last_lines(log);
  errno = reason;
  throw NativeError::from_errno("bpf", refused, hint);
}

}  // namespace

void BpfCode::put(int code, Register to, Register from, int16_t offset, int32_t constant) {
  bpf_insn instruction{};
  instruction.code = static_cast<uint8_t>(code);
  instruction.dst_reg = static_cast<uint8_t>(to) & 0xf;
  instruction.src_reg = static_cast<uint8_t>(from) & 0xf;
  instruction.off = offset;
  instruction.imm = constant;
  code_.push_back(instruction);
}

void BpfCode::bind(Label label) {
  for (const Jump& jump : jumps_) {
    if (jump.label == label.index) code_[jump.at].off = static_cast<int16_t>(code_.size() - jump.at - 1);
  }
  std::erase_if(jumps_, [&](const Jump& jump) { return jump.label == label.index; });
}

void BpfCode::jump_to(Label to, int code, Register left, Register right, int32_t constant) {
  jumps_.push_back({code_.size(), to.index});
  put(code, left, right, 0, constant);
}

int bpf_create_map(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, const char* name, uint32_t flags) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.map_flags = flags;
  attributes.key_size = key_bytes;
  attributes.value_size = value_bytes;
  attributes.max_entries = entries;
  set_name(attributes.map_name, name);
  const int map = bpf(BPF_MAP_CREATE, attributes);
  if (map < 0) throw NativeError::from_errno("bpf", "cannot make a BPF map", kRights);
  return map;
}

int bpf_load_xdp(std::span<const bpf_insn> code, uint32_t flags, uint32_t interface_index, const char* name) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.expected_attach_type = BPF_XDP;
  attributes.prog_flags = flags;
  attributes.prog_ifindex = interface_index;
  return load(attributes, code, name, "the kernel refuses an XDP program");
}

int bpf_load_raw_tracepoint(std::span<const bpf_insn> code, const char* name) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  return load(attributes, code, name, "the kernel refuses a program for a tracepoint");
}

int bpf_open_raw_tracepoint(int program, const char* tracepoint) {
  bpf_attr attributes{};
  attributes.raw_tracepoint.name = address(tracepoint);
  attributes.raw_tracepoint.prog_fd = static_cast<uint32_t>(program);
  const int link = bpf(BPF_RAW_TRACEPOINT_OPEN, attributes);
  if (link >= 0) return link;
  throw NativeError::from_errno("bpf", std::string("cannot attach a program to tracepoint ") + tracepoint,
                                "needs CAP_PERFMON and a kernel with BPF tracing: run as root");
}

int bpf_link_xdp(int program, int interface_index, uint32_t flags) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<uint32_t>(program);
  attributes.link_create.target_ifindex = static_cast<uint32_t>(interface_index);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = flags;
  return bpf(BPF_LINK_CREATE, attributes);
}

bool bpf_update_link(int link, int program) {
  bpf_attr attributes{};
  attributes.link_update.link_fd = static_cast<uint32_t>(link);
  attributes.link_update.new_prog_fd = static_cast<uint32_t>(program);
  return bpf(BPF_LINK_UPDATE, attributes) == 0;
}

bool bpf_run_live(int program, uint32_t bytes, uint32_t repeat, uint32_t batch) {
  static constexpr uint8_t kFrame[4096]{};
  constexpr uint32_t kLiveFrames = 1u << 1;  // BPF_F_TEST_XDP_LIVE_FRAMES
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<uint32_t>(program);
  attributes.test.data_in = address(kFrame);
  attributes.test.data_size_in = bytes;
  attributes.test.repeat = repeat;
  attributes.test.flags = kLiveFrames;
  attributes.test.batch_size = batch;
  return bpf(BPF_PROG_TEST_RUN, attributes) == 0;
}

bool bpf_update(int map, const void* key, const void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(key);
  attributes.value = address(value);
  attributes.flags = BPF_ANY;
  return bpf(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

bool bpf_look_up(int map, const void* key, void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = address(key);
  attributes.value = address(value);
  return bpf(BPF_MAP_LOOKUP_ELEM, attributes) == 0;
}

// The BPF Type Format: a header, then types, numbered from 1 in their order, then strings (Documentation/bpf/btf.rst).
uint32_t bpf_kernel_function(const std::string& name) {
  struct Header {
    uint16_t magic;
    uint8_t version, flags;
    uint32_t header_bytes, type_offset, type_bytes, string_offset, string_bytes;
  };
  struct Type {
    uint32_t name, info, size;
  };
  constexpr uint16_t kMagic = 0xeb9f;
  constexpr uint32_t kFunction = 12;
  // Bytes that follow a Type of each kind, and bytes for each of its members.
  struct Extra {
    uint8_t fixed, each;
  };
  constexpr Extra kExtra[] = {{0, 0}, {4, 0}, {0, 0}, {12, 0}, {0, 12}, {0, 12}, {0, 8}, {0, 0}, {0, 0}, {0, 0},
                              {0, 0}, {0, 0}, {0, 0}, {0, 8},  {4, 0},  {0, 12}, {0, 0}, {4, 0}, {0, 0}, {0, 12}};

  std::ifstream file("/sys/kernel/btf/vmlinux", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Header header{};
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t types = uint64_t{header.header_bytes} + header.type_offset;
  const uint64_t strings = uint64_t{header.header_bytes} + header.string_offset;
  if (header.magic != kMagic || types + header.type_bytes > bytes.size() || strings + header.string_bytes > bytes.size())
    return 0;
  const std::string_view names(bytes.data() + strings, header.string_bytes);
  uint32_t id = 1;
  for (uint64_t at = types; at + sizeof(Type) <= types + header.type_bytes; ++id) {
    Type type;
    std::memcpy(&type, bytes.data() + at, sizeof type);
    const uint32_t kind = type.info >> 24 & 0x1f;
    if (kind >= std::size(kExtra)) return 0;  // a kind of a later kernel, of a length that we do not know
    if (kind == kFunction && type.name < names.size() &&
        names.compare(type.name, name.size() + 1, name.c_str(), name.size() + 1) == 0) {
      return id;
    }
    at += sizeof type + kExtra[kind].fixed + uint64_t{kExtra[kind].each} * (type.info & 0xffff);
  }
  return 0;
}

}  // namespace weir
