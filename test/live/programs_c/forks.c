// Questions of libibverbs and librdmacm to the kernel about devices and processes that fork, and registered memory in both
// processes. With RDMAV_FORK_SAFE=1 libibverbs 44 keeps registered memory from children all the same (MADV_DONTFORK), as on any
// NIC; newer ones ask, and do not.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
  do { \
    if (!(what)) return printf("failed: %s, line %d\n", #what, __LINE__), 1; \
  } while (0)

enum { kPage = 4096, kPages = 16 };

// A question that has no answer here is refused, not left open.
static int refusal(int operation) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  struct nlmsghdr ask = {sizeof ask, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation), NLM_F_REQUEST, 7, 0};
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
  } told;
  memset(&told, 0, sizeof told);
  if (fd < 0 || send(fd, &ask, sizeof ask, 0) != sizeof ask) return 1;
  if (recv(fd, &told, sizeof told, 0) < (ssize_t)sizeof told) return 1;
  close(fd);
  return told.header.nlmsg_type == NLMSG_ERROR && told.header.nlmsg_seq == 7 ? told.error.error : 1;
}

// Tells whether a child would not have it: "dc" is among the flags of its mapping.
static int is_kept(const void* memory) {
  FILE* maps = fopen("/proc/self/smaps", "r");
  char line[512];
  int inside = 0, kept = -1;
  while (maps != NULL && kept < 0 && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = (unsigned long)memory >= from && (unsigned long)memory < to;
    if (inside && strncmp(line, "VmFlags:", 8) == 0) kept = strstr(line, " dc") != NULL;
  }
  if (maps != NULL) fclose(maps);
  return kept;
}

int main(void) {
  const int asked = getenv("RDMAV_FORK_SAFE") != NULL;
  CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
  CHECK(!asked || ibv_fork_init() == 0);
  CHECK(refusal(RDMA_NLDEV_CMD_RES_QP_GET) == -95);
  CHECK(refusal(1000) == -95);
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  CHECK(devices != NULL && count > 0);
  CHECK(ibv_get_device_index(devices[0]) == 0);
  CHECK(ibv_get_device_guid(devices[0]) != 0);
  struct ibv_context* context = ibv_open_device(devices[0]);
  CHECK(context != NULL);
  CHECK(!asked || ibv_fork_init() == 0);
  struct ibv_pd* domain = ibv_alloc_pd(context);
  char* memory = aligned_alloc(kPage, kPage * kPages);
  memset(memory, 'p', kPage * kPages);
  struct ibv_mr* region = ibv_reg_mr(domain, memory, kPage * kPages, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  CHECK(region != NULL);
  const int kept = is_kept(memory);
  CHECK(kept == 0 || (kept == 1 && asked));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // Memory that was kept from the child would end it here.
    for (int i = 0; i < kPages && !kept; i++) {
      if (memory[i * kPage] != 'p') _exit(2);
      memory[i * kPage] = 'c';
    }
    _exit(0);
  }
  memory[0] = 'q';
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(memory[0] == 'q' && memory[kPage] == 'p');
  CHECK(system("true") == 0);
  FILE* pipe = popen("echo hello", "r");
  char line[16];
  CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "hello\n") == 0 && pclose(pipe) == 0);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  CHECK(channel != NULL);
  rdma_destroy_event_channel(channel);
  CHECK(ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(domain) == 0 && ibv_close_device(context) == 0);
  ibv_free_device_list(devices);
  printf("as it should be\n");
  return 0;
}
