/* Threads that wait for one another by memory alone, and a trap of the program's own. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 2000 };

static volatile int turn;
static volatile int own;

static void *other(void *unused) {
  for (int i = 0; i < kRounds; ++i) {
    while (turn != 1);
    turn = 0;
  }
  return unused;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* A wait that is over before it begins, mostly. */
static void pass(int least) {
  while (own < least);
}

int main(void) {
  double began = now();
  pthread_t thread;
  pthread_create(&thread, NULL, other, NULL);
  for (int i = 0; i < kRounds; ++i) {
    turn = 1;
    while (turn != 0);
  }
  pthread_join(thread, NULL);
  double rounds = now() - began;
  printf("%d rounds, no time: %d\n", kRounds, rounds == 0);
  began = now();
  for (int i = 0; i < kRounds; ++i) {
    own = i;
    pass(i);
  }
  printf("no wait, no time: %d\n", now() - began < 1e-3);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    __asm__ volatile("int3");
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  printf("a trap ends: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
  return 0;
}
