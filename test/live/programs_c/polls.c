/* Asks descriptors for ever, without waiting, until its child writes after half a second: by each call that can. A read of nothing
   does not wait, either. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int by_poll(int descriptor) {
  struct pollfd one = {.fd = descriptor, .events = POLLIN};
  return poll(&one, 1, 0);
}

static int by_ppoll(int descriptor) {
  struct pollfd one = {.fd = descriptor, .events = POLLIN};
  struct timespec none = {0, 0};
  return ppoll(&one, 1, &none, NULL);
}

static int by_select(int descriptor) {
  fd_set in;
  struct timeval none = {0, 0};
  FD_ZERO(&in);
  FD_SET(descriptor, &in);
  return select(descriptor + 1, &in, NULL, NULL, &none);
}

static int by_epoll(int descriptor) {
  static int set = -1;
  struct epoll_event event = {.events = EPOLLIN};
  if (set < 0) {
    set = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
  }
  return epoll_wait(set, &event, 1, 0);
}

int main(void) {
  static const struct {
    const char* name;
    int (*ask)(int);
  } calls[] = {{"poll", by_poll}, {"ppoll", by_ppoll}, {"select", by_select}, {"epoll_wait", by_epoll}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int ends[2];
    char nothing;
    struct timespec began, ended;
    if (pipe(ends) != 0 || read(ends[0], &nothing, 0) != 0) return 1;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (fork() == 0) {
      usleep(500 * 1000);
      _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    while (calls[i].ask(ends[0]) == 0) {
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%s %.3f\n", calls[i].name,
           (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
    wait(NULL);
  }
  return 0;
}
