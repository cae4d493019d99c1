// Work put together call by call, completions read field by field with the time of each; all or nothing is posted.
#include "pair.h"

static char memory[2 * 4096];

int main(void) {
  open_first();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(mr != NULL);
  struct ibv_cq_init_attr_ex how = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &how);
  HOLDS(cq != NULL);
  struct ibv_qp_init_attr_ex init = {.send_cq = ibv_cq_ex_to_cq(cq),
                                     .recv_cq = ibv_cq_ex_to_cq(cq),
                                     .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1},
                                     .qp_type = IBV_QPT_RC,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = pd};
  init.cap.max_inline_data = 64;
  init.send_ops_flags = IBV_QP_EX_WITH_TSO;
  HOLDS(ibv_create_qp_ex(context, &init) == NULL && errno == EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND_WITH_IMM;
  struct ibv_qp* from = ibv_create_qp_ex(context, &init);
  HOLDS(from != NULL);
  struct ibv_qp_ex* work = ibv_qp_to_qp_ex(from);
  HOLDS(work != NULL);
  struct ibv_qp* to = make_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL);
  HOLDS(ibv_qp_to_qp_ex(to) == NULL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);
  struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
  HOLDS(ibv_query_rt_values_ex(context, &before) == 0 && before.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
  struct ibv_device_attr_ex device;
  HOLDS(ibv_query_device_ex(context, NULL, &device) == 0 && device.hca_core_clock > 0);
  HOLDS(device.completion_timestamp_mask != 0);

  struct ibv_recv_wr receive = {.wr_id = 77};
  struct ibv_recv_wr* bad;
  HOLDS(ibv_post_recv(to, &receive, &bad) == 0);
  memcpy(memory, "pieces of work", 14);
  work->wr_flags = IBV_SEND_SIGNALED;
  // This work is given up, and not posted.
  ibv_wr_start(work);
  work->wr_id = 1;
  ibv_wr_send_imm(work, htobe32(1));
  ibv_wr_set_sge(work, mr->lkey, (uintptr_t)memory, 1);
  ibv_wr_abort(work);
  // There is no room for so much: none of it is posted.
  ibv_wr_start(work);
  for (int i = 0; i < 5; ++i) {
    ibv_wr_rdma_write(work, mr->rkey, (uintptr_t)memory + 4096);
    ibv_wr_set_sge(work, mr->lkey, (uintptr_t)memory, 1);
  }
  HOLDS(ibv_wr_complete(work) == ENOMEM);
  ibv_wr_start(work);
  work->wr_id = 10;
  ibv_wr_rdma_write(work, mr->rkey, (uintptr_t)memory + 4096);
  const struct ibv_sge pieces[2] = {piece_of(mr, memory + 10, 4), piece_of(mr, memory, 6)};
  ibv_wr_set_sge_list(work, 2, pieces);
  work->wr_id = 11;
  ibv_wr_rdma_write(work, mr->rkey, (uintptr_t)memory + 4096 + 10);
  char own[] = "inline";
  ibv_wr_set_inline_data(work, own, 6);
  work->wr_id = 12;
  ibv_wr_send_imm(work, htobe32(0xcafe));
  HOLDS(ibv_wr_complete(work) == 0);
  memset(own, 0, sizeof own);

  struct ibv_poll_cq_attr attr = {0};
  uint64_t sent = 10;
  uint64_t last = before.raw_clock.tv_nsec;
  int received = 0;
  for (int left = 4; left > 0;) {
    int result = ibv_start_poll(cq, &attr);
    if (result == ENOENT) continue;
    HOLDS(result == 0);
    do {
      HOLDS(cq->status == IBV_WC_SUCCESS);
      HOLDS(ibv_wc_read_completion_ts(cq) >= last);
      last = ibv_wc_read_completion_ts(cq);
      if (ibv_wc_read_opcode(cq) == IBV_WC_RECV) {
        HOLDS(cq->wr_id == 77 && ibv_wc_read_imm_data(cq) == htobe32(0xcafe) && ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
        HOLDS(ibv_wc_read_qp_num(cq) == to->qp_num && ibv_wc_read_byte_len(cq) == 0);
        ++received;
      } else {
        HOLDS(cq->wr_id == sent++);
      }
      --left;
    } while ((result = ibv_next_poll(cq)) == 0);
    HOLDS(result == ENOENT);
    ibv_end_poll(cq);
  }
  HOLDS(received == 1 && sent == 13);
  HOLDS(memcmp(memory + 4096, "workpiecesinline", 16) == 0);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
  HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
