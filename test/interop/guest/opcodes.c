/* Every operation that Soft-RoCE has, one at a time between two programs, with the data verified where it arrives.
 *
 *   opcodes -s         [-t rc|uc|ud] [-m PATH_MTU] [-g GID_INDEX] [-C TRAFFIC_CLASS] [-P FIRST_PSN]
 *   opcodes -c ADDRESS [the same]    [-x TEST]
 *
 * TEST: ops (default): all that the transport has
 *       rkey, read-rkey: WRITE and READ with a wrong rkey; long: a SEND longer than the receive buffer; each must be refused
 *       rnr: SENDs for which there is no receive buffer for the first 300 ms
 *
 * Both ends tell each other over TCP, port 18600, a line each, in hexadecimal: queue pair number, first PSN, rkey, address and
 * GID (32 digits), and the client its test; then the server a line "ready RKEY", the rkey of a memory window of type 2 or 0. The
 * end of that connection is the end of the server. Status 0 if all was as it must be. */
#include <arpa/inet.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  TCP_PORT = 18600,
  QKEY = 0x11111111,
  GRH = 40,
  ACK_TIMEOUT = 18, /* 4.096 us << 18 = 1.07 s: an emulated machine may be kept waiting */
  /* Layout of the memory: data that the peer writes, that it reads, an atomic variable, data that is sent, and received. */
  REGION = 64 << 10,
  WRITTEN = 0,
  SOURCE = REGION,
  VARIABLE = 2 * REGION,
  LOCAL = 3 * REGION,
  SLOTS = 4 * REGION,
  SLOT = 16 << 10,
  RECEIVES = 64,
  MEMORY = SLOTS + RECEIVES * SLOT
};
static const uint64_t kVariable = 0x1122334455667788;

struct end {
  uint32_t qpn, psn, rkey;
  uint64_t address;
  union ibv_gid gid;
  char test[16];
};

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t *memory;
static enum ibv_qp_type type = IBV_QPT_RC;
static struct end me, peer;
static int failures;

static void die(const char *what) {
  perror(what);
  exit(2);
}

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("FAILED: ", stdout);
  vprintf(format, arguments);
  putchar('\n');
  va_end(arguments);
  failures++;
}

/* Data names itself: byte i is the first one plus 7 i. */
static void fill(uint8_t *data, uint32_t length, uint8_t first) {
  for (uint32_t i = 0; i < length; i++) data[i] = first + 7 * i;
}

static int is_filled(const uint8_t *data, uint32_t length) {
  for (uint32_t i = 1; i < length; i++)
    if (data[i] != (uint8_t)(data[0] + 7 * i)) return 0;
  return 1;
}

static struct ibv_wc completion(const char *what) {
  const time_t limit = time(NULL) + 20;
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
    if (time(NULL) > limit) {
      printf("FAILED: %s: no completion\n", what);
      exit(1);
    }
  if (count < 0) die("ibv_poll_cq");
  return wc;
}

/* Posts one work request over `length` bytes of LOCAL and waits for it. */
static struct ibv_wc execute(const char *what, struct ibv_send_wr wr, uint32_t length) {
  struct ibv_send_wr *bad;
  struct ibv_sge sge = {(uintptr_t)memory + LOCAL, length, mr->lkey};
  wr.sg_list = &sge;
  wr.num_sge = length > 0;
  wr.send_flags |= IBV_SEND_SIGNALED;
  if (type == IBV_QPT_UD) {
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = peer.qpn;
    wr.wr.ud.remote_qkey = QKEY;
  }
  if (ibv_post_send(qp, &wr, &bad)) die("ibv_post_send");
  const struct ibv_wc wc = completion(what);
  printf("%s, %u bytes: %s\n", what, length, ibv_wc_status_str(wc.status));
  return wc;
}

static void expect_success(const char *what, struct ibv_send_wr wr, uint32_t length) {
  if (execute(what, wr, length).status != IBV_WC_SUCCESS) fail("%s of %u bytes", what, length);
}

/* The first byte of each message is another one. */
static void fill_next(uint32_t length) {
  static uint8_t first;
  fill(memory + LOCAL, length, first += 17);
}

static void send_message(uint32_t length, int flags) {
  fill_next(length);
  expect_success("SEND", (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = flags}, length);
}

