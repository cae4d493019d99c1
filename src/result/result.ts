// The result of a run, the same for wire, sim and model: all that any of them writes is here, and schema/result.schema.json and the
// reports are made of it. A field that not every run has is optional. Rates and times are those the scenario means: a wire run's times are
// divided by its scale and its rates multiplied by it. Only `fidelity` and `environment` are about wall time and this host.
import { z } from "zod";
import { kAlgorithmNames } from "../congestion/algorithms.js";

const count = z.int().min(0);
const amount = z.number().min(0);
const finite = z.number();
const perPriority = z.record(z.string().regex(/^[0-7]$/), count);

/** A loose object: a reader must accept fields that a later version adds. */
const open = z.looseObject;

export const queueSchema = open({
  mean: amount.meta({ description: "Time-weighted mean length, bytes." }),
  p50: amount.meta({ description: "Median length, bytes." }),
  p95: amount.meta({ description: "95th percentile of the length, bytes." }),
  p99: amount.meta({ description: "99th percentile of the length, bytes." }),
  max: amount.meta({ description: "Highest length, bytes." }),
}).meta({ description: "Length of one egress queue after the warm-up." });

export const flowResultSchema = open({
  id: z.string().meta({ description: "Id of the flow in the scenario." }),
  from: z.string().meta({ description: "Sending host." }),
  to: z.string().meta({ description: "Receiving host." }),
  priority: z.int().min(0).max(7).meta({ description: "Priority of the data." }),
  goodput_bps: amount.meta({ description: "Payload delivered in order, after the warm-up, bit/s." }),
  wire_bps: amount.meta({ description: "The same with all headers of the frames, bit/s." }),
  packets: count.meta({ description: "Data packets sent, retransmissions included." }),
  received: count.optional().meta({ description: "Data packets that the receiver took in sequence." }),
  under_way: count.optional().meta({ description: "Data packets in queues and on links at the end. Of sim." }),
  lost: count.meta({
    description:
      "Data packets that did not arrive. Of streams: packets - received - under_way. Of rc: gaps at the receiver, which retransmissions fill.",
  }),
  ecn_marked: count.optional().meta({ description: "Data packets that the receiver saw marked CE." }),
  cnp_sent: count.optional().meta({ description: "CNPs that the receiver's notification point sent for this flow." }),
  cnp_handled: count.meta({ description: "CNPs that reached the sender's reaction point." }),
  cnm_handled: count.optional().meta({
    description: "CNMs that cut the rate of the sender's reaction point, which several queue pairs may share. Of QCN.",
  }),
  cnm_lowest: count.optional().meta({ description: "CNMs among them whose feedback is 1, the lowest there is." }),
}).meta({ description: "One queue pair's traffic." });

export const congestionPointSchema = open({
  frames: count.meta({ description: "Data frames that joined the queue, as cnCpTransmittedFrames." }),
  sampled: count.meta({ description: "Frames among them that were sampled, whether their sources were told or not." }),
  cnms: count.meta({ description: "CNMs sent to their sources, as cnCpTransmittedCnms." }),
  discarded: count.meta({ description: "Data frames dropped for want of room, as cnCpDiscardedFrames." }),
}).meta({ description: "One egress queue's congestion point." });

export const switchResultSchema = open({
  drops: z.record(z.string(), count).meta({ description: "Frames dropped, by reason." }),
  ecn_marked: count.meta({ description: "Packets marked CE." }),
  pfc_sent: perPriority.meta({
    description: "PFC frames sent that name the priority (XOFF, refresh, XON), as ethtool's tx_prio<p>_pause.",
  }),
  pfc_received: perPriority.optional().meta({
    description: "PFC frames received that name the priority, as ethtool's rx_prio<p>_pause.",
  }),
  pauses: perPriority.optional().meta({ description: "Times that a peer was stopped at the priority (XON to XOFF)." }),
  cnm_sent: count.optional().meta({ description: "CNMs sent by all congestion points. Of QCN." }),
  congestion_points: z
    .record(z.string(), z.record(z.string().regex(/^[0-7]$/), congestionPointSchema))
    .optional()
    .meta({ description: "Those that saw any frame: name of the device at the port -> priority. Of QCN." }),
  queues: z
    .record(z.string(), z.record(z.string().regex(/^[0-7]$/), queueSchema))
    .meta({ description: "Egress queues: name of the device at the port -> priority -> length." }),
  queue_cdf: z
    .record(z.string(), z.record(z.string().regex(/^[0-7]$/), z.array(z.tuple([amount, amount]))))
    .optional()
    .meta({
      description:
        "The same queues' distributions over time after the warm-up: pairs of bytes and the fraction of time at or below them.",
    }),
});

