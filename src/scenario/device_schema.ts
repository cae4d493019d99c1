// Links, switches and hosts as users write them, in scenarios and, where they fit, in daemon files.
import { z } from "zod";
import {
  choice,
  field,
  flag,
  fraction,
  integer,
  length,
  priorities,
  rate,
  section,
  showValue,
  size,
  time,
} from "../base/fields.js";
import { hostQcnSchema, switchQcnSchema } from "../congestion/qcn_points.js";

/** Bytes of packet memory, most: deep-buffered routers have 8 GB for each chip. */
export const kMostMemory = 64e9;

const kName = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
const kNameRule = "a name starts with a letter, followed by up to 31 letters, digits, - or _";

export const nameSchema = z.string().regex(kName, { error: (issue) => `${String(issue.input)}: ${kNameRule}` });
export const interfaceSchema = z.string().regex(/^[^\s/]{1,15}$/, {
  error: (issue) =>
    `${showValue(issue.input)} is not the name of an interface: up to 15 characters without blanks or /`,
});
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
  total: size("Packet memory of the switch, shared by all ports.", { default: "12MB", min: 1_000, max: kMostMemory }),
  headroom: size(
    "t_flight: kept per port and priority for what arrives after a pause was sent. In scenarios `auto`: at each port what its link needs, by rate, delay, MTU and the response time that IEEE 802.3 allows, as `weir plan` has it.",
    { default: "22.4KB", max: kMostMemory, word: "auto" },
  ),
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
    max: kMostMemory,
  }),
  xon_offset: size("An ingress queue is resumed this far below t_PFC. Default: two MTU.", { max: kMostMemory }),
  lossy_alpha: field(
    z.number().positive().max(1024),
    "An egress queue without PFC may hold this many times the free shared buffer. Greater than 0, to 1024.",
    1,
  ),
});

