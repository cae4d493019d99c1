// Links, switches and hosts as users write them, in scenarios and, where they fit, in daemon files.
import { z } from "zod";
import {
  choice,
  field,
  flag,
  fraction,
  integer,
  length,
  rate,
  section,
  showValue,
  size,
  time,
} from "../base/fields.js";
import { hostQcnSchema, switchQcnSchema } from "../congestion/qcn_points.js";
import { ackSchema } from "./features/ack.js";
import { bufferSchema } from "./features/buffer.js";
import { kClassificationFields } from "./features/classification.js";
import { cnpSchema } from "./features/cnp.js";
import { ecnSchema } from "./features/ecn.js";
import { pauseStormSchema } from "./features/pause_storm.js";
import { pfcSchema } from "./features/pfc.js";
import { receiveBufferSchema } from "./features/receive_buffer.js";
import { schedulerSchema } from "./features/scheduler.js";
import { trimmingSchema } from "./features/trimming.js";
import { watchdogSchema } from "./features/watchdog.js";

const kName = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
const kNameRule = "a name starts with a letter, followed by up to 31 letters, digits, - or _";

export const nameSchema = z.string().regex(kName, { error: (issue) => `${String(issue.input)}: ${kNameRule}` });
export const interfaceSchema = z.string().regex(/^[^\s/]{1,15}$/, {
  error: (issue) =>
    `${showValue(issue.input)} is not the name of an interface: up to 15 characters without blanks or /`,
});

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

/** Name of a link by both of its ends. */
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

/** The same field without its default: that of the switch holds. */
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
  pfc_watchdog: field(watchdogSchema, "PFC watchdog of the egress queues of `pfc.priorities`, as in SONiC."),
  trimming: field(
    trimmingSchema,
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
  ...kClassificationFields,
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
  cnp: field(cnpSchema, "Congestion notification packets (CNP) of DCQCN."),
  ack: field(ackSchema, "Acknowledgements and NAKs of reliable connections."),
  qcn: field(hostQcnSchema, "Reaction points of QCN (`congestion.algorithm: qcn`)."),
  receive_buffer: field(receiveBufferSchema, "Receive side of a slow host."),
  trimmed_dscp: integer(
    "RoCEv2 packets of this DSCP are what trimming has left: counted (`rx_trimmed_roce_packets`), and no data. Default: in scenarios that of its switch, where it trims; else none.",
    0,
    63,
  ),
  pause_storm: field(
    pauseStormSchema,
    "A fault to try a fabric with: the NIC pauses its switch without end, whatever its buffer holds.",
  ),
});

export type LinkInput = z.output<typeof linkSchema>;
export type SwitchInput = z.output<typeof switchSchema>;
export type HostInput = z.output<typeof hostSchema>;
