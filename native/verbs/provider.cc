// The provider that libibverbs loads: devices, contexts, what they can do, protection domains, memory, address handles.
#include "verbs/provider.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/native_error.h"

namespace weir {
namespace {

// Beside what a device's folder has of the kernel's: where the NIC's daemon listens.
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
  const uint64_t mac = nic_of(context).session().hello().mac;
  const uint64_t guid = ((mac >> 24 ^ 0x020000) << 40) | 0xfffe000000 | (mac & 0xffffff);
  attributes.node_guid = attributes.sys_image_guid = htobe64(guid);
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xfffff000;
  attributes.vendor_id = 0xffffff;  // as Linux's rxe has it: nobody's
  attributes.max_qp = kMostQueuePairs;
  attributes.max_qp_wr = kMostWork;
  attributes.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID;
  attributes.max_sge = attributes.max_sge_rd = kMostPieces;
  attributes.max_cq = 65'536;
  attributes.max_cqe = kMostCompletions;
  attributes.max_mr = ProgramNic::kRegions / 2;
  attributes.max_pd = 65'536;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = kMaxRdAtomic;
  attributes.max_res_rd_atom = static_cast<int>(kMaxRdAtomic * kMostQueuePairs);
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_ah = static_cast<int>(AddressTable::kMost);
  attributes.max_pkeys = 1;
  attributes.local_ca_ack_delay = 15;
  attributes.phys_port_cnt = 1;
  if (bytes >= offsetof(ibv_device_attr_ex, phys_port_cnt_ex) + sizeof out->phys_port_cnt_ex) out->phys_port_cnt_ex = 1;
  return 0;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* out) {
  if (port != 1) return EINVAL;
  ProgramNic& nic = nic_of(context);
  *out = {};
  out->state = nic.failed() ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  out->max_mtu = IBV_MTU_4096;
  out->active_mtu = mtu_of(nic.session().hello().path_mtu);
  out->gid_tbl_len = static_cast<int>(nic.session().hello().gids);
  out->max_msg_sz = kMaxMessage;
  out->pkey_tbl_len = 1;
  out->max_vl_num = 1;
  out->phys_state = nic.failed() ? 3 : 5;
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
    if (nic.session().hello().rate >= link.rate) break;
  }
  out->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ibv_pd* alloc_pd(ibv_context* context) {
  auto* domain = static_cast<ProviderDomain*>(std::calloc(1, sizeof(ProviderDomain)));
  if (domain == nullptr) return nullptr;
  ProgramNic& nic = nic_of(context);
  const std::lock_guard lock(nic.mutex());
  domain->number = nic.next_domain();
  return &domain->base;
}

int dealloc_pd(ibv_pd* pd) {
  std::free(pd);
  return 0;
}

// A NIC would refuse to pin what is not there; without this its thread would find out.
bool is_mapped(uintptr_t address, size_t bytes) {
  constexpr size_t kPage = 4096;
  unsigned char pages[1024];
  const uintptr_t end = address + bytes;
  for (uintptr_t at = address & ~(kPage - 1); at < end; at += sizeof pages * kPage) {
    const size_t length = std::min<size_t>(end - at, sizeof pages * kPage);
    if (::mincore(reinterpret_cast<void*>(at), length, pages) < 0 && errno == ENOMEM) return false;
  }
  return true;
}

constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | kRemoteWrites;

// errno; 0: a region may have these.
int refused(int access) {
  if ((access & ~(kAccess | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return EOPNOTSUPP;
  return (access & kRemoteWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t own_address, int access) {
  if (const int error = refused(access); error != 0) return errno = error, nullptr;
  if (!is_mapped(reinterpret_cast<uintptr_t>(address), bytes)) return errno = EFAULT, nullptr;
  auto* out = new (std::nothrow) ProviderRegion{};
  if (out == nullptr) return errno = ENOMEM, nullptr;
  MemoryRegion& region = out->region;
  region.data = static_cast<uint8_t*>(address);
  region.address = own_address;
  region.length = bytes;
  region.domain = reinterpret_cast<ProviderDomain*>(pd)->number;
  region.access = static_cast<uint8_t>(access & kAccess);
  ibv_mr& mr = out->base.mr;
  ProgramNic& nic = nic_of(pd->context);
  {
    const std::lock_guard lock(nic.mutex());
    mr.lkey = mr.rkey = nic.memory().add(region);
  }
  if (mr.lkey == 0) {
    delete out;
    return errno = ENOMEM, nullptr;
  }
  out->base.type = VERBS_MR_TYPE_MR;
  out->base.access = access;
  return &mr;
}

// It keeps its keys.
int rereg_mr(verbs_mr* mr, int changes, ibv_pd* pd, void* address, size_t bytes, int access) {
  auto& own = *reinterpret_cast<ProviderRegion*>(mr);
  MemoryRegion region = own.region;
  if ((changes & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (const int error = refused(access); error != 0) return error;
    region.access = static_cast<uint8_t>(access & kAccess);
  }
  if ((changes & IBV_REREG_MR_CHANGE_PD) != 0) region.domain = reinterpret_cast<ProviderDomain*>(pd)->number;
  if ((changes & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    if (!is_mapped(reinterpret_cast<uintptr_t>(address), bytes)) return EFAULT;
    region.data = static_cast<uint8_t*>(address);
    region.address = reinterpret_cast<uintptr_t>(address);
    region.length = bytes;
  }
  ProgramNic& nic = nic_of(mr->mr.context);
  const std::lock_guard lock(nic.mutex());
  nic.memory().replace(mr->mr.lkey, region);
  own.region = region;
  if ((changes & IBV_REREG_MR_CHANGE_ACCESS) != 0) mr->access = access;
  return 0;
}

int dereg_mr(verbs_mr* mr) {
  ProgramNic& nic = nic_of(mr->mr.context);
  {
    const std::lock_guard lock(nic.mutex());
    nic.memory().remove(mr->mr.lkey);
  }
  delete reinterpret_cast<ProviderRegion*>(mr);
  return 0;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  // Without a global route there is a LID alone, and the only one here is our own, 0: librdmacm's sockets for datagrams ask for
  // it.
  const bool is_own = attributes->is_global == 0 && attributes->dlid == 0;
  if ((attributes->is_global == 0 && !is_own) || attributes->port_num != 1) return errno = EINVAL, nullptr;
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateAddressHandle;
  if (!is_own) std::memcpy(request.gid.data(), attributes->grh.dgid.raw, request.gid.size());
  request.traffic_class = attributes->grh.traffic_class;
  request.hop_limit = attributes->grh.hop_limit;
  request.source_index = attributes->grh.sgid_index;
  request.service_level = attributes->sl;
  const ProgramAnswer answer = nic_of(pd->context).ask(request);
  if (answer.error != 0) return errno = static_cast<int>(answer.error), nullptr;
  auto* ah = static_cast<ProviderAddress*>(std::calloc(1, sizeof(ProviderAddress)));
  if (ah == nullptr) return nullptr;
  ah->handle = answer.object;
  return &ah->base;
}

int destroy_ah(ibv_ah* ah) {
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyAddressHandle;
  request.object = reinterpret_cast<ProviderAddress*>(ah)->handle;
  nic_of(ah->context).ask(request);
  std::free(ah);
  return 0;
}

void free_context(ibv_context* context) {
  ProviderContext& own = ProviderContext::of(context);
  delete own.nic;
  verbs_uninit_context(&own.base);
  std::free(&own);
}

verbs_context* alloc_context(ibv_device* device, int descriptor, void*) {
  auto* own =
      static_cast<ProviderContext*>(_verbs_init_and_alloc_context(device, descriptor, sizeof(ProviderContext), nullptr, 0));
  if (own == nullptr) return nullptr;
  int error = 0;
  own->base.context.num_comp_vectors = 1;
  own->base.context.async_fd = event_pipe();
  if (own->base.context.async_fd < 0) {
    error = errno;
  } else {
    try {
      own->nic = new ProgramNic(socket_of(device->ibdev_path), own->base.context.async_fd);
    } catch (const NativeError& refused) {
      error = refused.error_number != 0 ? refused.error_number : EIO;
    } catch (const std::exception&) {
      error = ENOMEM;
    }
  }
  if (error != 0) {
    verbs_uninit_context(&own->base);
    std::free(own);
    return errno = error, nullptr;
  }
  static const verbs_context_ops kOperations = [] {
    verbs_context_ops operations{};
    operations.alloc_pd = alloc_pd;
    operations.create_ah = create_ah;
    operations.dealloc_pd = dealloc_pd;
    operations.dereg_mr = dereg_mr;
    operations.destroy_ah = destroy_ah;
    operations.free_context = free_context;
    operations.query_device_ex = query_device;
    operations.query_port = query_port;
    operations.reg_mr = reg_mr;
    operations.rereg_mr = rereg_mr;
    add_queue_operations(operations);
    return operations;
  }();
  verbs_set_ops(&own->base, &kOperations);
  return &own->base;
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

[[maybe_unused]] const bool kRegistered = (verbs_register_driver_34(&kProvider), true);

}  // namespace
}  // namespace weir
