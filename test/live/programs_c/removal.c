// When the daemon of a NIC ends, each of its ids is told so. The test ends it once this program says that it is ready. With
// $SEVERAL there is another NIC; else there is nothing more to hear then.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "pair.h"

static struct sockaddr_in address(const char* text, int port) {
  struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons(port)};
  HOLDS(inet_pton(AF_INET, text, &out.sin_addr) == 1);
  return out;
}

int main(int argc, char** argv) {
  HOLDS(argc == 2);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  HOLDS(channel != NULL);
  struct rdma_cm_id* ids[3];
  for (int i = 0; i < 3; ++i) HOLDS(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP) == 0);
  struct sockaddr_in own = address(argv[1], 7000);
  HOLDS(rdma_bind_addr(ids[0], (struct sockaddr*)&own) == 0 && rdma_listen(ids[0], 4) == 0);
  HOLDS(rdma_resolve_addr(ids[1], NULL, (struct sockaddr*)&own, 2000) == 0);
  struct rdma_cm_event* event;
  HOLDS(rdma_get_cm_event(channel, &event) == 0 && event->event == RDMA_CM_EVENT_ADDR_RESOLVED && event->id == ids[1]);
  HOLDS(rdma_ack_cm_event(event) == 0);
  struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
  HOLDS(poll(&waits, 1, 0) == 0);
  puts("ready");
  fflush(stdout);

  struct ibv_async_event fatal;
  HOLDS(ibv_get_async_event(ids[1]->verbs, &fatal) == 0 && fatal.event_type == IBV_EVENT_DEVICE_FATAL);
  ibv_ack_async_event(&fatal);
  int told = 0;
  for (;;) {
    HOLDS(poll(&waits, 1, 10000) == 1);
    if (rdma_get_cm_event(channel, &event) != 0) break;
    HOLDS(event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
    for (int i = 0; i < 3; ++i) {
      if (event->id != ids[i]) continue;
      HOLDS((told & 1 << i) == 0);
      told |= 1 << i;
    }
    HOLDS(rdma_ack_cm_event(event) == 0);
    // An id that is on none of them goes on when one of several NICs is gone.
    if ((told & 3) == 3 && getenv("SEVERAL") != NULL) break;
  }
  HOLDS(getenv("SEVERAL") != NULL ? told == 3 : told == 7 && errno == ENODEV);
  struct rdma_cm_id* late;
  if (getenv("SEVERAL") == NULL) HOLDS(rdma_create_id(channel, &late, NULL, RDMA_PS_TCP) != 0 && errno == ENODEV);
  for (int i = 0; i < 3; ++i) HOLDS(rdma_destroy_id(ids[i]) == 0);
  rdma_destroy_event_channel(channel);
  puts("as it should be");
  return 0;
}