export const nicResultSchema = open({
  np_cnp_sent: count.meta({ description: "CNPs sent by the notification point." }),
  rp_cnp_handled: count.meta({ description: "CNPs handled by the reaction point." }),
  rp_cnm_handled: count.optional().meta({ description: "CNMs that cut the rate of a reaction point. Of QCN." }),
  rp_cnm_refused: z
    .record(z.string(), count)
    .optional()
    .meta({ description: "CNMs that changed no rate, by reason. Of QCN." }),
  rp_created: perPriority.optional().meta({
    description: "Times that a CNM made a reaction point begin to limit its flow, as rpPortPriCreatedRps. Of QCN.",
  }),
  rp_limited_s: z
    .record(z.string().regex(/^[0-7]$/), amount)
    .optional()
    .meta({
      description: "Time that reaction points limited their flows, summed up, s, as rpPortPriCentiseconds. Of QCN.",
    }),
  pfc_received: perPriority.meta({
    description: "PFC frames received that name the priority, as ethtool's rx_prio<p>_pause.",
  }),
  pfc_sent: perPriority.optional().meta({
    description: "PFC frames sent that name the priority, by a host with a slow receive buffer.",
  }),
});

export const framesSchema = open({
  sent: count.meta({ description: "By NICs, PFC frames by NICs and switches, and CNMs by switches." }),
  received: count.meta({ description: "By NICs, and MAC control by NICs and switches." }),
  dropped: count.meta({ description: "By switches, all reasons." }),
  duplicated: count.meta({ description: "By an impairment, or by a learning switch that flooded." }),
  impaired: count.meta({ description: "Lost on purpose, by an impairment." }),
  missing: z.int().meta({ description: "Sent, and not accounted for in any other way." }),
  in_network: count.optional().meta({ description: "On links and in queues when the run ended. Of sim." }),
}).meta({ description: "Every frame: sent + duplicated = received + dropped + impaired + missing (+ in_network)." });

export const environmentSchema = open({
  kernel: z.string().meta({ description: "Release of the kernel." }),
  cpu: z.string().optional().meta({ description: "Model of the CPU." }),
  cpus: count.meta({ description: "Number of CPUs." }),
  node: z.string().meta({ description: "Version of Node.js." }),
  backend: z.string().meta({ description: "How frames passed between interfaces and Weir." }),
}).meta({ description: "The host. Of wire." });

const fixedPointSchema = open({
  p: amount.meta({ description: "Probability that a packet is marked." }),
  alpha: amount.meta({ description: "Congestion estimate." }),
  rate_bps: amount.meta({ description: "R_C, bit/s." }),
  target_rate_bps: amount.meta({ description: "R_T, bit/s." }),
  queue_bytes: amount.nullable().meta({ description: "Length of the queue, bytes; null: no queue has this p." }),
});

export const modelSchema = open({
  delay_us: amount.meta({ description: "Feedback delay tau*, us." }),
  longest_queue_bytes: amount.meta({ description: "Highest queue length of the whole run, bytes." }),
  fixed_point: fixedPointSchema
    .nullable()
    .meta({ description: "Where all flows rest; null where their line rates keep them from it." }),
}).meta({ description: "What the equations alone know. Of model." });

const summarySchema = open({ mean: amount, p50: amount, p95: amount, p99: amount, max: amount });

const completionsSchema = open({
  count: count.meta({ description: "Transfers that were complete." }),
  slowdown: summarySchema.meta({
    description: "Completion time / that of the same transfer alone in the empty network.",
  }),
  fct_us: summarySchema.meta({ description: "Completion time, us." }),
});