static void send_immediate(uint32_t length, int flags) {
  fill_next(length);
  expect_success("SEND with immediate",
                 (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = flags, .imm_data = htonl(length)}, length);
}

static struct ibv_send_wr remote(enum ibv_wr_opcode opcode, uint32_t offset) {
  struct ibv_send_wr wr = {.opcode = opcode};
  wr.wr.rdma.remote_addr = peer.address + offset;
  wr.wr.rdma.rkey = peer.rkey;
  return wr;
}

static void read_back(uint32_t offset, uint32_t length, uint8_t first) {
  memset(memory + LOCAL, 0xee, length);
  expect_success("RDMA READ", remote(IBV_WR_RDMA_READ, offset), length);
  if (length > 0 && (memory[LOCAL] != first || !is_filled(memory + LOCAL, length)))
    fail("RDMA READ of %u bytes brought others", length);
}

static void write_message(uint32_t length) {
  fill_next(length);
  const uint8_t first = memory[LOCAL];
  expect_success("RDMA WRITE", remote(IBV_WR_RDMA_WRITE, WRITTEN), length);
  if (type == IBV_QPT_RC) read_back(WRITTEN, length, first);
}

/* It differs from the place of the next one: the server looks a moment later. */
static uint32_t place_of(uint32_t length) { return WRITTEN + (length > 64 ? REGION / 2 : 0); }

/* The immediate is the length: the server looks at what was written. */
static void write_immediate(uint32_t length, int flags) {
  fill_next(length);
  struct ibv_send_wr wr = remote(IBV_WR_RDMA_WRITE_WITH_IMM, place_of(length));
  wr.imm_data = htonl(length);
  wr.send_flags = flags;
  expect_success("RDMA WRITE with immediate", wr, length);
}

static void atomic(const char *what, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, uint64_t expected) {
  struct ibv_send_wr wr = {.opcode = opcode};
  wr.wr.atomic.remote_addr = peer.address + VARIABLE;
  wr.wr.atomic.rkey = peer.rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  expect_success(what, wr, 8);
  uint64_t previous;
  memcpy(&previous, memory + LOCAL, sizeof previous);
  if (previous != expected) fail("%s found %llx, not %llx", what, (unsigned long long)previous, (unsigned long long)expected);
}

