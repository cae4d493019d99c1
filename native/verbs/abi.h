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

struct verbs_qp {
  // The table of ibv_qp_ex ends at 352 in rdma-core 44 and 45, and since 46, with one operation more, at 360: what the library
  // has behind it is in one of two places. kExtendedQueuePair is written to both. The operation more is refused with its flag.
  static constexpr size_t kTableEnd = 352;
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
static_assert(sizeof(verbs_qp) == 376 && offsetof(verbs_qp, behind.comp_mask) == 352);

// Bytes of it that the library of rdma-core 44 has room for: a speed came behind them.
inline constexpr size_t kPortAttributes = offsetof(ibv_port_attr, port_cap_flags2) + sizeof(ibv_port_attr::port_cap_flags2);
static_assert(kPortAttributes == 50);

union verbs_cq {
  ibv_cq cq;
  ibv_cq_ex cq_ex;
};
static_assert(sizeof(verbs_cq) == 288);

struct verbs_srq {
  ibv_srq srq;
  int type;
  void* xrcd;
  ibv_cq* cq;
  uint32_t number;
};
static_assert(sizeof(verbs_srq) == 160);
static_assert(offsetof(verbs_srq, type) == 128);
static_assert(offsetof(verbs_srq, number) == 152);

static_assert(sizeof(ibv_qp) == 160 && sizeof(ibv_cq) == 128 && sizeof(ibv_context) == 328);
static_assert(sizeof(verbs_context) - offsetof(verbs_context, context) == sizeof(ibv_context));

// All that a provider may offer; null: it does not. They are in the order of the names, as in IBVERBS_PRIVATE_64; earlier ones
// lack some (kLacking below).
struct verbs_context_ops {
  typedef void (*Unused)();
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, uint32_t flags, ibv_sge* pieces, uint32_t count);
  Unused alloc_buf, alloc_dm, alloc_dmah;
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  ibv_mr* (*alloc_null_mr)(ibv_pd*);
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
  void (*async_event)(ibv_context*, ibv_async_event*);
  Unused attach_counters_point_flow;
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, uint16_t lid);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  Unused close_xrcd;
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  Unused create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int entries, ibv_comp_channel*, int vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  Unused create_flow, create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  Unused create_rwq_ind_table;
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
  Unused create_wq, dealloc_dmah;
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  int (*dealloc_td)(ibv_td*);
  int (*dereg_mr)(verbs_mr*);
  int (*destroy_ah)(ibv_ah*);
  Unused destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  Unused destroy_flow, destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  Unused destroy_rwq_ind_table;
  int (*destroy_srq)(ibv_srq*);
  Unused destroy_wq;
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, uint16_t lid);
  Unused dm_export_dmabuf_fd, free_buf;
  void (*free_context)(ibv_context*);
  Unused free_dm;
  int (*get_srq_num)(ibv_srq*, uint32_t* number);
  Unused import_dm, import_mr, import_pd;
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  Unused modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  Unused modify_qp_rate_limit;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  Unused modify_wq, open_qp, open_xrcd;
  int (*poll_cq)(ibv_cq*, int most, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  Unused post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, size_t bytes);
  Unused query_ece;
  int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
  Unused query_port_speed;
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  Unused query_qp_data_in_order;
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  Unused read_counters, reg_dm_mr, reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, size_t bytes, uint64_t own_address, int access);
  Unused reg_mr_ex;
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  int (*rereg_mr)(verbs_mr*, int changes, ibv_pd*, void* address, size_t bytes, int access);
  int (*resize_cq)(ibv_cq*, int entries);
  Unused set_ece, unimport_dm, unimport_mr, unimport_pd;
};

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

using OperationSlot = void (*)();
inline constexpr size_t kOperations = sizeof(verbs_context_ops) / sizeof(OperationSlot);
struct Lacking {
  size_t offset;
  uint32_t since;  // the version that it came with
};
inline constexpr Lacking kLacking[] = {
    {offsetof(verbs_context_ops, alloc_buf), 64},    {offsetof(verbs_context_ops, alloc_dmah), 59},
    {offsetof(verbs_context_ops, dealloc_dmah), 59}, {offsetof(verbs_context_ops, dm_export_dmabuf_fd), 64},
    {offsetof(verbs_context_ops, free_buf), 64},     {offsetof(verbs_context_ops, query_port_speed), 64},
    {offsetof(verbs_context_ops, reg_mr_ex), 59}};
// Returns the place of an operation in the table of a version.
constexpr size_t offset_in(uint32_t version, size_t offset) {
  size_t out = offset;
  for (const Lacking& one : kLacking) out -= one.since > version && one.offset < offset ? sizeof(OperationSlot) : 0;
  return out;
}
static_assert(offset_in(34, sizeof(verbs_context_ops)) == 608);
static_assert(offset_in(34, offsetof(verbs_context_ops, alloc_pd)) == 40);
static_assert(offset_in(34, offsetof(verbs_context_ops, create_ah)) == 104);
static_assert(offset_in(34, offsetof(verbs_context_ops, create_qp)) == 152);
static_assert(offset_in(34, offsetof(verbs_context_ops, dereg_mr)) == 224);
static_assert(offset_in(34, offsetof(verbs_context_ops, free_context)) == 312);
static_assert(offset_in(34, offsetof(verbs_context_ops, modify_qp)) == 376);
static_assert(offset_in(34, offsetof(verbs_context_ops, poll_cq)) == 424);
static_assert(offset_in(34, offsetof(verbs_context_ops, post_send)) == 440);
static_assert(offset_in(34, offsetof(verbs_context_ops, query_device_ex)) == 464);
static_assert(offset_in(34, offsetof(verbs_context_ops, reg_mr)) == 544);
static_assert(offset_in(34, offsetof(verbs_context_ops, req_notify_cq)) == 552);
static_assert(offset_in(34, offsetof(verbs_context_ops, unimport_pd)) == 600);

}  // namespace weir