export const ecnSchema = section({
  enabled: flag("Mark packets with CE.", true),
  kmin: size("Queue length above which marking starts (paper: t_ECN).", { default: "5KB", max: kMostMemory }),
  kmax: size("Queue length above which every packet is marked.", { default: "200KB", max: kMostMemory }),
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

/** The same field, without its default: that of the switch holds. */
const own = <T extends z.ZodType>(schema: z.ZodOptional<T>) =>
  schema
    .unwrap()
    .optional()
    .meta({ description: schema.meta()?.description ?? "" });

const { kmin, kmax, pmax } = ecnSchema.shape;
const { headroom, beta, threshold, xon_offset, lossy_alpha } = bufferSchema.shape;
const { cpQSp, cpWeight, cpSampleBase } = switchQcnSchema.shape;

export const portProfileSchema = section({
  ports: field(
    z.array(z.string()),
    "Names of the neighbours (switch.yaml: of the ports) that it is for. A port is of one profile at most.",
  ),
  rate: rate("Or of all ports of this rate that no profile names."),
  ecn: field(section({ kmin: own(kmin), kmax: own(kmax), pmax: own(pmax) }), "Marking of their egress queues."),
  buffer: field(
    section({
      headroom: own(headroom),
      cable: length(
        "Headroom by the length of the cable, rate and MTU of the port, in place of `headroom`; as `weir plan` has it.",
      ),
      beta: own(beta),
      threshold: own(threshold),
      xon_offset: own(xon_offset),
      lossy_alpha: own(lossy_alpha),
    }),
    "Thresholds and headroom of their priority groups, and `lossy_alpha` of their queues.",
  ),
  qcn: field(
    section({ cpQSp: own(cpQSp), cpWeight: own(cpWeight), cpSampleBase: own(cpSampleBase) }),
    "Their congestion points.",
  ),
});

export const pfcSchema = section({
  enabled: flag("Send and obey priority flow control.", true),
  priorities: priorities("Lossless priorities.", [3]),
  link_pause: flag(
    "IEEE 802.3x where `enabled` is false: peers are stopped by PAUSE frames, at all priorities, while one of them is above its threshold; so all are lossless, with headroom for 8. PAUSE frames that arrive are obeyed, with this or without.",
    false,
  ),
});

export const schedulerSchema = section({
  strict: priorities("Priorities served first, the highest number before the others.", [6]),
  weights: field(
    z.record(priorityKey, z.int().min(1).max(100)),
    "DWRR weights of the other priorities; an unlisted one has weight 1. 1 to 100.",
    { "0": 50, "3": 50 },
  ),
});

export const switchSchema = section({
  buffer: field(bufferSchema, "Shared packet memory."),
  ecn: field(ecnSchema, "RED-like marking of the egress queues (congestion point)."),
  qcn: field(switchQcnSchema, "Quantized congestion notification (IEEE 802.1Qau), see qcn.md."),
  pfc: field(pfcSchema, "Priority flow control (IEEE 802.1Qbb)."),
  port_profiles: field(
    z.record(nameSchema, portProfileSchema),
    "Profiles of ports: a name -> what its ports have in place of what the switch has.",
    {},
  ),
  pfc_watchdog: field(
    section({
      enabled: flag("Look for egress queues that a peer pauses without end.", false),
      detection_time: time(
        "How long a queue has frames, is paused and sends nothing, until that is a storm; noticed up to a quarter later.",
        { default: "200ms", min: 1_000, max: 60e9 },
      ),
      restoration_time: time("How long nobody asks for a pause, until the storm is over.", {
        default: "200ms",
        min: 1_000,
        max: 60e9,
      }),
      action: choice(
        "What becomes of the frames of a queue in a storm. `drop`: those that wait and those that come are lost; `forward`: they are sent, as if there were no pauses; `alert`: they wait, and the storm is counted.",
        ["drop", "forward", "alert"],
        "drop",
      ),
    }),
    "PFC watchdog of the egress queues of `pfc.priorities`, as in SONiC.",
  ),
  trimming: field(
    section({
      enabled: flag("Trim frames that find no room, instead of dropping them.", false),
      priorities: priorities(
        "Lossy priorities whose frames are trimmed (SONiC: `packet_discard_action: trim` of a queue's buffer profile).",
        [0],
      ),
      size: size("What is left of a frame, from the Ethernet header on, without FCS: all headers of RoCEv2 fit in.", {
        default: "128B",
        min: 128,
        max: 4096,
      }),
      dscp: integer("DSCP of what is left; by it receivers know it, so data has another.", 0, 63, 40),
      queue: integer(
        "Priority by which it goes on: lossy, and none of `priorities`; best one that is served strictly. Default: what `dscp_map` makes of `dscp`.",
        0,
        7,
      ),
      buffer: size(
        "Most that this queue holds at a port, in place of `lossy_alpha` times the free buffer. Default: as any lossy queue.",
        { min: 1_000, max: kMostMemory },
      ),
    }),
    'Packet trimming of lossy classes, as in SONiC (HLD "SONiC Packet Trimming"): unicast IP packets that a full queue or buffer would lose go on as headers.',
  ),
  scheduler: field(schedulerSchema, "Order in which priorities leave a port."),
  forwarding: choice(
    "By MAC addresses, along paths computed from the topology (`static`) or learned (`learning`, loop-free topologies only); or by IP addresses, with a link of its own for each host (`routed`, all switches or none).",
    ["static", "learning", "routed"],
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
      nic_interval: time(
        "Least time between two CNPs of the NIC, whichever flows they are of (paper section 3.3: 1 to 5 us of a ConnectX-3 Pro). CNPs that are owed wait in turn; one that a flow is owed while it waits for another is withheld (`np_cnp_withheld`). 0: no limit.",
        { default: "0s", max: 1e9 },
      ),
    }),
    "Congestion notification packets (CNP) of DCQCN.",
  ),
  ack: field(
    section({
      priority: integer(
        "Priority (PCP) of acknowledgements and NAKs, where it is another than that of the data that they are for. Default: as the data.",
        0,
        7,
      ),
      dscp: integer("DSCP of acknowledgements and NAKs that have a `priority` of their own.", 0, 63, 48),
    }),
    "Acknowledgements and NAKs of reliable connections.",
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
  trimmed_dscp: integer(
    "RoCEv2 packets of this DSCP are what trimming has left: counted (`rx_trimmed_roce_packets`), and no data. Default: in scenarios that of its switch, where it trims; else none.",
    0,
    63,
  ),
  pause_storm: field(
    section({
      priorities: priorities("Priorities to pause. None: no storm.", []),
      quanta: integer(
        "How long each frame pauses, in quanta of 512 bit times of the link; the next one comes when half of that has passed.",
        1,
        65_535,
        65_535,
      ),
      start: time("When it begins, from the start.", { default: "0s" }),
      stop: time("When it ends. Default: never."),
    }),
    "A fault to try a fabric with: the NIC pauses its switch without end, whatever its buffer holds.",
  ),
});

export type LinkInput = z.output<typeof linkSchema>;
export type SwitchInput = z.output<typeof switchSchema>;
export type HostInput = z.output<typeof hostSchema>;
