// The result of a run, the same for wire, sim and model: all that any of them writes is here, and schema/result.schema.json and the
// reports are made of it. A field that not every run has is optional. Rates and times are those the scenario means: a wire run's times are
// divided by its scale and its rates multiplied by it. Only `made`, `fidelity` and `environment` are about wall time and this host.
import { z } from "zod";
import { kAlgorithmNames } from "../congestion/algorithms.js";
import { fastForwardFields } from "./fast_forward_result.js";
import { faultResultSchema } from "./fault_result.js";
import { fidelitySchema } from "./fidelity_result.js";
import { graphResultSchema } from "./graph_result.js";
import { madeSchema } from "./made_schema.js";
import { mergedSchema, partResultSchema } from "./part_result.js";
import { programResultSchema, tcpResultSchema } from "./program_result.js";

const count = z.int().min(0);
const amount = z.number().min(0);
const finite = z.number();
const byPriority = <T extends z.ZodType>(of: T) => z.record(z.string().regex(/^[0-7]$/), of);
const perPriority = byPriority(count);

/** A loose object: a reader must accept fields that a later version adds. */
const open = z.looseObject;

export const queueSchema = open({
  mean: amount.describe("Time-weighted mean length, bytes."),
  p50: amount.describe("Median length, bytes."),
  p95: amount.describe("95th percentile of the length, bytes."),
  p99: amount.describe("99th percentile of the length, bytes."),
  max: amount.describe("Highest length, bytes."),
}).describe("Length of one egress queue after the warm-up.");

export const flowResultSchema = open({
  id: z.string().describe("`traffic` id, with the sender's name where the entry has several (`incast/h1`)."),
  from: z.string().describe("Sending host."),
  to: z.string().describe("Receiving host."),
  priority: z.int().min(0).max(7).describe("Priority of the data."),
  goodput_bps: amount.describe(
    "RDMA payload that the receiver took in sequence, from the end of the warm-up (or the flow's start, if later) to the end of traffic (or the flow's stop, if earlier), bit/s. A flow with an end (`bytes`, or messages of given sizes), and a connection of TCP that sent all its `bytes`: over its own lifetime, warm-up or not.",
  ),
  wire_bps: amount.describe(
    "The same packets with everything that they take of a link: all headers, ICRC, FCS, preamble and inter-packet gap, bit/s.",
  ),
  packets: count.describe("Data packets sent, retransmissions included; of TCP segments."),
  received: count.optional().describe("Data packets that the receiver took in sequence."),
  under_way: count
    .optional()
    .describe(
      "Of `sim`: data packets in queues and on links when the run ended. On the wire the network is empty then.",
    ),
  lost: count.describe(
    "Data packets that did not arrive. Of streams (`transport.type: stream`) a lost packet stays lost: `packets` = `received` + `under_way` + `lost`, and without impairments the sum over all flows is what the switches (and the host) have dropped of them, or trimmed. Of `rc` with `recovery: selective-repeat`: likewise, each transmission by itself. With `go-back-n`: gaps in the packet sequence numbers (PSN) at the receiver, of packets that are sent again, or come late (`load_balancing: spray`); in a part of a lab always so. Of TCP: segments sent again.",
  ),
  trimmed: count.optional().describe("Of packet trimming: headers that came to the receiver without their payload."),
  ecn_marked: count.optional().describe("Data packets that the receiver saw with ECN = CE."),
  cnp_sent: count.optional().describe("CNPs that the receiver's notification point sent for this flow."),
  cnp_handled: count.describe("CNPs that reached the sender's reaction point."),
  cnm_handled: count
    .optional()
    .describe(
      "Of QCN: CNMs that cut the rate of the flow that this queue pair belongs to. Where several share it, each CNM counts for one of them.",
    ),
  cnm_lowest: count.optional().describe("Of QCN: those of them whose feedback is 1, the lowest there is."),
  tcp: tcpResultSchema.optional(),
  end: z
    .enum(["sender", "receiver"])
    .optional()
    .describe(
      "Of one part of a lab: the end of the flow that is in it, where the other one is not. What the other one counts is 0 until the parts are merged, and so is `lost` where it takes both.",
    ),
}).describe("One queue pair's traffic, or one connection of TCP.");

