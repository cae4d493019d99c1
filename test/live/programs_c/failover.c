// A program of two NICs that sends numbered messages to a third by one of them, and by the other from the first that failed on, until
// the first NIC's port is active again. The test takes the link down and up when this program says that it is "moving" and "over".
#include <fcntl.h>
#include <time.h>

#include "pair.h"

enum { WINDOW = 8, RECEIVES = 64, BYTES = 64, SOME = 500, MANY = 1 << 20 };

struct nic {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_mr* mr;
};
struct way {
  struct nic* from;
  struct ibv_qp *qp, *peer;
};

static char memory[RECEIVES * BYTES];
static uint32_t sending[WINDOW][BYTES / 4];
static uint8_t seen[MANY];
static struct nic nics[3];
static struct way ways[2];
static uint32_t acknowledged;  // all before it

static void open_nic(struct nic* nic, const char* name) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  HOLDS(devices != NULL);
  for (struct ibv_device** at = devices; *at != NULL; ++at) {
    if (strcmp(ibv_get_device_name(*at), name) == 0) nic->context = ibv_open_device(*at);
  }
  ibv_free_device_list(devices);
  HOLDS(nic->context != NULL && (nic->pd = ibv_alloc_pd(nic->context)) != NULL);
  HOLDS((nic->cq = ibv_create_cq(nic->context, 256, NULL, NULL, 0)) != NULL);
  HOLDS(fcntl(nic->context->async_fd, F_SETFL, O_NONBLOCK) == 0);
}

static void join(struct ibv_qp* qp, struct nic* to, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .min_rnr_timer = 1};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  HOLDS(ibv_query_gid(to->context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
  HOLDS(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  HOLDS(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void post_receive(struct ibv_qp* qp, int slot) {
  struct ibv_sge piece = {(uintptr_t)memory + slot * BYTES, BYTES, nics[2].mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &piece, .num_sge = 1}, *bad;
  HOLDS(ibv_post_recv(qp, &wr, &bad) == 0);
}

static struct ibv_qp* make(struct nic* nic) {
  struct ibv_qp_init_attr init = {.send_cq = nic->cq,
                                  .recv_cq = nic->cq,
                                  .cap = {.max_send_wr = WINDOW, .max_recv_wr = RECEIVES / 2, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(nic->pd, &init);
  HOLDS(qp != NULL);
  return qp;
}

static void build(struct way* way, int number) {
  way->qp = make(way->from);
  way->peer = make(&nics[2]);
  join(way->qp, &nics[2], way->peer->qp_num);
  join(way->peer, way->from, way->qp->qp_num);
  for (int i = 0; i < RECEIVES / 2; ++i) post_receive(way->peer, number * RECEIVES / 2 + i);
}

static void receive(void) {
  struct ibv_wc wc;
  while (ibv_poll_cq(nics[2].cq, 1, &wc) == 1) {
    if (wc.status != IBV_WC_SUCCESS) continue;
    uint32_t number;
    memcpy(&number, memory + wc.wr_id * BYTES, sizeof number);
    HOLDS(number < MANY);
    seen[number] = 1;
    for (int i = 0; i < 2; ++i) {
      if (ways[i].peer->qp_num == wc.qp_num) post_receive(ways[i].peer, (int)wc.wr_id);
    }
  }
}

static int next_of(struct nic* nic, enum ibv_event_type type) {
  struct ibv_async_event event;
  while (ibv_get_async_event(nic->context, &event) == 0) {
    ibv_ack_async_event(&event);
    if (event.event_type == type) return 1;
  }
  return 0;
}

// Sends by one way until it fails (false), `count` are acknowledged, or the other NIC's port is active.
static int move(struct way* way, uint32_t count, struct nic* other) {
  uint32_t posted = acknowledged;
  uint32_t end = count == 0 ? MANY : acknowledged + count;
  while (acknowledged < end) {
    for (; posted < end && posted - acknowledged < WINDOW; ++posted) {
      uint32_t* piece = sending[posted % WINDOW];
      piece[0] = posted;
      struct ibv_sge sge = {(uintptr_t)piece, BYTES, way->from->mr->lkey};
      HOLDS(post_send(way->qp, posted, IBV_WR_SEND, &sge, 1, 0, 0) == 0);
    }
    receive();
    struct ibv_wc wc;
    while (ibv_poll_cq(way->from->cq, 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) {
        HOLDS(wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id == acknowledged);
        return 0;
      }
      HOLDS(wc.wr_id == acknowledged++);
    }
    if (other != NULL && next_of(other, IBV_EVENT_PORT_ACTIVE)) end = posted;
  }
  return 1;
}

static void drain(struct way* way) {
  struct ibv_wc wc;
  for (int flushed = 1; flushed < WINDOW;) flushed += ibv_poll_cq(way->from->cq, 1, &wc);
}

static void say(const char* what) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%s at %.3f s: %u messages\n", what, now.tv_sec % 1000 + now.tv_nsec / 1e9, acknowledged);
  fflush(stdout);
}

int main(int argc, char** argv) {
  HOLDS(argc == 4);
  for (int i = 0; i < 3; ++i) open_nic(&nics[i], argv[i + 1]);
  for (int i = 0; i < 2; ++i) HOLDS((nics[i].mr = ibv_reg_mr(nics[i].pd, sending, sizeof sending, 0)) != NULL);
  HOLDS((nics[2].mr = ibv_reg_mr(nics[2].pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE)) != NULL);
  for (int i = 0; i < 2; ++i) {
    ways[i].from = &nics[i];
    build(&ways[i], i);
  }
  HOLDS(move(&ways[0], SOME, NULL));
  say("moving");
  HOLDS(!move(&ways[0], 0, NULL));
  say("failed");
  drain(&ways[0]);
  while (!next_of(&nics[0], IBV_EVENT_PORT_ERR)) receive();
  HOLDS(move(&ways[1], SOME, NULL));
  say("over");
  HOLDS(move(&ways[1], 0, &nics[0]));
  say("active");
  // What has failed is made anew, and has the traffic again.
  HOLDS(ibv_destroy_qp(ways[0].qp) == 0 && ibv_destroy_qp(ways[0].peer) == 0);
  build(&ways[0], 0);
  HOLDS(move(&ways[0], SOME, NULL));
  receive();
  say("back");
  for (uint32_t i = 0; i < acknowledged; ++i) HOLDS(seen[i]);
  puts("as it should be");
  return 0;
}
