// A send queue that is drained, goes on, and one that fails alone: IBV_QPS_SQD and IBV_QPS_SQE.
#include "pair.h"

enum { kMessage = 1 << 20 };
static char memory[2 * kMessage];

static int change(struct ibv_qp* qp, enum ibv_qp_state to, int tell) {
  struct ibv_qp_attr attr = {.qp_state = to, .en_sqd_async_notify = 1};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (tell ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

static struct ibv_qp_attr asked(struct ibv_qp* qp) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  HOLDS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
  return attr;
}

int main(void) {
  open_first();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(mr != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  HOLDS(cq != NULL);
  struct ibv_qp* from = make_qp(IBV_QPT_RC, cq, NULL);
  struct ibv_qp* to = make_qp(IBV_QPT_RC, cq, NULL);
  HOLDS(change(from, IBV_QPS_SQD, 1) == EINVAL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);
  HOLDS(change(from, IBV_QPS_SQE, 0) == EINVAL);

  // A long one has begun, and another waits; there is an event once the first is done.
  struct ibv_sge piece = piece_of(mr, memory, kMessage);
  for (int i = 0; i < 2; ++i) HOLDS(post_send(from, i, IBV_WR_RDMA_WRITE, &piece, 1, (uintptr_t)memory + kMessage, mr->rkey) == 0);
  HOLDS(change(from, IBV_QPS_SQD, 1) == 0 && from->state == IBV_QPS_SQD);
  HOLDS(asked(from).qp_state == IBV_QPS_SQD);
  struct ibv_wc wc = next_completion(cq);
  HOLDS(wc.wr_id == 0 && wc.status == IBV_WC_SUCCESS);
  HOLDS(next_event() == IBV_EVENT_SQ_DRAINED);
  HOLDS(!asked(from).sq_draining);
  HOLDS(post_send(from, 2, IBV_WR_RDMA_WRITE, &piece, 1, (uintptr_t)memory + kMessage, mr->rkey) == 0);
  for (int i = 0; i < 1000; ++i) HOLDS(ibv_poll_cq(cq, 1, &wc) == 0);

  // It is drained: that is told at once, and only if it is asked for. Attributes on which both ends have agreed stay.
  HOLDS(change(from, IBV_QPS_SQD, 0) == 0 && !event_waits());
  HOLDS(change(from, IBV_QPS_SQD, 1) == 0 && next_event() == IBV_EVENT_SQ_DRAINED);
  struct ibv_qp_attr attr = asked(from);
  HOLDS(ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_AV) == EINVAL);
  attr.qp_state = IBV_QPS_RTS;
  attr.cur_qp_state = IBV_QPS_RTS;
  HOLDS(ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
  attr.cur_qp_state = IBV_QPS_SQD;
  attr.timeout = 15;
  HOLDS(ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_TIMEOUT) == 0);
  for (int i = 1; i < 3; ++i) {
    wc = next_completion(cq);
    HOLDS(wc.wr_id == (unsigned)i && wc.status == IBV_WC_SUCCESS);
  }
  HOLDS(!event_waits());
  HOLDS(change(from, IBV_QPS_SQD, 0) == 0 && change(from, IBV_QPS_ERR, 0) == 0);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  // Without acknowledgements, a request that cannot be sent stops sends, and nothing else.
  from = make_qp(IBV_QPT_UC, cq, NULL);
  to = make_qp(IBV_QPT_UC, cq, NULL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);
  struct ibv_recv_wr receive = {.wr_id = 50, .sg_list = &piece, .num_sge = 1};
  struct ibv_recv_wr* bad;
  HOLDS(ibv_post_recv(from, &receive, &bad) == 0);
  struct ibv_sge small = piece_of(mr, memory, 8);
  struct ibv_sge forged = small;
  forged.lkey ^= 0x5a5a5a;
  HOLDS(post_send(from, 1, IBV_WR_SEND, &forged, 1, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_LOC_PROT_ERR && from->state == IBV_QPS_SQE);
  HOLDS(asked(from).qp_state == IBV_QPS_SQE);
  HOLDS(post_send(from, 2, IBV_WR_SEND, &small, 1, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_WR_FLUSH_ERR);
  HOLDS(post_send(to, 3, IBV_WR_SEND, &small, 1, 0, 0) == 0);
  for (int left = 2; left > 0; --left) {
    wc = next_completion(cq);
    HOLDS(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 3 || wc.wr_id == 50));
  }
  HOLDS(change(from, IBV_QPS_SQD, 0) == EINVAL);
  HOLDS(change(from, IBV_QPS_RTS, 0) == 0 && from->state == IBV_QPS_RTS);
  HOLDS(post_send(from, 4, IBV_WR_SEND, &small, 1, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