export const congestionPointSchema = open({
  frames: count.describe("Data frames that joined the queue, as cnCpTransmittedFrames."),
  sampled: count.describe("Frames among them that were sampled, whether their sources were told or not."),
  cnms: count.describe("CNMs sent to their sources, as cnCpTransmittedCnms."),
  discarded: count.describe("Data frames dropped for want of room, as cnCpDiscardedFrames."),
}).describe("One egress queue's congestion point.");

export const switchResultSchema = open({
  drops: z.record(z.string(), count).describe("Frames dropped, by reason; reasons without any are left out."),
  ecn_marked: count.describe("Packets that the RED marker set to CE."),
  pfc_sent: perPriority.describe(
    "Priority -> PFC frames sent that speak of it: XOFF, refresh, and XON. As ethtool's `tx_prio<p>_pause`.",
  ),
  pfc_received: perPriority
    .optional()
    .describe("Priority -> PFC frames received that speak of it. As ethtool's `rx_prio<p>_pause`."),
  pauses: perPriority
    .optional()
    .describe("Priority -> times that a peer was stopped (XON to XOFF). Refreshes and XON do not count."),
  pfc_storms: perPriority
    .optional()
    .describe("Of the PFC watchdog: priority -> times that it found a peer to pause without end."),
  trimmed: perPriority
    .optional()
    .describe("Of packet trimming: priority -> frames that an egress queue had no room for, and that were trimmed."),
  trimmed_dropped: perPriority
    .optional()
    .describe("Priority -> frames among them that were dropped after all: the queue for trimmed ones had no room."),
  cnm_sent: count.optional().describe("Of QCN: CNMs that all its congestion points sent."),
  congestion_points: z
    .record(z.string(), byPriority(congestionPointSchema))
    .optional()
    .describe(
      "Of QCN: peer's name -> priority -> `frames` that joined that egress queue, those of them that were `sampled`, `cnms` sent to their sources, frames `discarded` for want of room. Those that no frame came to are left out.",
    ),
  queues: z
    .record(z.string(), byPriority(queueSchema))
    .describe(
      "Peer's name -> priority -> length of that egress queue: `mean`, `p50`, `p95`, `p99`, `max`, bytes. All queues that held anything, on the way too; tables show them all, or those with the longest `p99`.",
    ),
  queue_cdf: z
    .record(z.string(), byPriority(z.array(z.tuple([amount, amount]))))
    .optional()
    .describe("The same queues' distributions: pairs of [bytes, fraction of time at or below]."),
});

export const nicResultSchema = open({
  np_cnp_sent: count.describe("CNPs that the notification point sent."),
  np_cnp_withheld: count
    .optional()
    .describe("Those that it never made: `host.cnp.nic_interval` had one of the same flow wait already."),
  rp_cnp_handled: count.describe("CNPs that the reaction point acted on."),
  cc_refused_answers: count
    .optional()
    .describe("Of a library's congestion control: its answers that were none (NaN, below 0, a time that is over)."),
  rp_cnm_handled: count.optional().describe("Of QCN: CNMs that cut the rate of a reaction point."),
  rp_cnm_refused: z
    .record(z.string(), count)
    .optional()
    .describe("Of QCN: CNMs that changed no rate, by reason; [metrics.md](metrics.md) has the reasons."),
  rp_created: perPriority
    .optional()
    .describe(
      "Of QCN: priority -> times that a CNM made a reaction point begin to limit its flow, rpPortPriCreatedRps.",
    ),
  rp_limited_s: byPriority(amount)
    .optional()
    .describe(
      "Of QCN: priority -> time that reaction points limited their flows, summed up over them, s, rpPortPriCentiseconds.",
    ),
  pfc_received: perPriority.describe(
    "Priority -> PFC (or PAUSE) frames received that speak of it, as ethtool's `rx_prio<p>_pause`.",
  ),
  pfc_sent: perPriority.optional().describe("Priority -> PFC frames sent, by a host with a slow `receive_buffer`."),
});

