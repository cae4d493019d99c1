// A multicast group among the queue pairs of one NIC: members get what is sent to it, whoever sends, and others do not.
#include "pair.h"

enum { kGrh = 40, kMessage = 100, kSlot = 256, kQueueKey = 0x11111111 };
static char memory[8 * kSlot];

static union ibv_gid group_of(uint8_t last) {
  union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = last}};
  return gid;
}

static void make_ready(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQueueKey};
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  attr.qp_state = IBV_QPS_RTR;
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
  attr.qp_state = IBV_QPS_RTS;
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

int main(void) {
  open_first();
  struct ibv_device_attr device;
  HOLDS(ibv_query_device(context, &device) == 0 && device.max_mcast_grp > 0);
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  HOLDS(mr != NULL);
  struct ibv_cq* sent = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_cq* received = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_qp* qps[4];
  struct ibv_recv_wr* bad;
  for (int i = 0; i < 4; ++i) {
    struct ibv_qp_init_attr init = {.send_cq = sent,
                                    .recv_cq = received,
                                    .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UD};
    HOLDS((qps[i] = ibv_create_qp(pd, &init)) != NULL);
    make_ready(qps[i]);
    for (int j = 0; j < 8; ++j) {
      struct ibv_sge piece = piece_of(mr, memory + i * kSlot, kSlot);
      struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &piece, .num_sge = 1};
      HOLDS(ibv_post_recv(qps[i], &wr, &bad) == 0);
    }
  }
  const union ibv_gid group = group_of(3);
  const union ibv_gid other = group_of(4);

  // Some groups and queue pairs cannot join, or leave.
  union ibv_gid own;
  HOLDS(ibv_query_gid(context, 1, 0, &own) == 0);
  HOLDS(ibv_attach_mcast(qps[0], &own, 0) == EINVAL);
  HOLDS(ibv_detach_mcast(qps[0], &group, 0) == EINVAL);
  struct ibv_qp* connection = make_qp(IBV_QPT_RC, sent, NULL);
  HOLDS(ibv_attach_mcast(connection, &group, 0) == EINVAL);
  HOLDS(ibv_destroy_qp(connection) == 0);

  // Queue pairs 0, which sends, 1 and 2 are members; 3 is of another group.
  for (int i = 0; i < 3; ++i) HOLDS(ibv_attach_mcast(qps[i], &group, 0) == 0);
  HOLDS(ibv_attach_mcast(qps[1], &group, 0) == 0);
  HOLDS(ibv_attach_mcast(qps[3], &other, 0) == 0);
  struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
  struct ibv_ah* ah = ibv_create_ah(pd, &way);
  HOLDS(ah != NULL);
  memset(memory + 7 * kSlot, 'g', kMessage);
  struct ibv_sge message = piece_of(mr, memory + 7 * kSlot, kMessage);
  struct ibv_send_wr wr = {.sg_list = &message, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 0xffffff;
  wr.wr.ud.remote_qkey = kQueueKey;
  struct ibv_send_wr* not_sent;
  for (int members = 3; members > 0; --members) {
    HOLDS(ibv_post_send(qps[0], &wr, &not_sent) == 0);
    HOLDS(next_completion(sent).status == IBV_WC_SUCCESS);
    int seen = 0;
    for (int i = 0; i < members; ++i) {
      const struct ibv_wc wc = next_completion(received);
      HOLDS(wc.status == IBV_WC_SUCCESS && wc.byte_len == kGrh + kMessage && wc.src_qp == qps[0]->qp_num);
      HOLDS((wc.wc_flags & IBV_WC_GRH) != 0 && wc.qp_num == qps[wc.wr_id]->qp_num);
      seen |= 1 << wc.wr_id;
      const char* to = memory + wc.wr_id * kSlot;
      HOLDS(to[kGrh] == 'g' && to[kGrh + kMessage - 1] == 'g');
      HOLDS(memcmp(to + 36, group.raw + 12, 4) == 0);  // destination in the IPv4 header
    }
    HOLDS(seen == (1 << members) - 1);
    // The last that is a member leaves.
    HOLDS(ibv_destroy_qp(qps[members - 1]) == EBUSY);
    HOLDS(ibv_detach_mcast(qps[members - 1], &group, 0) == 0);
  }

  // Joins as many as there may be, and one more.
  int count = 1;
  for (;; ++count) {
    const union ibv_gid one = {.raw = {0xff, 0x0e, [14] = (uint8_t)(count >> 8), [15] = (uint8_t)count}};
    const int error = ibv_attach_mcast(qps[0], &one, 0);
    if (error == 0) continue;
    HOLDS(error == ENOMEM && count == device.max_mcast_grp);
    break;
  }
  while (--count > 0) {
    const union ibv_gid one = {.raw = {0xff, 0x0e, [14] = (uint8_t)(count >> 8), [15] = (uint8_t)count}};
    HOLDS(ibv_detach_mcast(qps[0], &one, 0) == 0);
  }
  struct ibv_wc wc;
  HOLDS(ibv_poll_cq(received, 1, &wc) == 0);
  HOLDS(ibv_detach_mcast(qps[3], &other, 0) == 0);
  HOLDS(ibv_destroy_ah(ah) == 0);
  for (int i = 0; i < 4; ++i) HOLDS(ibv_destroy_qp(qps[i]) == 0);
  HOLDS(ibv_destroy_cq(sent) == 0 && ibv_destroy_cq(received) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0);
  puts("as it should be");
  return 0;
}
