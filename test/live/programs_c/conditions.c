// A condition in memory that a process shares with its child, which tells it after 20 ms, beside many others of the process. Prints
// for both clocks of conditions what the wait of at most 2 s returned, and how many ms of the clock it took.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  int told;
};

static void tell(struct shared *shared) {
  usleep(20000);
  pthread_mutex_lock(&shared->mutex);
  shared->told = 1;
  pthread_cond_signal(&shared->condition);
  pthread_mutex_unlock(&shared->mutex);
  _exit(0);
}

static void wait_for_child(struct shared *shared, clockid_t clock) {
  pthread_mutexattr_t of_mutex;
  pthread_condattr_t of_condition;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &of_mutex);
  pthread_condattr_init(&of_condition);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&of_condition, clock);
  pthread_cond_init(&shared->condition, &of_condition);
  shared->told = 0;
  struct timespec before, until, after;
  clock_gettime(clock, &before);
  until = before;
  until.tv_sec += 2;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) tell(shared);
  int error = 0;
  pthread_mutex_lock(&shared->mutex);
  while (!shared->told && error == 0) error = pthread_cond_timedwait(&shared->condition, &shared->mutex, &until);
  pthread_mutex_unlock(&shared->mutex);
  clock_gettime(clock, &after);
  printf("%d %ld\n", error, (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000);
  waitpid(child, NULL, 0);
}

static pthread_cond_t others[1000];

int main(void) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) pthread_cond_init(&others[i], &monotonic);
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return EXIT_FAILURE;
  wait_for_child(shared, CLOCK_REALTIME);
  wait_for_child(shared, CLOCK_MONOTONIC);
  return EXIT_SUCCESS;
}