export const framesSchema = open({
  sent: count.describe(
    "By NICs, or not taken from them by their host; PFC frames by NICs and switches, and CNMs by switches.",
  ),
  received: count.describe("By NICs, and MAC control by NICs and switches, where it ends."),
  dropped: count.describe("By switches, all reasons."),
  duplicated: count.describe("By an `impairment`, or by a learning switch that flooded."),
  impaired: count.describe("Lost on purpose, by an `impairment`."),
  link_down: count
    .optional()
    .describe("Of a scenario with `failures` or `faults`: on a link when it failed, or sent into one that was down."),
  from_parts: count
    .optional()
    .describe("Of one part of a lab: frames that came from other parts, beside those `sent`."),
  to_parts: count
    .optional()
    .describe("Of one part of a lab: frames that went to other parts. They stand on the right side of the sum."),
  missing: z.int().describe("Sent, and not accounted for in any other way. Anything but 0 makes the run invalid."),
  in_network: count
    .optional()
    .describe(
      "Of `sim`: on links and in queues when the run ended; of `wire`: in queues whose pause did not end (a deadlock). They are not `missing`, and stand on the right side of the sum.",
    ),
}).describe(
  "What became of every frame, see [Frames](#frames): sent + duplicated = received + dropped + impaired + missing (+ link_down + in_network).",
);

export const environmentSchema = open({
  kernel: z.string().describe("Release of the kernel."),
  cpu: z.string().optional().describe("Model of the CPU."),
  cpus: count.describe("Number of CPUs."),
  node: z.string().describe("Version of Node.js."),
  backend: z.string().describe("How frames passed between interfaces and Weir."),
}).describe("Of `wire`: `kernel`, `cpu`, number of `cpus`, `node` version, `backend` (`af_packet`) of the host.");

const fixedPointSchema = open({
  p: amount.describe("Probability that a packet is marked."),
  alpha: amount.describe("Congestion estimate."),
  rate_bps: amount.describe("R_C, bit/s."),
  target_rate_bps: amount.describe("R_T, bit/s."),
  queue_bytes: amount.nullable().describe("Length of the queue, bytes; null: no queue has this p."),
});

export const modelSchema = open({
  delay_us: amount.describe("Feedback delay tau*, us."),
  longest_queue_bytes: amount.describe("Highest queue length of the whole run, bytes."),
  fixed_point: fixedPointSchema
    .nullable()
    .describe("Where all flows rest; null where their line rates keep them from it."),
}).describe(
  "Of `model`: `delay_us` (tau*), `longest_queue_bytes` of the whole run, `fixed_point` (`p`, `alpha`, `rate_bps`, `target_rate_bps`, `queue_bytes`) of all flows; null where their line rates keep them from it.",
);

const summarySchema = open({ mean: amount, p50: amount, p95: amount, p99: amount, max: amount });

const completionsSchema = open({
  count: count.describe(
    "Transfers that were complete: flows with `bytes`, and each message of flows whose messages have sizes of their own.",
  ),
  slowdown: summarySchema.describe(
    "`mean`, `p50`, `p95`, `p99`, `max` of completion time / that of the same transfer alone in the empty network.",
  ),
  fct_us: summarySchema.describe("The same of the completion time, us."),
});

export const fctResultSchema = open({
  ...completionsSchema.shape,
  incomplete: count.describe(
    "Transfers that had begun and were not complete at the end. They are in none of the figures.",
  ),
  omitted: count
    .optional()
    .describe("Messages of graphs that are in none of the figures: those behind the first 500,000."),
  bins: z
    .array(
      open({
        above_bytes: amount.describe("Transfers of this size are in the class before."),
        up_to_bytes: amount.optional().describe("Largest size of the class; absent: no limit."),
        ...completionsSchema.shape,
      }),
    )
    .describe("`count`, `slowdown`, `fct_us` by size: more than `above_bytes`, and `up_to_bytes` or any."),
}).describe("When flows have an end (`bytes`, or messages of given sizes): completion times.");

const spreadSchema = open({ mean: amount, min: amount, p10: amount, p50: amount, max: amount });

export const groupResultSchema = open({
  flows: count.describe("Number of flows."),
  goodput_bps: spreadSchema.describe(
    "`mean`, `min`, `p10`, `p50`, `max` over the flows, of each flow's `goodput_bps`.",
  ),
  transfers: open({
    count: count.describe("Transfers that began after the warm-up and were complete."),
    throughput_bps: spreadSchema.describe("Over the transfers: bytes / completion time of each, bit/s."),
  })
    .optional()
    .describe(
      "Of flows with an end: `count` of the transfers that began after the warm-up and were complete, and `throughput_bps`, the same figures over the transfers, each bytes / completion time. Absent when there were none.",
    ),
}).describe("Flows of one traffic entry.");

