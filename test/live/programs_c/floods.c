/* Writes more than there is room for, in each way, to a child that reads a quarter of a second later; each says when. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 3000000, kDatagram = 1000, kDatagrams = 2000 };

static uint8_t bytes[kBytes];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static double began;

typedef ssize_t (*Way)(int);
static ssize_t by_write(int end) { return write(end, bytes, kBytes); }
static ssize_t by_writev(int end) {
  struct iovec pieces[] = {{bytes, 1}, {bytes + 1, kBytes / 2}, {NULL, 0}, {bytes + 1 + kBytes / 2, kBytes - 1 - kBytes / 2}};
  return writev(end, pieces, 4);
}
static ssize_t by_send(int end) { return send(end, bytes, kBytes, 0); }
static ssize_t by_sendmsg(int end) {
  struct iovec pieces[] = {{bytes, kBytes / 3}, {bytes + kBytes / 3, kBytes - kBytes / 3}};
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
  return sendmsg(end, &message, 0);
}
static ssize_t by_datagrams(int end) {
  for (int i = 0; i < kDatagrams; ++i) {
    if (sendto(end, bytes, kDatagram, 0, NULL, 0) != kDatagram) return -1;
  }
  return kDatagrams * kDatagram;
}

static FILE* file;
static ssize_t by_sendfile(int end) {
  off_t from = 0;
  return sendfile(end, fileno(file), &from, kBytes);
}
/* What another child writes to a pipe a tenth of a second later. */
static ssize_t by_splice(int end) {
  int inner[2];
  pipe(inner);
  if (fork() == 0) {
    usleep(100000);
    _exit(write(inner[1], bytes, kBytes) != kBytes);
  }
  close(inner[1]);
  ssize_t all = 0;
  for (ssize_t part; (part = splice(inner[0], NULL, end, NULL, kBytes, 0)) > 0;) all += part;
  close(inner[0]);
  return all;
}

static void flood(const char* name, Way way, int out, int in) {
  began = now();
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(out);
    usleep(250000);
    static uint8_t got[10007];
    size_t count = 0, wrong = 0;
    const size_t all = way == by_datagrams ? kDatagrams * kDatagram : kBytes;
    for (ssize_t part; count < all && (part = read(in, got, sizeof got)) > 0; count += part) {
      wrong += memcmp(got, bytes + (way == by_datagrams ? 0 : count), part) != 0;
    }
    printf("%s: %zu read, %zu wrong at %.2f\n", name, count, wrong, now() - began);
    exit(0);
  }
  close(in);
  const ssize_t written = way(out);
  const double at = now() - began;
  close(out);
  waitpid(child, NULL, 0);
  printf("%s: %zd written at %.2f\n", name, written, at);
}

int main(void) {
  for (int i = 0; i < kBytes; ++i) bytes[i] = i % 251;
  int ends[2];
  pipe(ends);
  flood("write to a pipe", by_write, ends[1], ends[0]);
  pipe(ends);
  flood("writev to a pipe", by_writev, ends[1], ends[0]);
  file = tmpfile();
  fwrite(bytes, 1, kBytes, file);
  fflush(file);
  pipe(ends);
  flood("sendfile to a pipe", by_sendfile, ends[1], ends[0]);
  pipe(ends);
  flood("splice to a pipe", by_splice, ends[1], ends[0]);
  const Way ways[] = {by_write, by_writev, by_send, by_sendmsg, by_sendfile, by_splice};
  const char* const names[] = {"write", "writev", "send", "sendmsg", "sendfile", "splice"};
  for (int i = 0; i < 6; ++i) {
    char name[32];
    sprintf(name, "%s to a socket", names[i]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    flood(name, ways[i], ends[0], ends[1]);
    sprintf(name, "%s to TCP", names[i]);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    const int room = 65536;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    bind(listener, (struct sockaddr*)&address, length);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr*)&address, &length);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    connect(ends[0], (struct sockaddr*)&address, length);
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
    flood(name, ways[i], ends[0], ends[1]);
  }
  socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
  flood("datagrams", by_datagrams, ends[0], ends[1]);
  return 0;
}
