// A NIC loses the address of a program that listens there, and gets it back: the program is told, by both libraries. The test takes
// the address away once the program is ready, and gives it back once it is gone.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "pair.h"

static struct rdma_cm_id* id;

static void await_gid_change(void) {
  struct ibv_async_event event;
  HOLDS(ibv_get_async_event(id->verbs, &event) == 0);
  HOLDS(event.event_type == IBV_EVENT_GID_CHANGE && event.element.port_num == 1);
  ibv_ack_async_event(&event);
}

static int has_gid(int index) {
  static const union ibv_gid none;
  union ibv_gid gid;
  HOLDS(ibv_query_gid(id->verbs, 1, index, &gid) == 0);
  return memcmp(&gid, &none, sizeof gid) != 0;
}

static void say(const char* what) {
  puts(what);
  fflush(stdout);
}

int main(int argc, char** argv) {
  HOLDS(argc == 2);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  HOLDS(channel != NULL && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(7000)};
  HOLDS(inet_pton(AF_INET, argv[1], &own.sin_addr) == 1);
  HOLDS(rdma_bind_addr(id, (struct sockaddr*)&own) == 0 && rdma_listen(id, 4) == 0);
  HOLDS((pd = ibv_alloc_pd(id->verbs)) != NULL);
  struct ibv_port_attr port;
  HOLDS(ibv_query_port(id->verbs, 1, &port) == 0 && port.gid_tbl_len == 16);
  HOLDS(has_gid(0) && !has_gid(1) && !has_gid(15));
  struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
  HOLDS(ibv_query_gid(id->verbs, 1, 0, &way.grh.dgid) == 0);
  struct ibv_ah* ah = ibv_create_ah(pd, &way);
  HOLDS(ah != NULL && ibv_destroy_ah(ah) == 0);
  say("ready");

  struct rdma_cm_event* event;
  HOLDS(rdma_get_cm_event(channel, &event) == 0);
  HOLDS(event->event == RDMA_CM_EVENT_ADDR_CHANGE && event->id == id && event->status == 0);
  HOLDS(rdma_ack_cm_event(event) == 0);
  await_gid_change();
  HOLDS(!has_gid(0));
  HOLDS(ibv_create_ah(pd, &way) == NULL && errno == EINVAL);
  struct rdma_cm_id* late;
  HOLDS(rdma_create_id(channel, &late, NULL, RDMA_PS_TCP) == 0);
  HOLDS(rdma_bind_addr(late, (struct sockaddr*)&own) != 0 && errno == EADDRNOTAVAIL);
  HOLDS(rdma_destroy_id(late) == 0);
  say("gone");

  await_gid_change();
  HOLDS(has_gid(0));
  HOLDS((ah = ibv_create_ah(pd, &way)) != NULL && ibv_destroy_ah(ah) == 0);
  // The id listens there again: who connects is heard.
  say("back");
  HOLDS(rdma_get_cm_event(channel, &event) == 0 && event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
  HOLDS(event->listen_id == id);
  struct rdma_cm_id* asked = event->id;
  HOLDS(rdma_reject(asked, NULL, 0) == 0 && rdma_ack_cm_event(event) == 0 && rdma_destroy_id(asked) == 0);
  HOLDS(rdma_destroy_id(id) == 0);
  rdma_destroy_event_channel(channel);
  say("as it should be");
  return 0;
}
