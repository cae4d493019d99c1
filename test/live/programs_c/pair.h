// Two connected queue pairs of one program on the first device, and what a test needs to say that something is not as it should be.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDS(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno);     \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

static struct ibv_context* context;
static struct ibv_pd* pd;

__attribute__((unused)) static void open_first(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  HOLDS(devices != NULL && devices[0] != NULL);
  HOLDS((context = ibv_open_device(devices[0])) != NULL);
  ibv_free_device_list(devices);
  HOLDS((pd = ibv_alloc_pd(context)) != NULL);
}

__attribute__((unused)) static struct ibv_qp* make_qp(enum ibv_qp_type type, struct ibv_cq* cq, struct ibv_srq* srq) {
  struct ibv_qp_init_attr init = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .srq = srq,
                                  .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
                                  .qp_type = type};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  HOLDS(qp != NULL);
  return qp;
}

__attribute__((unused)) static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  const int reliable = qp->qp_type == IBV_QPT_RC;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer};
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  HOLDS(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
  HOLDS(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
  HOLDS(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN |
                          (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
}

__attribute__((unused)) static void fail_qp(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

__attribute__((unused)) static struct ibv_wc next_completion(struct ibv_cq* cq) {
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
  }
  HOLDS(count == 1);
  return wc;
}

__attribute__((unused)) static struct ibv_sge piece_of(struct ibv_mr* mr, void* at, uint32_t length) {
  return (struct ibv_sge){.addr = (uintptr_t)at, .length = length, .lkey = mr->lkey};
}

__attribute__((unused)) static int post_send(struct ibv_qp* qp, uint64_t id, enum ibv_wr_opcode opcode, struct ibv_sge* pieces, int count, uint64_t remote,
                     uint32_t rkey) {
  struct ibv_send_wr wr = {.wr_id = id, .sg_list = pieces, .num_sge = count, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = rkey;
  struct ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

// Returns the asynchronous event that comes next; it is acknowledged.
__attribute__((unused)) static enum ibv_event_type next_event(void) {
  struct ibv_async_event event;
  HOLDS(ibv_get_async_event(context, &event) == 0);
  ibv_ack_async_event(&event);
  return event.event_type;
}

__attribute__((unused)) static int event_waits(void) {
  struct pollfd waits = {.fd = context->async_fd, .events = POLLIN};
  return poll(&waits, 1, 0) == 1;
}
