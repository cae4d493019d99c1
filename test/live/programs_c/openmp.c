// Four threads of OpenMP, which wait at barriers, for one another, and for tasks: says a sum, and how long all has taken, ms.
#include <omp.h>
#include <stdio.h>
#include <time.h>

static void pass(int ms) {
  const struct timespec time = {.tv_nsec = ms * 1000000L};
  nanosleep(&time, NULL);
}

static long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

int main(void) {
  const long began = now();
  long sum = 0;
#pragma omp parallel num_threads(4)
  {
    for (int i = 0; i < 5; ++i) {
      if (omp_get_thread_num() == i % 4) pass(100);
#pragma omp barrier
    }
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100000; ++i) sum += i;
#pragma omp critical
    pass(10);
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < 8; ++i) {
#pragma omp task
      pass(50);
    }
  }
  printf("%ld %ld\n", sum, now() - began);
  return 0;
}
