// A device can really have as many of everything as it says.
#include <arpa/inet.h>
#include <sys/mman.h>

#include "pair.h"

static char memory[4096];

// Makes so many at once, and gives all of them back.
#define REACHES(count, type, make, destroy)                                 \
  do {                                                                      \
    const int whole = (count);                                              \
    HOLDS(whole > 0);                                                       \
    type** all = calloc((size_t)whole, sizeof *all);                        \
    HOLDS(all != NULL);                                                     \
    for (int i = 0; i < whole; ++i) HOLDS((all[i] = (make)) != NULL);       \
    for (int i = 0; i < whole; ++i) HOLDS(destroy(all[i]) == 0);            \
    free(all);                                                              \
  } while (0)

static struct ibv_cq* cq;

static struct ibv_qp* qp_with(struct ibv_qp_cap cap) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC};
  return ibv_create_qp(pd, &init);
}

static void join_groups(const struct ibv_device_attr* most) {
  struct ibv_qp* member = make_qp(IBV_QPT_UD, cq, NULL);
  union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7}};
  HOLDS(most->max_mcast_grp == most->max_total_mcast_qp_attach);
  for (int i = 0; i < most->max_mcast_grp; ++i) {
    group.raw[14] = (uint8_t)(i >> 8);
    group.raw[15] = (uint8_t)i;
    HOLDS(ibv_attach_mcast(member, &group, 0) == 0);
  }
  group.raw[13] = 8;
  HOLDS(ibv_attach_mcast(member, &group, 0) == ENOMEM);
  group.raw[13] = 7;
  for (int i = 0; i < most->max_mcast_grp; ++i) {
    group.raw[14] = (uint8_t)(i >> 8);
    group.raw[15] = (uint8_t)i;
    HOLDS(ibv_detach_mcast(member, &group, 0) == 0);
  }
  HOLDS(ibv_destroy_qp(member) == 0);

  struct ibv_qp** members = calloc((size_t)most->max_mcast_qp_attach, sizeof *members);
  HOLDS(members != NULL);
  for (int i = 0; i < most->max_mcast_qp_attach; ++i) {
    members[i] = make_qp(IBV_QPT_UD, cq, NULL);
    HOLDS(ibv_attach_mcast(members[i], &group, 0) == 0);
  }
  for (int i = 0; i < most->max_mcast_qp_attach; ++i) {
    HOLDS(ibv_detach_mcast(members[i], &group, 0) == 0);
    HOLDS(ibv_destroy_qp(members[i]) == 0);
  }
  free(members);
}

int main(void) {
  open_first();
  struct ibv_device_attr most;
  HOLDS(ibv_query_device(context, &most) == 0);
  HOLDS((cq = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL);

  REACHES(most.max_pd, struct ibv_pd, ibv_alloc_pd(context), ibv_dealloc_pd);
  REACHES(most.max_cq, struct ibv_cq, ibv_create_cq(context, 1, NULL, NULL, 0), ibv_destroy_cq);
  REACHES(1, struct ibv_cq, ibv_create_cq(context, most.max_cqe, NULL, NULL, 0), ibv_destroy_cq);
  HOLDS(ibv_create_cq(context, most.max_cqe + 1, NULL, NULL, 0) == NULL && errno == EINVAL);
  REACHES(most.max_mr, struct ibv_mr, ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
  REACHES(most.max_mw, struct ibv_mw, ibv_alloc_mw(pd, i % 2 == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2), ibv_dealloc_mw);

  struct ibv_srq_init_attr receives = {.attr = {.max_wr = 1, .max_sge = 2}};
  REACHES(most.max_srq, struct ibv_srq, ibv_create_srq(pd, &receives), ibv_destroy_srq);
  receives.attr = (struct ibv_srq_attr){.max_wr = (uint32_t)most.max_srq_wr, .max_sge = (uint32_t)most.max_srq_sge};
  REACHES(1, struct ibv_srq, ibv_create_srq(pd, &receives), ibv_destroy_srq);

  const struct ibv_qp_cap small = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 2};
  REACHES(most.max_qp, struct ibv_qp, qp_with(small), ibv_destroy_qp);
  struct ibv_qp_cap large = small;
  large.max_send_wr = large.max_recv_wr = (uint32_t)most.max_qp_wr;
  REACHES(1, struct ibv_qp, qp_with(large), ibv_destroy_qp);
  large = small;
  large.max_send_sge = large.max_recv_sge = (uint32_t)most.max_sge;
  REACHES(1, struct ibv_qp, qp_with(large), ibv_destroy_qp);

  struct ibv_ah_attr way = {.is_global = 1, .port_num = 1};
  HOLDS(ibv_query_gid(context, 1, 0, &way.grh.dgid) == 0);
  REACHES(most.max_ah, struct ibv_ah, ibv_create_ah(pd, &way), ibv_destroy_ah);
  join_groups(&most);

  // These are limits of READs and atomics, on both sides.
  struct ibv_qp* deep = qp_with(small);
  HOLDS(deep != NULL);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  HOLDS(ibv_modify_qp(deep, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = deep->qp_num, .ah_attr = way};
  attr.max_dest_rd_atomic = (uint8_t)most.max_qp_rd_atom;
  HOLDS(ibv_modify_qp(deep, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = (uint8_t)most.max_qp_init_rd_atom};
  HOLDS(ibv_modify_qp(deep, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0);
  HOLDS(ibv_destroy_qp(deep) == 0);

  // These are limits of the port: its tables, and its largest message.
  struct ibv_port_attr port;
  HOLDS(ibv_query_port(context, 1, &port) == 0);
  union ibv_gid gid;
  for (int i = 0; i < port.gid_tbl_len; ++i) HOLDS(ibv_query_gid(context, 1, i, &gid) == 0);
  uint16_t key;
  for (int i = 0; i < port.pkey_tbl_len; ++i) HOLDS(ibv_query_pkey(context, 1, i, &key) == 0 && key == 0xffff);
  char* far = mmap(NULL, port.max_msg_sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HOLDS(far != MAP_FAILED);
  struct ibv_mr* message = ibv_reg_mr(pd, far, port.max_msg_sz, IBV_ACCESS_LOCAL_WRITE);
  HOLDS(message != NULL && ibv_dereg_mr(message) == 0);

  HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