static void all_operations(uint32_t mtu, uint32_t window_rkey) {
  const uint32_t lengths[] = {0, 1, 2, 3, 64, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5};
  const int count = type == IBV_QPT_UD ? 6 : 9;
  for (int i = 0; i < count; i++) send_message(lengths[i], 0);
  send_message(32, IBV_SEND_SOLICITED);
  send_immediate(33, 0);
  if (type == IBV_QPT_UD) return;
  send_immediate(2 * mtu + 6, IBV_SEND_SOLICITED);
  for (int i = 0; i < count; i++) write_message(lengths[i]);
  write_immediate(0, 0);
  write_immediate(31, 0);
  write_immediate(3 * mtu + 1, IBV_SEND_SOLICITED);
  if (type == IBV_QPT_UC) return;
  for (int i = 0; i < count; i++) read_back(SOURCE, lengths[i], 0);
  atomic("FETCH AND ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, kVariable);
  atomic("COMPARE AND SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, kVariable, 1, kVariable + 5);
  atomic("COMPARE AND SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, kVariable + 5, 77, kVariable + 5);
  atomic("FETCH AND ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 77);
  if (window_rkey != 0) {
    fill_next(40);
    expect_success("SEND with invalidate", (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = window_rkey},
                   40);
  }
}

static void expect_refusal(const char *what, enum ibv_wr_opcode opcode, uint32_t length, enum ibv_wc_status status) {
  const struct ibv_wc wc = execute(what, remote(opcode, WRITTEN), length);
  if (wc.status != status) fail("%s should be refused with: %s", what, ibv_wc_status_str(status));
  /* The queue pair is in the error state: what follows is flushed. */
  if (execute("after it", (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 1).status != IBV_WC_WR_FLUSH_ERR)
    fail("%s left the queue pair working", what);
}

static void client(uint32_t mtu, uint32_t window_rkey) {
  if (!strcmp(me.test, "ops")) {
    all_operations(mtu, window_rkey);
  } else if (!strcmp(me.test, "rkey")) {
    peer.rkey ^= 0x5500;
    expect_refusal("RDMA WRITE with a wrong rkey", IBV_WR_RDMA_WRITE, 64, IBV_WC_REM_ACCESS_ERR);
  } else if (!strcmp(me.test, "read-rkey")) {
    peer.rkey ^= 0x5500;
    expect_refusal("RDMA READ with a wrong rkey", IBV_WR_RDMA_READ, 64, IBV_WC_REM_ACCESS_ERR);
  } else if (!strcmp(me.test, "long")) {
    fill(memory + LOCAL, SLOT + 1, 0);
    /* The standard wants an invalid request; Soft-RoCE says that the responder could not do it. */
    const enum ibv_wc_status status =
        execute("SEND that is too long", (struct ibv_send_wr){.opcode = IBV_WR_SEND}, SLOT + 1).status;
    if (status != IBV_WC_REM_INV_REQ_ERR && status != IBV_WC_REM_OP_ERR) fail("a SEND that is too long should be refused");
  } else if (!strcmp(me.test, "rnr")) {
    for (int i = 0; i < 5; i++) send_message(1000, 0);
  } else {
    fail("there is no test %s", me.test);
  }
}

static void post_receives(void) {
  for (int i = 0; i < RECEIVES; i++) {
    struct ibv_sge sge = {(uintptr_t)memory + SLOTS + i * SLOT, SLOT, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(qp, &wr, &bad)) die("ibv_post_recv");
  }
}

static void check_receive(const struct ibv_wc *wc) {
  const uint32_t header = type == IBV_QPT_UD ? GRH : 0;
  const int written = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  const uint32_t length = written ? ntohl(wc->imm_data) : wc->byte_len - header;
  if (written && length > REGION / 2) fail("immediate %x", length);
  const uint8_t *data = written ? memory + place_of(length) : memory + SLOTS + wc->wr_id * SLOT + header;
  printf("received %u bytes, opcode %d, flags %x: %s\n", length, wc->opcode, wc->wc_flags, ibv_wc_status_str(wc->status));
  if (!is_filled(data, length)) fail("%u bytes are not those that were sent", length);
  if (wc->wc_flags & IBV_WC_WITH_IMM && ntohl(wc->imm_data) != length) fail("immediate %x", ntohl(wc->imm_data));
}

/* Serves until the client hangs up. */
static void serve(int connection) {
  struct ibv_wc wc;
  char byte;
  int ended = 0;
  while (!ended) {
    ended = recv(connection, &byte, 1, MSG_DONTWAIT) == 0;
    while (ibv_poll_cq(cq, 1, &wc) > 0)
      if (wc.status == IBV_WC_SUCCESS) check_receive(&wc);
    usleep(1000);
  }
}

/* A memory window for the client to invalidate; 0 if there is none. */
static uint32_t bind_window(void) {
  struct ibv_mw *window = type == IBV_QPT_RC ? ibv_alloc_mw(pd, IBV_MW_TYPE_2) : NULL;
  if (window == NULL) return 0;
  struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)memory, 4096, IBV_ACCESS_REMOTE_WRITE};
  if (ibv_post_send(qp, &wr, &bad) || completion("bind").status != IBV_WC_SUCCESS) return 0;
  return wr.bind_mw.rkey;
}

static void make_queue_pair(int gid_index) {
  int count;
  struct ibv_device **devices = ibv_get_device_list(&count);
  if (devices == NULL || count == 0) die("no device");
  struct ibv_context *context = ibv_open_device(devices[0]);
  if (context == NULL || (pd = ibv_alloc_pd(context)) == NULL || (cq = ibv_create_cq(context, 1024, NULL, NULL, 0)) == NULL)
    die("device");
  if (posix_memalign((void **)&memory, 4096, MEMORY)) die("memory");
  memset(memory, 0, MEMORY);
  fill(memory + SOURCE, REGION, 0);
  memcpy(memory + VARIABLE, &kVariable, sizeof kVariable);
  mr = ibv_reg_mr(
      pd, memory, MEMORY,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
  if (mr == NULL) die("ibv_reg_mr");
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {16, RECEIVES, 1, 1, 0}};
  if ((qp = ibv_create_qp(pd, &init)) == NULL) die("ibv_create_qp");
  me.qpn = qp->qp_num;
  me.rkey = mr->rkey;
  me.address = (uintptr_t)memory;
  if (ibv_query_gid(context, 1, gid_index, &me.gid)) die("ibv_query_gid");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  if (type == IBV_QPT_RC) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  const int own = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own)) die("INIT");
}

static void connect_queue_pair(uint32_t mtu, int gid_index, int traffic_class) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .dest_qp_num = peer.qpn, .rq_psn = peer.psn};
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 12;
  attr.path_mtu = IBV_MTU_256;
  while ((256u << (attr.path_mtu - IBV_MTU_256)) < mtu) attr.path_mtu++;
  attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
  attr.ah_attr.grh = (struct ibv_global_route){peer.gid, 0, gid_index, 64, traffic_class};
  const int connected = type == IBV_QPT_UD ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int reliable = type == IBV_QPT_RC;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | connected | (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
    die("RTR");
  if (type == IBV_QPT_UD && (ah = ibv_create_ah(pd, &attr.ah_attr)) == NULL) die("ibv_create_ah");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = me.psn, .timeout = ACK_TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
  attr.max_rd_atomic = 16;
  const int recovery = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? recovery : 0))) die("RTS");
}

