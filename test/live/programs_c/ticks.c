/* Reads the time stamp counter, the program itself and the constructor of a library (this file with -DLIBRARY) that it loads later. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

/* Ticks are of 2 GHz and begin with the clock. */
static void say(const char *who, uint64_t ticks) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  double clock = t.tv_sec + t.tv_nsec / 1e9;
  double apart = ticks / 2e9 - clock;
  printf("%s: %s\n", who, apart > -1e-3 && apart < 1e-3 ? "the clock's" : "another");
}

#ifdef LIBRARY
__attribute__((constructor)) static void begin(void) {
  unsigned processor;
  say("library's rdtsc", __rdtsc());
  say("library's rdtscp", __rdtscp(&processor));
}
#else
/* The bytes of RDTSC in a number, and in an address. */
static volatile uint64_t number;

int main(int argc, char **argv) {
  unsigned processor;
  sleep(5);
  say("rdtsc", __rdtsc());
  sleep(5);
  say("rdtscp", __rdtscp(&processor));
  number = 0x310f310f310f310f;
  printf("number: %llx\n", (unsigned long long)number);
  for (int i = 0; i < 3; ++i) {
    sleep(5);
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    if (library == NULL) return puts(dlerror()), 1;
    dlclose(library);
  }
  return 0;
}
#endif
