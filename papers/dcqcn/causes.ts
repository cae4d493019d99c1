/** Causes for which statements of the DCQCN paper fall short. */
import type { Cause } from "../engine/experiment.js";

export const FIXED_POINT: Cause = {
  id: "fixed-point-above-pmax",
  by: "algorithm",
  what: "From 14 flows on equilibrium needs a larger part of packets marked than Pmax = 1% (16 flows 1.6%, 32 flows 3.2%), and marking jumps from Pmax to 100% at Kmax: the queue has no length at which it rests, swings about Kmax and runs empty.",
  proof:
    "the paper's equation 10, solved for p; HPCC-ns3 and ns3-rdma, whose p95 with 20 flows are 231.6 to 324.9 KB; of what dcqcn-queue-20to1 varies, only a larger Pmax leads away from it",
};

export const CHANCE_OF_MARKS: Cause = {
  id: "chance-of-marks",
  by: "algorithm",
  what: "As packets marks come by chance, rates scatter, and the queue with them, which the paper's equations leave out.",
  proof: "section 3.1 marks each packet at random; the seeds' spread stands beside each figure",
};

export const SLOW_BY_EQUATIONS: Cause = {
  id: "small-pmax-is-slow",
  by: "algorithm",
  what: "What swings less converges more slowly: with the strawman's counters and Pmax 1% flows are still apart after 100 ms.",
  proof: "the paper's own equations leave 12.8 Gb/s at the end of 200 ms with Pmax 1%, and 1.2 with 5%",
};

export const G_MOVES_NO_MEAN: Cause = {
  id: "g-is-not-in-the-fixed-point",
  by: "algorithm",
  what: "g decides how far the queue swings, not about which length.",
  proof: "g is not among what the fixed point, equation 10, depends on",
};

export const ALPHA_AT_START: Cause = {
  id: "alpha-at-the-start",
  by: "us",
  what: "In the equations both flows begin with an alpha of 1, and with a small g that lasts.",
  proof: "with which alpha the paper's first flow began is not printed; with 0 the statement holds by the equations",
};

export const REST_OF_EQUATIONS: Cause = {
  id: "equations-come-to-rest",
  by: "algorithm",
  what: "By the equations two flows come to rest, where nothing oscillates whatever R_AI and F are.",
  proof: "the trajectory of the paper's equations: less than 0.1% of a difference is left after 200 ms",
};

export const PLANNED_VALUES: Cause = {
  id: "values-of-the-planner",
  by: "us",
  what: "The paper prints no values for a high round trip; those of weir plan ecn slow the timers and leave R_AI as it is, so that flows become equal later.",
  proof: "a planner whose R_AI grows with the timers has not been tried",
};

export const USERS_TRAFFIC: Cause = {
  id: "users-traffic",
  by: "us",
  what: "The trace behind the users' traffic was not published: sizes, think times and how many send at a time are ours, and decide what is left of links for them.",
  proof:
    "a closed loop of messages of 41 KB in the mean keeps 20 pairs busy all the time; beside one pair ten senders get the paper's 3.43 Gb/s each",
};

export const PAUSES_BY_TIME: Cause = {
  id: "frames-are-not-time",
  by: "us",
  what: "PFC frames at the spines become fewer where less traffic crosses them, while the time that links are paused grows.",
  proof: "the users' traffic is ours, and it is what crosses the spines",
};

export const ASKS_AGAIN_AT_ONCE: Cause = {
  id: "recovery-of-that-age",
  by: "us",
  what: "Weir's requester of a READ asks again for what is missing as soon as it sees the gap; how the paper's adapters recovered a READ is not said, but for that sizes matter.",
  proof:
    "by arithmetic, for a READ that is sent to its end and then again from the lost packet on, the statement holds",
};

export const LOST_REQUESTS: Cause = {
  id: "time-outs",
  by: "us",
  what: "What is missing at 0.1% are time-outs of 67 ms, the standard's default code; the paper does not say its time-out.",
  proof: "with a time-out of 1 ms 97% remain",
};

export const WHOLE_AGAIN: Cause = {
  id: "rest-of-a-read-in-vain",
  by: "algorithm",
  what: "A READ of 4 MB that loses one packet is sent to its end, half of it in vain in the mean, and then again from there on.",
  proof:
    "arithmetic of what the paper says of READs: n packets take n + p / (1 - p) n (n + 1) / 2; smaller messages lose less",
};

export const SOFT_NIC: Cause = {
  id: "software-nic",
  by: "us",
  what: "In the paper an adapter moves the data; Weir's NIC is a thread that handles each packet.",
  proof: "what the application itself takes is listed without that thread",
};

export const NO_HOST_MODEL: Cause = {
  id: "no-host-in-virtual-time",
  by: "us",
  what: "Virtual time has links and queues, and no PCIe, adapters and drivers, which are most of a latency of microseconds.",
  proof: "the time on links alone is 0.76 us of the paper's 1.7",
};

export const STATIC_THRESHOLD: Cause = {
  id: "static-t-pfc",
  by: "us",
  what: "Next to no packet is marked with the wrong thresholds, so that what they change is what a low t_PFC does by itself.",
  proof: "PFC alone with the same t_PFC gives the same; the paper's Kmax and Pmax in that experiment are not printed",
};

export const SHARED_INPUTS: Cause = {
  id: "two-to-one",
  by: "algorithm",
  what: "Where ECMP splits the three two to one, the single flow has an input of T4 for itself, as H4 has, and all inputs get a third of the link.",
  proof: "PFC shares a port by inputs: of one uplink with one flow, one with two, and H4's link, each has 13.3 Gb/s",
};