export const linkResultSchema = open({
  from: z.string().describe("Device that sends."),
  to: z.string().describe("Device that receives."),
  rate_bps: amount.describe("Capacity, bit/s; 0: not limited."),
  utilisation: amount.describe(
    "Part of the capacity that frames took after the warm-up, with padding, FCS, preamble and inter-packet gap; 1: full. 0 where there is no limit.",
  ),
  bytes: amount.describe("What frames took, counted in the same way, over the whole run."),
  packets: count.describe("Frames, MAC control included."),
  lost: count.describe("Frames lost on purpose, or damaged on purpose so that the FCS refuses them."),
  link_down: count
    .optional()
    .describe(
      "Of a scenario with `failures`: frames that were on the link when it failed, or sent into it while it was down.",
    ),
  pause_time_s: byPriority(amount).describe(
    "Priority -> time that `from` might not send because `to` had paused it, s, over the whole run.",
  ),
}).describe("One direction of a link.");

const samples = z.array(finite);
const samplesByName = z.record(z.string(), samples);

export const seriesSchema = open({
  interval_s: z.number().positive().describe("Time between samples, s."),
  time_s: samples.describe("Time of each sample since the start of traffic, s."),
  flows: z
    .record(
      z.string(),
      open({
        rate_bps: samples.describe(
          "DCQCN, QCN, TIMELY and HPCC: rate that the sender may use: R_C, or the flow's cap or the line rate where that is less; 0 while it does not send.",
        ),
        target_rate_bps: samples.describe(
          "DCQCN and QCN: R_T; the same as `rate_bps` while the reaction point does not limit the flow. TIMELY and HPCC have one rate: always the same.",
        ),
        alpha: samples
          .nullable()
          .describe(
            "Congestion estimate; null where there is none: with QCN, TIMELY and Swift, and without congestion control. With `alpha_decays_at_line_rate: false` 0 while the reaction point does not limit the flow.",
          ),
        cwnd_packets: samples.describe(
          "DCTCP, Swift and TCP, in the place of rates, and HPCC beside them: congestion window, packets.",
        ),
        goodput_bps: samples.describe("Payload that arrived in the interval before the sample, bit/s."),
      }).partial(),
    )
    .describe("By flow id."),
  queues: z
    .record(
      z.string(),
      open({
        bytes: samples.describe("Queue length at the sample."),
        max_bytes: samples.describe("Highest length in the interval before it."),
      }).partial(),
    )
    .describe('By "switch:peer:priority".'),
  pauses: samplesByName.optional().describe('By "switch:peer:priority": PFC frames sent to that peer in the interval.'),
  cnps: samplesByName.optional().describe("By host: CNPs that it sent in the interval."),
  cnms: samplesByName
    .optional()
    .describe('QCN, by "switch:peer:priority": CNMs that the queue\'s congestion point sent in the interval.'),
  marks: samplesByName.optional().describe('By "switch:peer:priority": packets marked CE in the interval.'),
});

