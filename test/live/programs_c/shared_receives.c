// A shared receive queue: two connections on it, the event of its limit, and the effect on it of a queue pair that ends.
#include "pair.h"

static char memory[8 * 4096];

int main(void) {
  open_first();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  HOLDS(mr != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  HOLDS(cq != NULL);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
  struct ibv_srq* srq = ibv_create_srq(pd, &init);
  HOLDS(srq != NULL && init.attr.max_wr >= 8);
  struct ibv_qp* from[2];
  struct ibv_qp* to[2];
  for (int i = 0; i < 2; ++i) {
    from[i] = make_qp(IBV_QPT_RC, cq, NULL);
    to[i] = make_qp(IBV_QPT_RC, cq, srq);
    connect_to(to[i], from[i]->qp_num);
    connect_to(from[i], to[i]->qp_num);
  }
  HOLDS(ibv_destroy_srq(srq) == EBUSY);
  HOLDS(ibv_dealloc_pd(pd) == EBUSY);

  struct ibv_recv_wr* bad;
  for (uint64_t i = 0; i < 4; ++i) {
    struct ibv_sge pieces[2] = {piece_of(mr, memory + i * 4096, 1000), piece_of(mr, memory + i * 4096 + 2000, 2000)};
    struct ibv_recv_wr wr = {.wr_id = 100 + i, .sg_list = pieces, .num_sge = 2};
    HOLDS(ibv_post_srq_recv(srq, &wr, &bad) == 0);
  }
  struct ibv_recv_wr own = {.wr_id = 1};
  HOLDS(ibv_post_recv(to[0], &own, &bad) == EINVAL && bad == &own);

  struct ibv_srq_attr attr = {.srq_limit = 3};
  HOLDS(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
  HOLDS(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 3);
  HOLDS(!event_waits());
  char* source = memory + 4 * 4096;
  memset(source, 'w', 3000);
  for (int i = 0; i < 2; ++i) {
    struct ibv_sge piece = piece_of(mr, source, 3000);
    HOLDS(post_send(from[i], i, IBV_WR_SEND, &piece, 1, 0, 0) == 0);
    int received = 0;
    for (int left = 2; left > 0; --left) {
      const struct ibv_wc wc = next_completion(cq);
      HOLDS(wc.status == IBV_WC_SUCCESS);
      if (wc.opcode != IBV_WC_RECV) continue;
      ++received;
      HOLDS(wc.wr_id == 100u + i && wc.byte_len == 3000 && wc.qp_num == to[i]->qp_num);
    }
    HOLDS(received == 1);
    HOLDS(memory[i * 4096] == 'w' && memory[i * 4096 + 999] == 'w' && memory[i * 4096 + 1000] == 0);
    HOLDS(memory[i * 4096 + 2000] == 'w' && memory[i * 4096 + 3999] == 'w' && memory[i * 4096 + 4000] == 0);
  }
  HOLDS(next_event() == IBV_EVENT_SRQ_LIMIT_REACHED);
  HOLDS(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 0);
  attr.max_wr = 1;
  HOLDS(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
  attr.max_wr = 100;
  HOLDS(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0);

  // Receives that wait in it are not flushed.
  fail_qp(to[0]);
  HOLDS(next_event() == IBV_EVENT_QP_LAST_WQE_REACHED);
  struct ibv_wc wc;
  HOLDS(ibv_poll_cq(cq, 1, &wc) == 0);
  struct ibv_sge piece = piece_of(mr, source, 10);
  HOLDS(post_send(from[1], 9, IBV_WR_SEND, &piece, 1, 0, 0) == 0);
  for (int left = 2; left > 0; --left) {
    wc = next_completion(cq);
    HOLDS(wc.status == IBV_WC_SUCCESS && wc.wr_id == (wc.opcode == IBV_WC_RECV ? 102 : 9));
  }
  for (int i = 0; i < 2; ++i) HOLDS(ibv_destroy_qp(from[i]) == 0 && ibv_destroy_qp(to[i]) == 0);
  HOLDS(ibv_destroy_srq(srq) == 0);
  HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
