// Writes from one queue pair to another, and tells how long the last of some took in ns: where completions are polled for, and where
// an event is waited for as the manual of ibv_get_cq_event() has it, which looks once more after having asked for the next one.
#include <time.h>

#include "pair.h"

enum { kWrites = 20, kBytes = 4096 };

static long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000 + at.tv_nsec;
}

static void await(struct ibv_comp_channel* channel) {
  struct ibv_cq* cq;
  void* own;
  struct ibv_wc wc;
  int found = 0;
  HOLDS(ibv_get_cq_event(channel, &cq, &own) == 0);
  ibv_ack_cq_events(cq, 1);
  HOLDS(ibv_req_notify_cq(cq, 0) == 0);
  while (ibv_poll_cq(cq, 1, &wc) == 1) {
    HOLDS(wc.status == IBV_WC_SUCCESS);
    ++found;
  }
  HOLDS(found == 1);
}

int main(void) {
  static char bytes[2 * kBytes];
  open_first();
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  HOLDS(channel != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, channel, 0);
  struct ibv_mr* mr = ibv_reg_mr(pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(cq != NULL && mr != NULL);
  struct ibv_qp* qp = make_qp(IBV_QPT_RC, cq, NULL);
  struct ibv_qp* peer = make_qp(IBV_QPT_RC, cq, NULL);
  connect_to(qp, peer->qp_num);
  connect_to(peer, qp->qp_num);
  for (int waits = 0; waits <= 1; ++waits) {
    if (waits) HOLDS(ibv_req_notify_cq(cq, 0) == 0);
    long took = 0;
    for (int i = 0; i < kWrites; ++i) {
      struct ibv_sge piece = piece_of(mr, bytes, kBytes);
      const long before = now();
      HOLDS(post_send(qp, i, IBV_WR_RDMA_WRITE, &piece, 1, (uintptr_t)bytes + kBytes, mr->rkey) == 0);
      if (waits) {
        await(channel);
      } else {
        HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
      }
      took = now() - before;
    }
    printf("%ld\n", took);
  }
  return 0;
}
