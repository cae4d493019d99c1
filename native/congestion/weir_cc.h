/* A congestion control of your own for Weir: all that a shared library needs. C99 or C++, no other header.
 *
 *   cc -O2 -shared -fPIC -I native/congestion -o aimd.so examples/congestion/aimd.c
 *
 *   congestion: { algorithm: library, library: { file: aimd.so, parameters: { decrease: 0.7 } } }
 *
 * The library has one function, weir_cc_algorithm(). The algorithm that it describes is told of events of a flow (as DOCA PCC
 * tells its algorithms of CNPs, acknowledgements, losses, round-trip times and timers) and answers with a rate, a window, or
 * both. It runs on real frames and in virtual time alike: times are ns and rates bit/s of the scenario, whatever the time scale.
 *
 * Flows are told apart by their memory, and nothing else is theirs: with several threads flows of different hosts have events at
 * the same time, so whatever a library keeps elsewhere must be constant. Then results are the same for any number of threads.
 *
 * It is called for each packet, on the thread that moves packets: it must not block, allocate, or call the system. A crash ends
 * the process, which says whose it was, and so does a call that has not come back after some seconds. An answer that is none
 * (NaN, infinite, below 0, or a time that is over) changes nothing; the counter cc_refused_answers has how many there were.
 */
#ifndef WEIR_CC_H
#define WEIR_CC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version that a library was built for: one of version 1 still works, and is told WEIR_CC_LOSS in the place of WEIR_CC_NACK. */
#define WEIR_CC_VERSION 2u

enum weir_cc_event_type {
  WEIR_CC_SENT = 0,  /* a data packet left: bytes */
  WEIR_CC_ACK = 1,   /* packets were acknowledged for the first time: packets, marked, in_flight, rtt */
  WEIR_CC_LOSS = 2,  /* packets were lost: in_flight, timeout */
  WEIR_CC_CNP = 3,   /* the receiver told of congestion */
  WEIR_CC_TIMER = 4, /* the time that the last answer asked for is here */
  WEIR_CC_NACK = 5   /* switches had no room for packets and trimmed them, and the receiver told of it: packets, in_flight.
                        With transport.trim_naks. From version 2 on. */
};

struct weir_cc_event {
  uint32_t type;      /* enum weir_cc_event_type; what is not listed there is 0 */
  uint32_t bytes;     /* bytes that the packet takes of the link: frame, FCS, preamble and gap */
  uint64_t now;       /* ns; never goes back */
  uint64_t rtt;       /* ns from the newest of the packets to its acknowledgement; 0: not known, as one was sent again */
  uint32_t packets;   /* 1 or more */
  uint32_t marked;    /* 1: they met congestion (ECN) */
  uint32_t in_flight; /* packets sent and not acknowledged; NACK: without those that are with the receiver or lost */
  uint32_t timeout;   /* 1: no answer came in time; 0: answers came out of order */
};

/* A flow's terms. */
struct weir_cc_flow {
  uint64_t now;        /* ns, as in events */
  double line_rate;    /* bit/s of the host's link */
  double initial_rate; /* bit/s that it should begin with, by the host's line_rate_start and initial_rate */
  uint32_t window;     /* packets that its transport lets be in flight at most */
  uint32_t reserved;
};

/* Answer that holds from now on. A function finds the one that holds now in it, and changes what it wants to change. */
struct weir_cc_answer {
  double rate;    /* bit/s; 0, as it is at the start, and anything from the line rate on: the line rate */
  double window;  /* packets in flight; 0, as it is at the start: as many as the transport lets; of reliable connections */
  uint64_t timer; /* ns, as in events: when to be told of the time; 0: not. It is 0 again when the time has come. At least
                     WEIR_CC_LEAST_TIMER ahead: a nearer time is put off until then. */
};

#define WEIR_CC_LEAST_TIMER 100u

struct weir_cc_parameter {
  const char* name;
  double value; /* default, where the scenario says nothing */
  double least;
  double most;
};

struct weir_cc_description {
  uint32_t version;    /* WEIR_CC_VERSION */
  uint32_t flow_bytes; /* memory of a flow: 0 to 65536; aligned for any type, all 0 before start() */
  const char* name;
  const struct weir_cc_parameter* parameters;
  uint32_t parameter_count; /* at most 64 */
  /* A flow begins to send, maybe not for the first time. `parameters`: a value for each, in their order. */
  void (*start)(void* flow, const double* parameters, const struct weir_cc_flow* terms, struct weir_cc_answer* answer);
  void (*event)(void* flow, const double* parameters, const struct weir_cc_event* event, struct weir_cc_answer* answer);
};

/* The library defines this function. The description that it points to must stay. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct weir_cc_description*
weir_cc_algorithm(void);

#ifdef __cplusplus
}
#endif

#endif