export const fctResultSchema = open({
  ...completionsSchema.shape,
  incomplete: count.meta({ description: "Transfers that had begun and were not complete at the end." }),
  bins: z
    .array(
      open({
        above_bytes: amount.meta({ description: "Transfers of this size are in the class before." }),
        up_to_bytes: amount.optional().meta({ description: "Largest size of the class; absent: no limit." }),
        ...completionsSchema.shape,
      }),
    )
    .meta({ description: "The same by size, of classes with any." }),
}).meta({ description: "Completion times of flows that have an end." });

const spreadSchema = open({ mean: amount, min: amount, p10: amount, p50: amount, max: amount });

export const groupResultSchema = open({
  flows: count.meta({ description: "Number of flows." }),
  goodput_bps: spreadSchema.meta({ description: "Over the flows: goodput of each, bit/s." }),
  transfers: open({
    count: count.meta({ description: "Transfers that began after the warm-up and were complete." }),
    throughput_bps: spreadSchema.meta({ description: "Over the transfers: bytes / completion time of each, bit/s." }),
  })
    .optional()
    .meta({ description: "Of flows that have an end, if any was complete." }),
}).meta({ description: "Flows of one traffic entry." });

export const linkResultSchema = open({
  from: z.string().meta({ description: "Device that sends." }),
  to: z.string().meta({ description: "Device that receives." }),
  rate_bps: amount.meta({ description: "Capacity, bit/s." }),
  utilisation: amount.meta({
    description: "Part of the capacity that was used after the warm-up, with headers, FCS, preamble and gap. 1: full.",
  }),
  bytes: amount.meta({ description: "Bytes that frames took of the link, counted the same way, over the whole run." }),
  packets: count.meta({ description: "Frames, MAC control included." }),
  lost: count.meta({ description: "Frames lost on purpose, by an impairment." }),
  pause_time_s: z
    .record(z.string().regex(/^[0-7]$/), amount)
    .meta({ description: "By priority: time that `from` might not send because `to` had paused it, s." }),
}).meta({ description: "One direction of a link." });

export const fidelitySchema = open({
  valid: z.boolean().meta({
    description: "False: this host, not the network, was the bottleneck; in sim: the run was stopped before its end.",
  }),
  reasons: z.array(z.string()).meta({ description: "Why the run is not valid." }),
  loop_gap_us: open({ p50: amount, p99: amount, max: amount }).meta({
    description: "Wall time between two turns of the poll loop, us. 0 in sim and model.",
  }),
  timer_lateness_us: open({ p99: amount, max: amount })
    .optional()
    .meta({ description: "How long after its deadline a turn of the poll loop came, us. Of wire." }),
  host_drops: count.meta({ description: "Frames lost by this host rather than by the switch." }),
  stragglers: count.optional().meta({
    description: "Frames taken later than their arrival time, because they were read too late. Of wire.",
  }),
  capture_dropped: count.optional().meta({ description: "Frames that are missing in capture files. Of wire." }),
  capture_errors: z
    .array(z.string())
    .optional()
    .meta({ description: "Capture files that end early, each with the reason. Of wire." }),
  tuning: z
    .array(z.string())
    .optional()
    .meta({ description: "What the host did not allow: priority, locked memory, pinning. Of wire." }),
  changes: z
    .array(open({ at_s: amount, late_us: amount }))
    .optional()
    .meta({
      description: "Changes of service rates: when they were due, s, and how late they were made, us of wall time.",
    }),
});

const samples = z.array(finite);
const samplesByName = z.record(z.string(), samples);

export const seriesSchema = open({
  interval_s: z.number().positive().meta({ description: "Time between samples, s." }),
  time_s: samples.meta({ description: "Time of each sample from the start of traffic, s." }),
  flows: z
    .record(
      z.string(),
      open({
        rate_bps: samples,
        target_rate_bps: samples,
        alpha: samples.nullable(),
        cwnd_packets: samples,
        goodput_bps: samples,
      }).partial(),
    )
    .meta({
      description:
        "By flow id: R_C and R_T of DCQCN and QCN, the window of DCTCP (cwnd_packets), alpha (null where the algorithm has none: QCN, none), and the goodput of the interval.",
    }),
  queues: z
    .record(z.string(), open({ bytes: samples, max_bytes: samples }).partial())
    .meta({ description: 'By "switch:peer:priority": length, and highest length in the interval.' }),
  pauses: samplesByName.optional().meta({ description: 'By "switch:peer:priority": PFC pauses sent in the interval.' }),
  cnps: samplesByName.optional().meta({ description: "By receiving host: CNPs sent in the interval." }),
  cnms: samplesByName.optional().meta({ description: 'By "switch:peer:priority": CNMs sent in the interval. Of QCN.' }),
  marks: samplesByName.optional().meta({ description: 'By "switch:peer:priority": packets marked in the interval.' }),
});

