// Waits that end by others' signals and lines: pause(), and stdio on pipes. Says what came, and when.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void note(int signal) { came = signal; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)(t.tv_sec - 1577836800) + (double)t.tv_nsec / 1e9;
}

static void say(const char* what, int value) {
  printf("%s %d at %.2f\n", what, value, now());
  fflush(stdout);
}

int main(void) {
  signal(SIGUSR1, note);
  signal(SIGALRM, note);
  const pid_t killer = fork();
  if (killer == 0) {
    usleep(250000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  pause();
  say("pause", came == SIGUSR1);
  waitpid(killer, NULL, 0);
  const struct itimerval once = {{0, 0}, {0, 250000}};
  setitimer(ITIMER_REAL, &once, NULL);
  pause();
  say("pause", came == SIGALRM);

  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t writer = fork();
  if (writer == 0) {
    close(ends[0]);
    const char* const pieces[] = {"one\ntw", "o\nthree", " four\n12345678"};
    for (int i = 0; i < 3; ++i) {
      usleep(500000);
      if (write(ends[1], pieces[i], strlen(pieces[i])) < 0) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  FILE* const in = fdopen(ends[0], "r");
  char line[64];
  while (fgets(line, sizeof line, in) != NULL && strlen(line) > 0 && line[0] != 't') say("fgets", (int)strlen(line));
  say("fgets", (int)strlen(line));
  char* read = NULL;
  size_t room = 0;
  say("getline", (int)getline(&read, &room, in));
  say("fread", (int)fread(line, 4, 16, in));
  say("getc", getc(in));
  free(read);
  waitpid(writer, NULL, 0);

  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    close(ends[0]);
    const char* const pieces[] = {"12", "34 5", "6x\n"};
    for (int i = 0; i < 3; ++i) {
      usleep(500000);
      if (write(ends[1], pieces[i], strlen(pieces[i])) < 0) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  FILE* const numbers = fdopen(ends[0], "r");
  int number = 0;
  char behind = 0;
  if (fscanf(numbers, "%d", &number) == 1) say("fscanf", number);
  say("getc", getc(numbers));
  if (fscanf(numbers, "%d%c", &number, &behind) == 2 && behind == 'x') say("fscanf", number);
  say("fscanf", fscanf(numbers, "%d", &number));
  return 0;
}
