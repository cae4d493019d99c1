// Waits in ways of which each takes a time that is known, and tells when it came back, by the monotonic clock of virtual time.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 3, kBoot = 3600 };

static pthread_barrier_t barrier;
static volatile sig_atomic_t signals;

static void told(const char* what, int number) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%s %d at %ld.%02ld\n", what, number, (long)now.tv_sec - kBoot, now.tv_nsec / 10000000);
  fflush(stdout);
}

static struct itimerspec every(long first, long interval) {
  struct itimerspec timer = {{0, interval * 1000000}, {0, first * 1000000}};
  return timer;
}

static void children(void) {
  const int status = system("sleep 0.25; exit 3");
  told("system", WEXITSTATUS(status));
  char line[32] = "";
  FILE* const shell = popen("sleep 0.25; echo 42; exit 5", "r");
  if (shell == NULL || fgets(line, sizeof line, shell) == NULL) exit(1);
  told("popen", atoi(line));
  told("pclose", WEXITSTATUS(pclose(shell)));
  char* const words[] = {"sh", "-c", "sleep 0.5; exit 4", NULL};
  pid_t process;
  int spawned = 0;
  if (posix_spawnp(&process, "sh", NULL, NULL, words, environ) != 0) exit(1);
  waitpid(process, &spawned, 0);
  told("posix_spawn", WEXITSTATUS(spawned));
}

static void timers(void) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const struct itimerspec hundred = every(100, 100);
  uint64_t times = 0;
  timerfd_settime(timer, 0, &hundred, NULL);
  usleep(250000);
  if (read(timer, &times, sizeof times) != sizeof times) exit(1);
  told("timerfd", (int)times);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(timer, &set);
  struct timespec most = {5, 0};
  told("pselect", pselect(timer + 1, &set, NULL, NULL, &most, NULL));
  close(timer);
  most = (struct timespec){0, 200000000};
  told("pselect", pselect(0, NULL, NULL, NULL, &most, NULL));
}

static void hear(int signal) { signals += signal == SIGUSR1; }

static void signal_timer(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  const struct itimerspec hundred = every(100, 200);
  timer_t timer;
  signal(SIGUSR1, hear);
  if (timer_create(CLOCK_REALTIME, &event, &timer) != 0) exit(1);
  timer_settime(timer, 0, &hundred, NULL);
  while (signals < 3) sleep(10);
  timer_delete(timer);
  told("timer", signals);
}

static volatile int calls, in_main;
static pthread_t first;
static void called(union sigval value) {
  in_main += pthread_equal(pthread_self(), first) != 0;
  calls += value.sival_int;
  usleep(250000);
}

/* The calls overlap. */
static void calling_timer(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value = {.sival_int = 1}};
  event.sigev_notify_function = called;
  const struct itimerspec hundred = every(100, 100);
  timer_t timer;
  first = pthread_self();
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) exit(1);
  timer_settime(timer, 0, &hundred, NULL);
  usleep(350000);
  timer_delete(timer);
  usleep(350000);
  told("calls", calls + 10 * in_main);
  const struct itimerspec often = every(1, 1);
  event.sigev_value.sival_int = 0;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) exit(1);
  timer_settime(timer, 0, &often, NULL);
  usleep(2000000);
  timer_delete(timer);
  usleep(300000);
  told("calls", calls);
}

static void* meet(void* argument) {
  usleep((useconds_t)(100000 * (intptr_t)argument));
  return (void*)(intptr_t)(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void threads(void) {
  pthread_t all[kThreads];
  int serial = 0;
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&all[i], NULL, meet, (void*)(i + 1));
  for (int i = 0; i < kThreads; ++i) {
    void* result;
    pthread_join(all[i], &result);
    serial += (int)(intptr_t)result;
  }
  pthread_barrier_destroy(&barrier);
  told("barrier", serial);
}

int main(void) {
  children();
  timers();
  signal_timer();
  threads();
  calling_timer();
  return 0;
}
