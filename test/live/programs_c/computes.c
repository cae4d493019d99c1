/* Says, in microseconds, what a program in virtual time sees of a time for which it uses the processor, as the kernel accounts for
   it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

enum { kBurnt = 5000, kTraps = 900 };

static int64_t us_of(struct timespec t) { return t.tv_sec * 1000000LL + t.tv_nsec / 1000; }

static int64_t us(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return us_of(t);
}
static int64_t began;
static int64_t now(void) { return us(CLOCK_MONOTONIC) - began; }

/* The kernel's clock of the thread's processor, not that which is virtual. */
static int64_t used(void) {
  struct timespec t;
  long result = SYS_clock_gettime;
  __asm__ volatile("syscall" : "+a"(result) : "D"((long)CLOCK_THREAD_CPUTIME_ID), "S"(&t) : "rcx", "r11", "memory");
  return us_of(t);
}
static void burn(void) {
  const int64_t until = used() + kBurnt;
  while (used() < until);
}
static void say(const char* what, int64_t value) {
  printf("%s %lld\n", what, (long long)value);
  fflush(stdout);
}

static void* burning(void* unused) {
  burn();
  return unused;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* locking(void* unused) {
  pthread_mutex_lock(&mutex);
  say("locked", now());
  pthread_mutex_unlock(&mutex);
  return unused;
}

static struct ibv_cq* received;
static void* receiving(void* unused) {
  next_completion(received);
  say("received", now());
  return unused;
}

static atomic_int told;
static void* telling(void* unused) {
  usleep(200000);
  told = 1;
  return unused;
}

int main(void) {
  pthread_t thread;
  began = us(CLOCK_MONOTONIC);
  burn();
  say("clocks", now());

  began = us(CLOCK_MONOTONIC);
  const int64_t before = us(CLOCK_THREAD_CPUTIME_ID);
  burn();
  usleep(1000);
  say("sleeps", now());
  say("processor", us(CLOCK_THREAD_CPUTIME_ID) - before);

  began = us(CLOCK_MONOTONIC);
  pthread_create(&thread, NULL, burning, NULL);
  burn();
  pthread_join(thread, NULL);
  say("together", now());

  began = us(CLOCK_MONOTONIC);
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, locking, NULL);
  burn();
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);

  int ends[2];
  HOLDS(pipe(ends) == 0);
  began = us(CLOCK_MONOTONIC);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    HOLDS(read(ends[0], &byte, 1) == 1);
    say("read", now());
    _exit(0);
  }
  burn();
  HOLDS(write(ends[1], "x", 1) == 1);
  HOLDS(waitpid(child, NULL, 0) == child);

  open_first();
  struct ibv_cq* sent = ibv_create_cq(context, 16, NULL, NULL, 0);
  received = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_qp(IBV_QPT_RC, sent, NULL);
  struct ibv_qp* peer = make_qp(IBV_QPT_RC, received, NULL);
  connect_to(qp, peer->qp_num);
  connect_to(peer, qp->qp_num);
  static char memory[64];
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge piece = piece_of(mr, memory, sizeof memory);
  struct ibv_recv_wr receive = {.sg_list = &piece, .num_sge = 1}, *bad;
  HOLDS(ibv_post_recv(peer, &receive, &bad) == 0);
  pthread_create(&thread, NULL, receiving, NULL);
  usleep(1);
  began = us(CLOCK_MONOTONIC);
  burn();
  HOLDS(post_send(qp, 1, IBV_WR_SEND, &piece, 1, 0, 0) == 0);
  pthread_join(thread, NULL);

  /* What is waited for by memory is not computed, nor what a trap takes. */
  const int64_t waits = us(CLOCK_THREAD_CPUTIME_ID);
  int64_t really = used();
  pthread_create(&thread, NULL, telling, NULL);
  while (!told);
  say("really waited", used() - really);
  say("waited", us(CLOCK_THREAD_CPUTIME_ID) - waits);
  pthread_join(thread, NULL);
  const int64_t traps = us(CLOCK_THREAD_CPUTIME_ID);
  really = used();
  for (int i = 0; i < kTraps; ++i) __builtin_ia32_rdtsc();
  say("really trapped", used() - really);
  say("trapped", us(CLOCK_THREAD_CPUTIME_ID) - traps);
  burn();
  return 0;
}