export const resultSchema = open({
  scenario: z.string().meta({ description: "Name of the scenario." }),
  clock: z
    .enum(["wire", "sim", "model"])
    .meta({ description: "How it ran: real frames, discrete events, or equations." }),
  scale: z.number().min(1).meta({ description: "Time scale of a wire run; 1 otherwise." }),
  seed: z.int().min(0).meta({ description: "Seed of everything random." }),
  duration_s: amount.meta({ description: "Duration of the traffic, as the scenario means it, s." }),
  until_s: amount.optional().meta({ description: "Where the run ended, if it was cut short of the duration, s." }),
  warmup_s: amount.optional().meta({ description: "Part of it left out of the figures, s." }),
  profile: z.string().optional().meta({ description: "Congestion profile that was used." }),
  congestion_control: z.enum(kAlgorithmNames).optional().meta({ description: "Congestion control of the hosts." }),
  path_mtu: z
    .union([amount, z.array(amount)])
    .optional()
    .meta({ description: "Payload of a full packet, bytes; a list where hosts differ." }),
  payload_share: amount.optional().meta({
    description: "Payload of a full packet / all that it takes of a link. The smallest where hosts differ.",
  }),
  changes: z
    .array(
      open({
        at_s: amount.meta({ description: "When, from the start of traffic, s." }),
        set: z.array(z.string()).meta({ description: "What was changed, each `path=value` as in `--set`." }),
      }),
    )
    .optional()
    .meta({
      description: "Parameters that somebody changed while it ran: the result is not that of the scenario as written.",
    }),
  fidelity: fidelitySchema.meta({ description: "Can the result be believed?" }),
  flows: z.array(flowResultSchema).meta({ description: "In the order of the scenario." }),
  flows_omitted: count.optional().meta({ description: "Further flows that have no entry in `flows`." }),
  totals: open({
    goodput_bps: amount.meta({ description: "Sum over the flows, bit/s." }),
    jain: z.number().min(0).max(1).meta({ description: "Jain's fairness index of the goodputs; 1 is equal." }),
    goodput_limit_bps: amount.optional().meta({
      description: "Goodput that would fill the senders' or the receivers' links, whichever is less, bit/s.",
    }),
    feedback_per_s: amount.optional().meta({
      description: "Feedback frames sent to senders in each second of the run: CNMs under QCN, CNPs under DCQCN.",
    }),
  }).meta({ description: "All flows together." }),
  groups: z
    .record(z.string(), groupResultSchema)
    .optional()
    .meta({ description: "By id of the traffic entry. Of sim." }),
  frames: framesSchema.optional(),
  switches: z.record(z.string(), switchResultSchema).meta({ description: "By switch." }),
  nics: z.record(z.string(), nicResultSchema).meta({ description: "By host." }),
  links: z.array(linkResultSchema).optional().meta({ description: "Each link twice, once per direction. Of sim." }),
  fct: fctResultSchema.optional(),
  transport: z
    .record(z.string(), count)
    .optional()
    .meta({ description: "Sums of all NICs under the names of mlx5's hw_counters. Of sim with reliable connections." }),
  model: modelSchema.optional(),
  environment: environmentSchema.optional(),
  series: seriesSchema.optional().meta({ description: "Samples over time, on request." }),
});

export type Result = z.output<typeof resultSchema>;
export type FlowResult = z.output<typeof flowResultSchema>;
export type SwitchResult = z.output<typeof switchResultSchema>;
export type NicResult = z.output<typeof nicResultSchema>;
export type LinkResult = z.output<typeof linkResultSchema>;
export type GroupResult = z.output<typeof groupResultSchema>;
export type FctResult = z.output<typeof fctResultSchema>;
export type QueueResult = z.output<typeof queueSchema>;
export type Fidelity = z.output<typeof fidelitySchema>;
export type Series = z.output<typeof seriesSchema>;
