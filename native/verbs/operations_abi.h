// The table of operations that a provider hands to libibverbs, and its form under each of the library's private versions; the
// rest of that interface is in verbs/abi.h.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "verbs/abi.h"

extern "C" {

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
