// Memory that is given back to the system or protected while it is registered: who uses it gets an error, and the program goes on.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LENGTH 8192
static char own[LENGTH];

static struct ibv_qp* from;
static struct ibv_qp* to;

static void connect_both(struct ibv_cq* cq) {
  from = make_qp(IBV_QPT_RC, cq, NULL);
  to = make_qp(IBV_QPT_RC, cq, NULL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);
}

int main(void) {
  open_first();
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  char* gone = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HOLDS(gone != MAP_FAILED);
  struct ibv_mr* mine = ibv_reg_mr(pd, own, LENGTH, access);
  struct ibv_mr* theirs = ibv_reg_mr(pd, gone, LENGTH, access);
  HOLDS(mine != NULL && theirs != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  HOLDS(cq != NULL);
  HOLDS(munmap(gone, LENGTH) == 0);
  struct ibv_sge good = piece_of(mine, own, 5000);
  struct ibv_sge bad = piece_of(theirs, gone, 5000);

  connect_both(cq);
  HOLDS(post_send(from, 1, IBV_WR_RDMA_WRITE, &good, 1, (uintptr_t)gone, theirs->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_REM_ACCESS_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  connect_both(cq);
  HOLDS(post_send(from, 2, IBV_WR_RDMA_READ, &good, 1, (uintptr_t)gone, theirs->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_REM_ACCESS_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  connect_both(cq);
  HOLDS(post_send(from, 3, IBV_WR_RDMA_WRITE, &bad, 1, (uintptr_t)own, mine->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_LOC_PROT_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  connect_both(cq);
  HOLDS(post_send(from, 4, IBV_WR_RDMA_READ, &bad, 1, (uintptr_t)own, mine->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_LOC_PROT_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);

  // The end of a long piece of several, which are copied when they are posted.
  char* cut = mmap(NULL, 4 * LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HOLDS(cut != MAP_FAILED);
  struct ibv_mr* half = ibv_reg_mr(pd, cut, 4 * LENGTH, access);
  HOLDS(half != NULL && munmap(cut + 3 * LENGTH, LENGTH) == 0);
  struct ibv_sge several[2] = {piece_of(mine, own, 100), piece_of(half, cut, 4 * LENGTH)};
  connect_both(cq);
  HOLDS(post_send(from, 6, IBV_WR_SEND, several, 2, 0, 0) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_LOC_PROT_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0 && ibv_dereg_mr(half) == 0);

  // The program's own faults are as deadly as ever.
  const pid_t child = fork();
  if (child == 0) {
    *(volatile char*)gone = 1;
    _exit(0);
  }
  int status;
  HOLDS(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);

  // Memory may be read only: for a peer's WRITE, and for a READ or a message that is to come there.
  char* fixed = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HOLDS(fixed != MAP_FAILED);
  HOLDS(ibv_reg_mr(pd, fixed, LENGTH, access) == NULL && errno == EFAULT);
  struct ibv_mr* rest = ibv_reg_mr(pd, fixed, LENGTH, IBV_ACCESS_REMOTE_READ);
  HOLDS(rest != NULL);
  HOLDS(ibv_rereg_mr(rest, IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0, access) != 0);
  HOLDS(mprotect(fixed, LENGTH, PROT_READ | PROT_WRITE) == 0);
  HOLDS(ibv_rereg_mr(rest, IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0, access) == 0);
  HOLDS(mprotect(fixed + LENGTH / 2, LENGTH / 2, PROT_READ) == 0);
  struct ibv_sge into = piece_of(rest, fixed, LENGTH);
  connect_both(cq);
  HOLDS(post_send(from, 7, IBV_WR_RDMA_READ, &good, 1, (uintptr_t)fixed, rest->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  HOLDS(post_send(from, 8, IBV_WR_RDMA_WRITE, &good, 1, (uintptr_t)fixed, rest->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_REM_ACCESS_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  connect_both(cq);
  HOLDS(post_send(from, 9, IBV_WR_RDMA_READ, &into, 1, (uintptr_t)own, mine->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_LOC_PROT_ERR);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  connect_both(cq);
  struct ibv_recv_wr receive = {.wr_id = 10, .sg_list = &into, .num_sge = 1};
  struct ibv_recv_wr* refused;
  HOLDS(ibv_post_recv(to, &receive, &refused) == 0);
  HOLDS(post_send(from, 11, IBV_WR_SEND, &good, 1, 0, 0) == 0);
  for (int i = 0; i < 2; ++i) {
    const struct ibv_wc wc = next_completion(cq);
    HOLDS(wc.status == (wc.wr_id == 10 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR));
  }
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0 && ibv_dereg_mr(rest) == 0);
  HOLDS(ibv_reg_mr(pd, (void*)0xfffffffffffff000, 0x2000, 0) == NULL && errno == EINVAL);

  connect_both(cq);
  HOLDS(post_send(from, 5, IBV_WR_RDMA_WRITE, &good, 1, (uintptr_t)own, mine->rkey) == 0);
  HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  HOLDS(ibv_dereg_mr(mine) == 0 && ibv_dereg_mr(theirs) == 0 && ibv_destroy_cq(cq) == 0);
  HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
