// Links, switches and hosts as users write them, in scenarios and, where they fit, in daemon files.
import { z } from "zod";
import { choice, field, flag, fraction, integer, priorities, rate, section, size, time } from "../base/fields.js";
import { hostQcnSchema, switchQcnSchema } from "../congestion/qcn_points.js";

const kName = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
const kNameRule = "a name starts with a letter, followed by up to 31 letters, digits, - or _";

export const nameSchema = z.string().regex(kName, { error: (issue) => `${String(issue.input)}: ${kNameRule}` });
const dscpKey = z.string().regex(/^([0-9]|[1-5][0-9]|6[0-3])$/, { error: "a DSCP is a number from 0 to 63" });
const priorityKey = z.string().regex(/^[0-7]$/, { error: "a priority is a number from 0 to 7" });

export const impairmentSchema = section({
  loss: fraction("Probability that a frame is lost.", { default: 0 }),
  corrupt: fraction("Probability that one bit of a frame is flipped.", { default: 0 }),
  duplicate: fraction("Probability that a frame arrives twice.", { default: 0 }),
  reorder: fraction("Probability that a frame is held back by `reorder_delay`.", { default: 0 }),
  jitter: time("Extra delay of each frame, uniform from 0 to this; frames stay in order.", {
    default: "0ns",
    max: 1e9,
  }),
  reorder_delay: time("How long a reordered frame is held back.", { default: "10us", min: 1, max: 1e9 }),
});

const linkFields = {
  rate: rate("Capacity of the link, in each direction.", { default: "40Gbps", zero: "unlimited" }),
  delay: time("One-way propagation delay.", { default: "1us", max: 10e9 }),
  mtu: integer("Largest IP packet, in bytes.", 576, 16_000, 1500),
  impairment: field(impairmentSchema, "Faults on purpose, in both directions."),
};
export const linkDefaultsSchema = section(linkFields);

/** Both ends of a link. */
export const linkText = z
  .string()
  .regex(/^\s*\S+\s+--\s+\S+\s*$/, { error: (issue) => `${String(issue.input)}: write a link as "h1 -- sw"` })
  .transform((text) => {
    const [from = "", to = ""] = text.trim().split(/\s+--\s+/);
    return { from, to };
  });
export const linkSchema = z.union([
  linkText,
  section({
    from: z.string().meta({ description: "Host or switch at one end." }),
    to: z.string().meta({ description: "Host or switch at the other end." }),
    ...linkFields,
  }),
]);

export const bufferSchema = section({
  total: size("Packet memory of the switch, shared by all ports.", { default: "12MB", min: 1_000, max: 1e9 }),
  headroom: size("t_flight: kept per port and priority for what arrives after a pause was sent.", {
    default: "22.4KB",
    max: 1e9,
  }),
  priorities: integer(
    "Number of priorities that headroom is kept for, on each port. With fewer than 8, lossy ones have no memory of their own, and lossless traffic can keep CNPs out.",
    1,
    8,
    8,
  ),
  beta: field(
    z.number().positive().max(1024),
    "Dynamic threshold: t_PFC = beta (B - P n t_flight - s) / P, with s the bytes held. Greater than 0, to 1024.",
    8,
  ),
  mode: choice("How t_PFC is found: from the free buffer, or fixed.", ["dynamic", "static"], "dynamic"),
  threshold: size("t_PFC of static mode, per ingress port and priority. Default: (B - P n t_flight) / (P n).", {
    max: 1e9,
  }),
  xon_offset: size("An ingress queue is resumed this far below t_PFC. Default: two MTU.", { max: 1e9 }),
  lossy_alpha: field(
    z.number().positive().max(1024),
    "An egress queue without PFC may hold this many times the free shared buffer. Greater than 0, to 1024.",
    1,
  ),
});

export const ecnSchema = section({
  enabled: flag("Mark packets with CE.", true),
  kmin: size("Queue length above which marking starts (paper: t_ECN).", { default: "5KB", max: 1e9 }),
  kmax: size("Queue length above which every packet is marked.", { default: "200KB", max: 1e9 }),
  pmax: fraction("Marking probability at kmax.", { default: "1%" }),
  mark: choice("Decide when a packet joins the queue, or when it leaves.", ["enqueue", "dequeue"], "enqueue"),
  queue: choice(
    "Queue length that is looked at: the present one, or a moving average.",
    ["instantaneous", "averaged"],
    "instantaneous",
  ),
  weight: fraction("Weight of a new sample in the moving average.", { default: 0.002, min: 1e-6 }),
  priorities: priorities("Priorities whose packets are marked.", [3]),
});

