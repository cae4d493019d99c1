// Events that a program reads late, by whatever way it waits for them: none is lost, and nobody waits for the reader.
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define MANY 10000
static char memory[64];

static struct ibv_comp_channel* channel;
static struct ibv_cq* cq;
static struct ibv_qp* from;
static struct ibv_mr* mr;

// Makes so many events that nobody reads.
static void make_events(int count) {
  for (int i = 0; i < count; ++i) {
    struct ibv_sge piece = piece_of(mr, memory, 8);
    HOLDS(ibv_req_notify_cq(cq, 0) == 0);
    HOLDS(post_send(from, i, IBV_WR_RDMA_WRITE, &piece, 1, (uintptr_t)memory + 32, mr->rkey) == 0);
    HOLDS(next_completion(cq).status == IBV_WC_SUCCESS);
  }
}

static int get_event(void) {
  struct ibv_cq* of;
  void* own;
  if (ibv_get_cq_event(channel, &of, &own) != 0) return 0;
  HOLDS(of == cq && own == memory);
  return 1;
}

static void* get_half(void* unused) {
  for (int i = 0; i < MANY / 2; ++i) HOLDS(get_event());
  return unused;
}

int main(void) {
  open_first();
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  HOLDS(mr != NULL);
  HOLDS((channel = ibv_create_comp_channel(context)) != NULL);
  HOLDS((cq = ibv_create_cq(context, 64, memory, channel, 0)) != NULL);
  from = make_qp(IBV_QPT_RC, cq, NULL);
  struct ibv_qp* to = make_qp(IBV_QPT_RC, cq, NULL);
  connect_to(to, from->qp_num);
  connect_to(from, to->qp_num);

  // Reads them one after the other, and by two threads at once.
  make_events(MANY);
  for (int i = 0; i < MANY; ++i) HOLDS(get_event());
  make_events(MANY);
  pthread_t other;
  HOLDS(pthread_create(&other, NULL, get_half, NULL) == 0);
  get_half(NULL);
  HOLDS(pthread_join(other, NULL) == 0);

  // A child process, which has the descriptor, too, reads them.
  make_events(MANY);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < MANY; ++i) HOLDS(get_event());
    _exit(0);
  }
  int status;
  HOLDS(waitpid(child, &status, 0) == child && status == 0);

  // A duplicate changes as long as there are any.
  HOLDS(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  HOLDS(!get_event() && errno == EAGAIN);
  make_events(MANY);
  const int set = epoll_create1(0);
  struct epoll_event change = {.events = EPOLLIN | EPOLLET};
  HOLDS(epoll_ctl(set, EPOLL_CTL_ADD, dup(channel->fd), &change) == 0);
  for (int got = 0; got < MANY;) {
    HOLDS(epoll_wait(set, &change, 1, 10000) == 1);
    while (get_event()) ++got;
  }
  HOLDS(!get_event());
  ibv_ack_cq_events(cq, 4 * MANY);

  // Events that nobody has read do not keep the queue.
  make_events(MANY);
  HOLDS(get_event());
  ibv_ack_cq_events(cq, 1);
  HOLDS(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  HOLDS(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
  HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  puts("as it should be");
  return 0;
}
