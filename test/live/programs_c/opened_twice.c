// Opens the device twice, as MPI does for its windows, and polls queues of both in turn: as many of the second as it is told, for
// which nothing comes, and one of the first. Says how long ten writes within the first take, ns.
#include <time.h>

#include "pair.h"

enum { kMost = 100 };
static char memory[128];

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  HOLDS(count <= kMost);
  open_first();
  struct ibv_context* other = ibv_open_device(context->device);
  HOLDS(other != NULL);
  struct ibv_cq* idle[kMost];
  for (int i = 0; i < count; ++i) HOLDS((idle[i] = ibv_create_cq(other, 16, NULL, NULL, 0)) != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  HOLDS(cq != NULL);
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(mr != NULL);
  struct ibv_qp* from = make_qp(IBV_QPT_RC, cq, NULL);
  struct ibv_qp* to = make_qp(IBV_QPT_RC, cq, NULL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);
  struct ibv_sge piece = piece_of(mr, memory, 64);
  for (int i = 0; i < 10; ++i) {
    const long long began = now();
    struct ibv_wc wc;
    HOLDS(post_send(from, i, IBV_WR_RDMA_WRITE, &piece, 1, (uintptr_t)memory + 64, mr->rkey) == 0);
    do
      for (int j = 0; j < count; ++j) HOLDS(ibv_poll_cq(idle[j], 1, &wc) == 0);
    while (ibv_poll_cq(cq, 1, &wc) == 0);
    HOLDS(wc.status == IBV_WC_SUCCESS);
    printf("%lld\n", now() - began);
  }
  return 0;
}
