// A forbidden request of a program gets an errno or a completion that says so, and all else goes on.
#include "pair.h"

static char memory[2 * 4096];

int main(void) {
  open_first();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(mr != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_cq* small = ibv_create_cq(context, 1, NULL, NULL, 0);
  HOLDS(cq != NULL && small != NULL);
  struct ibv_qp* from = make_qp(IBV_QPT_RC, cq, NULL);
  struct ibv_qp* to = make_qp(IBV_QPT_RC, cq, NULL);

  // Both are in use.
  HOLDS(ibv_destroy_cq(cq) == EBUSY);
  HOLDS(ibv_dealloc_pd(pd) == EBUSY);

  // The queue pair is not ready.
  struct ibv_sge pieces[3] = {piece_of(mr, memory, 8), piece_of(mr, memory, 8), piece_of(mr, memory, 8)};
  HOLDS(post_send(from, 1, IBV_WR_SEND, pieces, 1, 0, 0) == EINVAL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);

  // These are too much, or do not exist.
  HOLDS(post_send(from, 1, IBV_WR_SEND, pieces, 3, 0, 0) == EINVAL);
  HOLDS(post_send(from, 1, IBV_WR_TSO, pieces, 1, 0, 0) == EINVAL);
  struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = pieces, .num_sge = 3};
  struct ibv_recv_wr* bad;
  HOLDS(ibv_post_recv(to, &receive, &bad) == EINVAL && bad == &receive);
  HOLDS(ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_ON_DEMAND) == NULL && errno == EOPNOTSUPP);
  HOLDS(ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
  HOLDS(ibv_reg_mr(pd, (void*)4096, 4096, 0) == NULL && errno == EFAULT);
  struct ibv_cq_init_attr_ex tags = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
  HOLDS(ibv_create_cq_ex(context, &tags) == NULL && errno == EOPNOTSUPP);
  struct ibv_xrcd_init_attr domain = {.fd = -1, .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS};
  HOLDS(ibv_open_xrcd(context, &domain) == NULL && errno == EOPNOTSUPP);

  // Keys of management are not allowed.
  struct ibv_qp* datagrams = make_qp(IBV_QPT_UD, cq, NULL);
  struct ibv_qp_attr keyed = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000};
  HOLDS(ibv_modify_qp(datagrams, &keyed, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == EPERM);
  HOLDS(ibv_destroy_qp(datagrams) == 0);

  // A window keeps its region.
  struct ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  HOLDS(window != NULL);
  struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
  bind.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)memory + 4096, 100, IBV_ACCESS_REMOTE_WRITE};
  HOLDS(ibv_bind_mw(to, window, &bind) == 0);
  struct ibv_wc wc = next_completion(cq);
  HOLDS(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 5);
  HOLDS(ibv_dereg_mr(mr) == EBUSY);
  HOLDS(post_send(from, 6, IBV_WR_RDMA_WRITE, pieces, 1, (uintptr_t)memory + 4096, window->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  const uint32_t before = window->rkey;
  bind.bind_info.length = 0;
  HOLDS(ibv_bind_mw(to, window, &bind) == 0 && window->rkey != before);
  HOLDS(next_completion(cq).opcode == IBV_WC_BIND_MW);
  HOLDS(ibv_dealloc_mw(window) == 0);

  // A key of nobody's comes behind one that is good.
  HOLDS(post_send(from, 7, IBV_WR_RDMA_WRITE, pieces, 1, (uintptr_t)memory + 4096, mr->rkey) == 0);
  struct ibv_sge forged = pieces[0];
  forged.lkey ^= 0x5a5a5a;
  HOLDS(post_send(from, 8, IBV_WR_SEND, &forged, 1, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  wc = next_completion(cq);
  HOLDS(wc.wr_id == 8 && wc.status == IBV_WC_LOC_PROT_ERR && from->state == IBV_QPS_ERR);
  HOLDS(post_send(from, 9, IBV_WR_SEND, pieces, 1, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_WR_FLUSH_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  // These are more completions than there is room for.
  struct ibv_qp* many = make_qp(IBV_QPT_RC, small, NULL);
  connect_to(many, many->qp_num);
  fail_qp(many);
  for (int i = 0; i < 4; ++i) HOLDS(post_send(many, i, IBV_WR_SEND, pieces, 1, 0, 0) == 0);
  HOLDS(next_event() == IBV_EVENT_CQ_ERR);
  HOLDS(ibv_destroy_qp(many) == 0 && ibv_destroy_cq(small) == 0);

  // Makes as many queue pairs as there are, and then some.
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC};
  static struct ibv_qp* all[1 << 14];
  int count = 0;
  while (count < 1 << 14 && (all[count] = ibv_create_qp(pd, &init)) != NULL) ++count;
  HOLDS(count > 0 && count < 1 << 14 && errno == ENOMEM);
  while (count > 0) HOLDS(ibv_destroy_qp(all[--count]) == 0);

  HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
