/* Additive increase, multiplicative decrease, by CNPs alone: an example of a congestion control of one's own.
 *
 *   cc -O2 -shared -fPIC -I native/congestion -o examples/congestion/aimd.so examples/congestion/aimd.c
 *   weir sim run examples/congestion/aimd.yaml
 *   weir lab run examples/congestion/aimd.yaml
 */
#include "weir_cc.h"

enum { DECREASE, STEP, PERIOD, LEAST };

static const struct weir_cc_parameter parameters[] = {
    {"decrease", 0.5, 0.01, 0.99},      /* a CNP leaves this part of the rate */
    {"step", 40e6, 1e3, 1e12},          /* bit/s that are added each period */
    {"period", 55e3, 1e3, 1e9},         /* ns */
    {"least_rate", 10e6, 1e3, 1e12},    /* bit/s */
};

struct flow {
  double line_rate;
  double rate; /* 0: it has met no congestion since it was at line rate */
};

static void start(void* memory, const double* p, const struct weir_cc_flow* terms, struct weir_cc_answer* answer) {
  struct flow* flow = memory;
  (void)p;
  flow->line_rate = terms->line_rate;
  flow->rate = terms->initial_rate < terms->line_rate ? terms->initial_rate : 0;
  answer->rate = flow->rate;
}

static void event(void* memory, const double* p, const struct weir_cc_event* e, struct weir_cc_answer* answer) {
  struct flow* flow = memory;
  if (e->type == WEIR_CC_CNP) {
    flow->rate = (flow->rate > 0 ? flow->rate : flow->line_rate) * p[DECREASE];
    if (flow->rate < p[LEAST]) flow->rate = p[LEAST];
    answer->timer = e->now + (uint64_t)p[PERIOD];
  } else if (e->type == WEIR_CC_TIMER) {
    flow->rate += p[STEP];
    if (flow->rate >= flow->line_rate) flow->rate = 0;
    answer->timer = flow->rate > 0 ? e->now + (uint64_t)p[PERIOD] : 0;
  } else {
    return;
  }
  answer->rate = flow->rate;
}

static const struct weir_cc_description description = {
    WEIR_CC_VERSION, sizeof(struct flow), "aimd", parameters, sizeof parameters / sizeof *parameters, start, event,
};

const struct weir_cc_description* weir_cc_algorithm(void) { return &description; }