/* Returns the connection over which both ends are told of each other. Without `address` it waits for one. */
static int meet(const char *address) {
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(TCP_PORT)};
  if (address == NULL) {
    const int listener = socket(AF_INET6, SOCK_STREAM, 0);
    const int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&any, sizeof any) || listen(listener, 1)) die("listen");
    return accept(listener, NULL, NULL);
  }
  char mapped[64];
  snprintf(mapped, sizeof mapped, strchr(address, ':') ? "%s" : "::ffff:%s", address);
  if (inet_pton(AF_INET6, mapped, &any.sin6_addr) != 1) die(address);
  const int connection = socket(AF_INET6, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr *)&any, sizeof any)) die("connect");
  return connection;
}

static void introduce(int connection, FILE *incoming) {
  char gid[33];
  for (int i = 0; i < 16; i++) snprintf(gid + 2 * i, 3, "%02x", me.gid.raw[i]);
  dprintf(connection, "%x %x %x %llx %s %s\n", me.qpn, me.psn, me.rkey, (unsigned long long)me.address, gid, me.test);
  unsigned long long address;
  if (fscanf(incoming, "%x %x %x %llx %32s %15s", &peer.qpn, &peer.psn, &peer.rkey, &address, gid, peer.test) != 6)
    die("the peer's line");
  peer.address = address;
  for (int i = 0; i < 16; i++) {
    unsigned octet;
    sscanf(gid + 2 * i, "%2x", &octet);
    peer.gid.raw[i] = octet;
  }
}

int main(int argc, char **argv) {
  const char *address = NULL, *test = "ops";
  int option, server = 0, gid_index = 1, traffic_class = 0;
  uint32_t mtu = 1024;
  while ((option = getopt(argc, argv, "sc:t:m:g:C:P:x:")) != -1) switch (option) {
      case 's':
        server = 1;
        break;
      case 'c':
        address = optarg;
        break;
      case 't':
        type = !strcmp(optarg, "uc") ? IBV_QPT_UC : !strcmp(optarg, "ud") ? IBV_QPT_UD : IBV_QPT_RC;
        break;
      case 'm':
        mtu = atoi(optarg);
        break;
      case 'g':
        gid_index = atoi(optarg);
        break;
      case 'C':
        traffic_class = strtol(optarg, NULL, 0);
        break;
      case 'P':
        me.psn = strtol(optarg, NULL, 0);
        break;
      case 'x':
        test = optarg;
        break;
      default:
        return 2;
    }
  if (server == (address != NULL)) return 2;
  snprintf(me.test, sizeof me.test, "%s", server ? "-" : test);
  make_queue_pair(gid_index);
  const int connection = meet(address);
  FILE *incoming = fdopen(connection, "r");
  if (incoming == NULL) die("connection");
  introduce(connection, incoming);
  connect_queue_pair(mtu, gid_index, traffic_class);
  if (server) {
    const int late = !strcmp(peer.test, "rnr");
    if (!late) post_receives();
    dprintf(connection, "ready %x\n", bind_window());
    if (late) {
      usleep(300000);
      post_receives();
    }
    serve(connection);
  } else {
    uint32_t window_rkey;
    if (fscanf(incoming, " ready %x", &window_rkey) != 1) die("the server");
    client(mtu, window_rkey);
  }
  return failures > 0;
}
