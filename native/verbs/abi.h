// Interface between libibverbs and its providers beyond <infiniband/verbs.h>, for its private versions 34 to 64.
// Our own declarations of a layout that has no header in any package; sizes and offsets are held below. Only fields that a
// provider touches are spelt out.
//
// A provider built with the headers of one rdma-core runs with the library of any other, from 44 on. The types of
// <infiniband/verbs.h> that programs and library share only ever grow, at their end (or, verbs_context, at its start). So nothing
// here or in the provider may depend on the size of one that has grown: ibv_qp_ex and ibv_port_attr are the ones it touches.
// Members behind such a one in a type of the library's are placed by number, and only the part of such a one that rdma-core 44
// has is written. The assertions about the types in that header are of places of members, and sizes of those that cannot grow, as
// others stand behind them.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct verbs_list_node {
  verbs_list_node* next;
  verbs_list_node* previous;
};

// A device as libibverbs found it in the files.
struct verbs_sysfs_dev {
  verbs_list_node entry;
  void* provider_data;
  const void* match;
  unsigned int flags;
  char sysfs_name[IBV_SYSFS_NAME_MAX];
  dev_t sysfs_cdev;
  char ibdev_name[IBV_SYSFS_NAME_MAX];
  char ibdev_path[IBV_SYSFS_PATH_MAX];
  char modalias[512];
  uint64_t node_guid;
  uint32_t driver_id;
  ibv_node_type node_type;
  int ibdev_index;
  uint32_t ports;
  uint32_t abi_version;
  timespec created;
};
static_assert(sizeof(verbs_sysfs_dev) == 992);
static_assert(offsetof(verbs_sysfs_dev, sysfs_name) == 36);
static_assert(offsetof(verbs_sysfs_dev, ibdev_name) == 112);
static_assert(offsetof(verbs_sysfs_dev, ibdev_path) == 176);
static_assert(offsetof(verbs_sysfs_dev, node_guid) == 944);
static_assert(offsetof(verbs_sysfs_dev, abi_version) == 968);

struct verbs_device;

struct verbs_device_ops {
  const char* name;
  uint32_t least_abi_version;
  uint32_t most_abi_version;
  const void* match_table;
  const verbs_device_ops** static_providers;
  bool (*match_device)(verbs_sysfs_dev*);
  verbs_context* (*alloc_context)(ibv_device*, int descriptor, void* data);
  verbs_context* (*import_context)(ibv_device*, int descriptor);
  verbs_device* (*alloc_device)(verbs_sysfs_dev*);
  void (*uninit_device)(verbs_device*);
};
static_assert(sizeof(verbs_device_ops) == 72);
static_assert(offsetof(verbs_device_ops, match_device) == 32);
static_assert(offsetof(verbs_device_ops, alloc_context) == 40);
static_assert(offsetof(verbs_device_ops, uninit_device) == 64);

struct verbs_device {
  ibv_device device;
  const verbs_device_ops* ops;
  int references;
  verbs_list_node entry;
  verbs_sysfs_dev* sysfs;
  uint64_t core_support;
};
static_assert(sizeof(verbs_device) == 712);
static_assert(offsetof(verbs_device, ops) == 664);
static_assert(offsetof(verbs_device, entry) == 680);
static_assert(offsetof(verbs_device, sysfs) == 696);

enum verbs_mr_type : int { VERBS_MR_TYPE_MR };

struct verbs_mr {
  ibv_mr mr;
  verbs_mr_type type;
  int access;
};
static_assert(sizeof(verbs_mr) == 56);
static_assert(offsetof(verbs_mr, type) == 48);

// glibc's mutex has 40 bytes on x86-64, and 48 on arm64; each of these has one.
inline constexpr size_t kMutexMore = sizeof(pthread_mutex_t) - 40;

struct verbs_qp {
  // The table of ibv_qp_ex ends at 352 in rdma-core 44 and 45, and since 46, with one operation more, at 360: what the library
  // has behind it is in one of two places. kExtendedQueuePair is written to both. The operation more is refused with its flag.
  static constexpr size_t kTableEnd = 352 + kMutexMore;
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
    struct {
      char table[kTableEnd];
      uint64_t comp_mask;
      uint64_t later_comp_mask;
      void* xrcd;
    } behind;
  };
};
inline constexpr uint64_t kExtendedQueuePair = 2;
static_assert(offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(void*) == verbs_qp::kTableEnd);
static_assert(sizeof(verbs_qp) == 376 + kMutexMore);

// Bytes of it that the library of rdma-core 44 has room for: a speed came behind them.
inline constexpr size_t kPortAttributes = offsetof(ibv_port_attr, port_cap_flags2) + sizeof(ibv_port_attr::port_cap_flags2);
static_assert(kPortAttributes == 50);

union verbs_cq {
  ibv_cq cq;
  ibv_cq_ex cq_ex;
};
static_assert(sizeof(verbs_cq) == 288 + kMutexMore);

struct verbs_srq {
  ibv_srq srq;
  int type;
  void* xrcd;
  ibv_cq* cq;
  uint32_t number;
};
static_assert(sizeof(verbs_srq) == 160 + kMutexMore);
static_assert(offsetof(verbs_srq, type) == 128 + kMutexMore);
static_assert(offsetof(verbs_srq, number) == 152 + kMutexMore);

static_assert(sizeof(ibv_qp) == 160 + kMutexMore && sizeof(ibv_cq) == 128 + kMutexMore);
static_assert(sizeof(ibv_context) == 328 + kMutexMore);
static_assert(sizeof(verbs_context) - offsetof(verbs_context, context) == sizeof(ibv_context));

}  // extern "C"

namespace weir {

// Functions that libibverbs has for providers under each of its private versions: IBVERBS_PRIVATE_34 is of rdma-core 44 to 56, 57
// of 57 and 58, 59 of 59 to 63, 64 of 64. None of them is linked against: one library is the provider of all.
struct PrivateLibrary {
  uint32_t version = 0;
  void (*register_driver)(const verbs_device_ops*) = nullptr;
  // `bytes` of zeroed memory with a verbs_context at `context` from its start, which libibverbs fills in. Takes the descriptor
  // over.
  void* (*init_and_alloc_context)(ibv_device*, int descriptor, size_t bytes, verbs_context* context, uint32_t driver) = nullptr;
  void (*uninit_context)(verbs_context*) = nullptr;
  // Takes a table in that version's form. Those that are null stay as they are: refused with EOPNOTSUPP.
  void (*set_ops)(verbs_context*, const void* operations) = nullptr;
};
inline constexpr uint32_t kPrivateVersions[] = {34, 57, 59, 64};

}  // namespace weir
