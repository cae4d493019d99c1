// The provider that libibverbs loads: devices, contexts, what they can do, protection domains, memory, address handles.
#include "verbs/provider.h"

#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/native_error.h"
#include "endpoint/multicast_groups.h"

namespace weir {
namespace {

// File in a device's folder beside those of the kernel's: it names where the NIC's daemon listens.
constexpr const char* kSocketFile = "/weir_socket";

std::string socket_of(const char* folder) {
  std::string path;
  if (FILE* file = std::fopen((std::string(folder) + kSocketFile).c_str(), "re")) {
    char line[256];
    if (std::fgets(line, sizeof line, file) != nullptr) path.assign(line, std::strcspn(line, "\n"));
    std::fclose(file);
  }
  return path;
}

bool match_device(verbs_sysfs_dev* device) { return !socket_of(device->ibdev_path).empty(); }

verbs_device* alloc_device(verbs_sysfs_dev*) { return static_cast<verbs_device*>(std::calloc(1, sizeof(verbs_device))); }

void uninit_device(verbs_device* device) { std::free(device); }

// A pipe by one descriptor, for both ends: libibverbs reads from it and closes it, the provider writes.
int event_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return -1;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  const int both = ::open(path, O_RDWR | O_CLOEXEC);
  ::close(ends[0]);
  ::close(ends[1]);
  return both;
}

ibv_mtu mtu_of(uint32_t bytes) { return static_cast<ibv_mtu>(std::bit_width(bytes) - 8); }

int query_device(ibv_context* context, const ibv_query_device_ex_input*, ibv_device_attr_ex* out, size_t bytes) {
  std::memset(out, 0, bytes);
  ibv_device_attr& attributes = out->orig_attr;
  std::snprintf(attributes.fw_ver, sizeof attributes.fw_ver, "weir");
  const uint64_t mac = nic_of(context).hello().mac;
  const uint64_t guid = ((mac >> 24 ^ 0x020000) << 40) | 0xfffe000000 | (mac & 0xffffff);
  attributes.node_guid = attributes.sys_image_guid = htobe64(guid);
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xfffff000;
  attributes.vendor_id = 0xffffff;  // nobody's, as Linux's rxe has it
  attributes.max_qp = kProgramQueuePairs;
  attributes.max_qp_wr = kMostWork;
  attributes.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
                                IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes.max_sge = attributes.max_sge_rd = kMostPieces;
  attributes.max_cq = 65'536;
  attributes.max_cqe = kMostCompletions;
  attributes.max_mr = ProgramNic::kOwnRegions / 2;
  attributes.max_pd = 65'536;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = kMaxRdAtomic;
  attributes.max_res_rd_atom = static_cast<int>(kMaxRdAtomic * kProgramQueuePairs);
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_ah = kProgramAddressHandles;
  attributes.max_mcast_grp = attributes.max_total_mcast_qp_attach = kProgramMemberships;
  attributes.max_mcast_qp_attach = std::min<int>(kProgramMemberships, MulticastGroups::kMostMembers);
  attributes.max_pkeys = 1;
  attributes.max_mw = ProgramNic::kOwnRegions / 2;
  attributes.max_srq = ProgramNic::kSharedReceives;
  attributes.max_srq_wr = kMostWork;
  attributes.max_srq_sge = kMostPieces;
  attributes.local_ca_ack_delay = 15;
  attributes.phys_port_cnt = 1;
  const auto tell = [&](auto& field, auto value) {
    const auto end = reinterpret_cast<char*>(&field + 1) - reinterpret_cast<char*>(out);
    if (bytes >= static_cast<size_t>(end)) field = value;
  };
  tell(out->phys_port_cnt_ex, 1);
  tell(out->completion_timestamp_mask, UINT64_MAX);
  tell(out->hca_core_clock, kClockKilohertz);
  return 0;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* out) {
  if (port != 1) return EINVAL;
  ProgramNic& nic = nic_of(context);
  std::memset(out, 0, kPortAttributes);
  out->state = nic.link_up() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out->max_mtu = IBV_MTU_4096;
  out->active_mtu = mtu_of(nic.path_mtu());
  out->gid_tbl_len = static_cast<int>(nic.hello().gids);
  out->max_msg_sz = kMaxMessage;
  out->pkey_tbl_len = 1;
  out->max_vl_num = 1;
  out->phys_state = nic.link_up() ? 5 : 3;
  // The standard's code of width and speed that comes nearest from below.
  struct Link {
    uint64_t rate;
    uint8_t width;
    uint8_t speed;
  };
  constexpr Link kLinks[] = {
      {400'000'000'000, 2, 128}, {200'000'000'000, 2, 64}, {100'000'000'000, 2, 32}, {50'000'000'000, 1, 64},
      {40'000'000'000, 2, 8},    {25'000'000'000, 1, 32},  {10'000'000'000, 1, 8},   {0, 1, 1}};
  for (const Link& link : kLinks) {
    out->active_width = link.width;
    out->active_speed = link.speed;
    if (nic.hello().rate >= link.rate) break;
  }
  out->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

PrivateLibrary library;

void free_context(ibv_context* context) {
  ProviderContext& own = ProviderContext::of(context);
  delete own.nic;
  library.uninit_context(own.verbs());
  std::free(&own);
}

// The table as the library's version has it.
void set_operations(verbs_context* context) {
  static const auto kTable = [] {
    verbs_context_ops operations{};
    operations.free_context = free_context;
    operations.query_device_ex = query_device;
    operations.query_port = query_port;
    add_domain_operations(operations);
    add_multicast_operations(operations);
    add_memory_operations(operations);
    add_window_operations(operations);
    add_queue_operations(operations);
    add_posting_operations(operations);
    add_extended_queue_operations(operations);
    add_shared_receive_operations(operations);
    const auto slots = std::bit_cast<std::array<OperationSlot, kOperations>>(operations);
    std::array<OperationSlot, kOperations> table{};
    size_t to = 0;
    for (size_t from = 0; from < kOperations; ++from) {
      const bool lacks = std::any_of(std::begin(kLacking), std::end(kLacking), [&](const Lacking& one) {
        return one.offset == from * sizeof(OperationSlot) && one.since > library.version;
      });
      if (!lacks) table[to++] = slots[from];
    }
    return table;
  }();
  library.set_ops(context, kTable.data());
}

// A context in what libibverbs has made: its place depends on the version.
ibv_context* context_in(ProviderContext& own, ibv_device* device) {
  for (size_t at = sizeof(size_t); at + sizeof(ibv_context) <= ProviderContext::kRoom; at += sizeof(size_t)) {
    auto* context = reinterpret_cast<ibv_context*>(own.base + at);
    if (context->device == device && reinterpret_cast<size_t*>(context)[-1] == at + sizeof(ibv_context)) return context;
  }
  return nullptr;
}

verbs_context* alloc_context(ibv_device* device, int descriptor, void*) {
  auto* own = static_cast<ProviderContext*>(library.init_and_alloc_context(
      device, descriptor, sizeof(ProviderContext), reinterpret_cast<verbs_context*>(offsetof(ProviderContext, base)), 0));
  if (own == nullptr) return nullptr;
  ibv_context* context = context_in(*own, device);
  int error = context == nullptr ? EPROTO : 0;
  if (error == 0) {
    context->num_comp_vectors = 1;
    context->async_fd = event_pipe();
    if (context->async_fd < 0) error = errno;
  }
  if (error == 0) {
    try {
      own->nic = new ProgramNic(socket_of(device->ibdev_path), context->async_fd);
    } catch (const NativeError& refused) {
      error = refused.error_number != 0 ? refused.error_number : EIO;
    } catch (const std::exception&) {
      error = ENOMEM;
    }
  }
  if (error != 0) {
    library.uninit_context(own->verbs());
    std::free(own);
    return errno = error, nullptr;
  }
  set_operations(own->verbs());
  return own->verbs();
}

const verbs_device_ops kProvider = [] {
  verbs_device_ops operations{};
  operations.name = "weir";
  operations.least_abi_version = 1;
  operations.most_abi_version = 1;
  operations.match_device = match_device;
  operations.alloc_context = alloc_context;
  operations.alloc_device = alloc_device;
  operations.uninit_device = uninit_device;
  return operations;
}();

// libibverbs is there already, and loads us.
[[maybe_unused]] const bool kRegistered = [] {
  void* const loaded = ::dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return false;
  const auto find = [&](auto& function, const std::string& name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(loaded, name.c_str()));
    return function != nullptr;
  };
  for (const uint32_t version : kPrivateVersions) {
    if (find(library.register_driver, "verbs_register_driver_" + std::to_string(version))) library.version = version;
    if (library.version != 0) break;
  }
  if (library.version == 0 || !find(library.init_and_alloc_context, "_verbs_init_and_alloc_context") ||
      !find(library.uninit_context, "verbs_uninit_context") || !find(library.set_ops, "verbs_set_ops")) {
    return false;
  }
  library.register_driver(&kProvider);
  return true;
}();

}  // namespace
}  // namespace weir