export const resultSchema = open({
  scenario: z.string().describe("Name of the scenario."),
  made: madeSchema.optional(),
  clock: z
    .enum(["wire", "sim", "model"])
    .describe(
      "How it ran. `wire`: real frames. `sim`: discrete events in virtual time. `model`: [equations](../guides/models.md#the-fluid-model-of-dcqcn).",
    ),
  scale: z
    .number()
    .min(1)
    .describe("The time scale that was used, also when the scenario says `auto`; 1 for `sim` and `model`."),
  seed: z
    .int()
    .min(0)
    .describe(
      "Seed of everything random. On the wire it fixes the random draws, not the run: the host's scheduling is not repeatable.",
    ),
  duration_s: amount.describe("Duration of the traffic, s."),
  until_s: amount
    .optional()
    .describe(
      "Where the run ended, s, when that was before the duration: with `--until` (`sim`), or ended by a signal or from the dashboard.",
    ),
  warmup_s: amount.optional().describe("Start of it that rates and queue lengths leave out, s."),
  profile: z
    .string()
    .optional()
    .describe(
      "Congestion profile, with the variant of QCN where it is not `qcn`; `none` when congestion control is off.",
    ),
  congestion_control: z
    .enum(kAlgorithmNames)
    .optional()
    .describe(
      "Congestion control of the hosts: `dcqcn`, `qcn`, `dctcp`, `timely`, `swift`, `hpcc`, `nscc`, `library` or `none`.",
    ),
  path_mtu: z
    .union([amount, z.array(amount)])
    .optional()
    .describe("Payload of a full packet, bytes; a list where hosts differ."),
  payload_share: amount
    .optional()
    .describe(
      "Payload of a full packet / all that it takes of a link: headers, ICRC, FCS, preamble, gap. 1024 / 1106 for path MTU 1024. The smallest where hosts differ.",
    ),
  changes: z
    .array(
      open({
        at_s: amount.describe("When, from the start of traffic, s."),
        set: z.array(z.string()).describe("What was changed, each `path=value` as in `--set`."),
      }),
    )
    .optional()
    .describe(
      "Of `wire`: parameters that somebody changed while it ran ([dashboard](../guides/dashboard.md)): `at_s`, and `set`, each `path=value`. The result is then not that of the scenario as written.",
    ),
  events: z
    .array(
      open({
        at_s: amount.describe("When, from the start of traffic, s."),
        what: z.string().describe("What, in words: `link a -- b fails`."),
      }),
    )
    .optional()
    .describe(
      "Of a scenario with `failures` or `faults`: what happened to the network before the run ended: `at_s`, and `what` in words.",
    ),
  faults: z.array(faultResultSchema).optional().describe("Of a scenario with `faults`: each that began, in its order."),
  ...fastForwardFields,
  fidelity: fidelitySchema.describe("Can the result be believed? See [Fidelity](#fidelity)."),
  flows: z
    .array(flowResultSchema)
    .describe("One entry per queue pair that sends, in the order of the scenario. `sim`: the first 1,000."),
  flows_omitted: count.optional().describe("How many more there are; absent when there are none."),
  totals: open({
    goodput_bps: amount.describe(
      "Sum over the flows, bit/s; flows with an end count with what arrived after the warm-up, over that time.",
    ),
    jain: z
      .number()
      .min(0)
      .max(1)
      .describe(
        "Jain's fairness index of the goodputs, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything, 0 when nobody got anything.",
      ),
    goodput_limit_bps: amount
      .optional()
      .describe(
        "Goodput that would fill the senders' links or the receivers' links, whichever is less, bit/s. Links inside the fabric may allow less. Absent where flows do not offer all they can for the whole run (`rate`, `bytes`, `start`, `stop`), and where rates change (`changes`) or links fail (`failures`).",
      ),
    feedback_per_s: amount
      .optional()
      .describe("Frames that told senders of congestion, per second of the run: CNMs with QCN, CNPs with DCQCN."),
  }).describe("All flows together."),
  groups: z
    .record(z.string(), groupResultSchema)
    .optional()
    .describe("By entry of `traffic`, see [`groups`](#groups)."),
  frames: framesSchema.optional(),
  part: partResultSchema.optional(),
  merged: mergedSchema.optional(),
  programs: z
    .record(z.string(), programResultSchema)
    .optional()
    .describe("Of labs with [programs](../guides/lab-programs.md): by the program's `id`."),
  switches: z.record(z.string(), switchResultSchema).describe("By switch."),
  nics: z.record(z.string(), nicResultSchema).describe("By host."),
  links: z.array(linkResultSchema).optional().describe("Of `sim`: each link twice, see [`links[]`](#links)."),
  fct: fctResultSchema.optional(),
  graphs: z.array(graphResultSchema).optional().describe("Of a scenario with message graphs: each, in its order."),
  transport: z
    .record(z.string(), count)
    .optional()
    .describe(
      "With reliable connections: sums of all NICs, zeros left out, under the names of mlx5's `hw_counters` (`retransmitted`, `packet_seq_err`, `local_ack_timeout_err`, ...).",
    ),
  model: modelSchema.optional(),
  environment: environmentSchema.optional(),
  series: seriesSchema.optional().describe("Samples over time, only with `--series`."),
});

export type Result = z.output<typeof resultSchema>;
export type FlowResult = z.output<typeof flowResultSchema>;
export type SwitchResult = z.output<typeof switchResultSchema>;
export type NicResult = z.output<typeof nicResultSchema>;
export type LinkResult = z.output<typeof linkResultSchema>;
export type GroupResult = z.output<typeof groupResultSchema>;
export type FctResult = z.output<typeof fctResultSchema>;
export type QueueResult = z.output<typeof queueSchema>;
export type PartResult = z.output<typeof partResultSchema>;
export type MergedResult = z.output<typeof mergedSchema>;
export type Fidelity = z.output<typeof fidelitySchema>;
export type Series = z.output<typeof seriesSchema>;