export const pfcSchema = section({
  enabled: flag("Send and obey priority flow control.", true),
  priorities: priorities("Lossless priorities.", [3]),
});

export const schedulerSchema = section({
  strict: priorities("Priorities served first, the highest number before the others.", [6]),
  weights: field(
    z.record(priorityKey, z.int().min(1).max(1000)),
    "DWRR weights of the other priorities; an unlisted one has weight 1.",
    { "0": 50, "3": 50 },
  ),
});

export const switchSchema = section({
  buffer: field(bufferSchema, "Shared packet memory."),
  ecn: field(ecnSchema, "RED-like marking of the egress queues (congestion point)."),
  qcn: field(switchQcnSchema, "Quantized congestion notification (IEEE 802.1Qau), see qcn.md."),
  pfc: field(pfcSchema, "Priority flow control (IEEE 802.1Qbb)."),
  scheduler: field(schedulerSchema, "Order in which priorities leave a port."),
  forwarding: choice(
    "Routes computed from the topology, or learned addresses (loop-free topologies only).",
    ["static", "learning"],
    "static",
  ),
  load_balancing: choice(
    "Which of several shortest paths a frame takes. `ecmp`: all frames of a flow the same, by a hash; `spray`: each frame another, at random; `flowlet`: a flow another, at random, after a pause of `flowlet_gap`; `adaptive`: each frame that with the shortest queue. All but `ecmp` can reorder packets.",
    ["ecmp", "spray", "flowlet", "adaptive"],
    "ecmp",
  ),
  flowlet_gap: time("Pause of a flow after which it may take another path.", { default: "100us", max: 1e9 }),
  ageing: time("How long a learned address is kept.", { default: "300s", min: 1e9 }),
  trust: choice("What gives a frame its priority.", ["dscp", "pcp", "port-default"], "dscp"),
  dscp_map: field(
    z.union([z.enum(["nvidia", "sonic-azure"]), z.record(dscpKey, z.int().min(0).max(7))]),
    "Priority of each DSCP: `nvidia` (DSCP / 8), `sonic-azure`, or a mapping such as {26: 3, 48: 6}, others 0.",
    "nvidia",
  ),
  default_priority: integer("Priority of frames that carry no mark which `trust` believes.", 0, 7, 0),
});

export const hostSchema = section({
  path_mtu: field(
    z.literal([256, 512, 1024, 2048, 4096]),
    "Largest RoCEv2 payload of a packet, in bytes; the link's MTU must hold 64 more.",
    1024,
  ),
  line_rate_start: flag("A QP starts at line rate if no other QP of the host is active, else at `initial_rate`.", true),
  initial_rate: rate("Start rate of a QP when others are active. Default: line rate."),
  burst: size("Most that a late NIC makes up for at once.", { default: "32KB", max: 1e9 }),
  cnp: field(
    section({
      dscp: integer("DSCP of congestion notification packets.", 0, 63, 48),
      priority: integer("Priority (PCP) of congestion notification packets.", 0, 7, 6),
    }),
    "Congestion notification packets (CNP) of DCQCN.",
  ),
  qcn: field(hostQcnSchema, "Reaction points of QCN (`congestion.algorithm: qcn`)."),
  receive_buffer: field(
    section({
      size: size("Bytes the NIC holds for a slow host.", { default: "1MB", min: 10_000, max: 1e9 }),
      rate: rate("Rate at which the host takes data from the NIC.", { default: "unlimited", zero: "unlimited" }),
      xoff: size("Fill at which the NIC pauses its peer. Default: half the size.", { max: 1e9 }),
      xon: size("Fill at which the NIC lets its peer go on. Default: half of xoff.", { max: 1e9 }),
    }),
    "Receive side of a slow host.",
  ),
});

export type LinkInput = z.output<typeof linkSchema>;
export type SwitchInput = z.output<typeof switchSchema>;
export type HostInput = z.output<typeof hostSchema>;
