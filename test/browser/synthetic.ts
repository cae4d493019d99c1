/** Made-up sessions and frames for the page, the same each time: an incast whose rates swing, whose queue marks and pauses. */
import type { Frame, Parameter, RunDescription, Session } from "../../src/watch/dashboard/protocol.js";

const kLinkRate = 40e9;
/** Meant time between two frames. */
const kStepNs = 1.25e6;

export const kParameters: Parameter[] = [
  {
    path: "switch.ecn.kmin",
    group: "ECN",
    value: "5KB",
    kind: "size",
    description: "Queue length from which packets are marked. At most kmax.",
  },
  {
    path: "switch.ecn.kmax",
    group: "ECN",
    value: "200KB",
    kind: "size",
    description: "Queue length from which every packet is marked.",
  },
  {
    path: "switch.ecn.pmax",
    group: "ECN",
    value: "1%",
    kind: "fraction",
    description: "Probability of marking at kmax, 0 to 100%.",
  },
  { path: "switch.pfc.enabled", group: "PFC", value: "true", kind: "flag", description: "Whether PFC is on." },
  {
    path: "congestion.parameters.rpg_ai_rate",
    group: "DCQCN",
    value: "40Mbps",
    kind: "rate",
    description: "Step of the additive increase.",
  },
  {
    path: "congestion.parameters.rate_to_set_on_first_cnp",
    group: "DCQCN",
    value: "0bps",
    kind: "rate",
    description: "Rate after the first CNP; 0: the current one.",
  },
];

export function syntheticRun(id = 1, state: RunDescription["state"] = "running"): RunDescription {
  const folder = state === "complete" ? `weir-results/incast-${id}` : null;
  return { id, state, set: [], changes: [], valid: state === "complete" ? true : null, error: null, folder };
}

/** `flows` senders and one receiver at one switch. */
export function syntheticSession(flows = 4): Session {
  const senders = Array.from({ length: flows }, (_, i) => `h${i + 1}`);
  return {
    version: "0.1.0",
    kind: "lab",
    started: "2026-01-01T00:00:00.000Z",
    name: `incast-${flows}to1`,
    scale: 40,
    duration_ns: 250e6,
    congestion_control: "dcqcn",
    topology: {
      nodes: [
        ...[...senders, "r"].map((name) => ({ name, kind: "host" as const })),
        { name: "sw", kind: "switch" as const },
      ],
      links: [...senders, "r"].map((name) => ({ from: name, to: "sw", rate_bps: kLinkRate })),
    },
    flows: senders.map((from) => ({ id: `incast/${from}`, from, to: "r", priority: 3 })),
    queues: [{ name: "sw:r:3", switch: "sw", port: "r", priority: 3, kmin: 5000, kmax: 200_000, qeq: null }],
    parameters: kParameters,
    runs: [syntheticRun()],
    changes: [],
  };
}

/** Frame `step` of a run; the same each time. */
export function syntheticFrame(session: Session, step: number, run = 1): Frame {
  const count = session.flows.length;
  const fair = kLinkRate / count;
  const swing = (flow: number) => Math.sin(step / 7 + flow * 1.7) * 0.25 * Math.exp(-step / 120);
  const rate = session.flows.map((_, flow) => fair * (1 + swing(flow)));
  const queue = 40_000 + 30_000 * Math.sin(step / 5) + (step % 29 === 0 ? 90_000 : 0);
  const pauses = step % 29 === 0 ? 2 : 0;
  const marks = Math.round(12 + 8 * Math.sin(step / 5));
  const receiver = session.topology.links.length - 1;
  return {
    run,
    since_ns: step * kStepNs,
    t_ns: (step + 1) * kStepNs,
    flows: {
      rate,
      target: rate.map((value) => value * 1.08),
      alpha: rate.map((_, flow) => 0.3 + 0.2 * Math.cos(step / 9 + flow)),
      throughput: rate.map((value) => value * 0.98),
    },
    queues: { bytes: [queue * 0.8], peak: [queue] },
    switches: [{ occupied: queue, xoff: 160_000 }],
    links: session.topology.links.map((_, link) => ({
      forward_bps: link === receiver ? 30e6 : (rate[link] ?? 0),
      backward_bps: link === receiver ? kLinkRate * 0.985 : 10e6,
      forward_pauses: 0,
      backward_pauses: link === receiver ? 0 : pauses,
      marks: link === receiver ? marks : 0,
    })),
    events: [
      { kind: "mark", count: marks, where: "sw:r:3" },
      { kind: "cnp", count: Math.round(marks / 2), where: "r" },
      ...(pauses > 0 ? [{ kind: "pfc" as const, count: pauses * count, where: "sw:h1:3" }] : []),
      ...(step % 61 === 60 ? [{ kind: "drop" as const, count: 1, where: "sw" }] : []),
    ],
    loop_gap_max_us: 130,
  };
}

/** A result document as a finished run leaves it; `name` tells runs apart. */
export function syntheticResult(name: string, { series = true, goodput = 36.7e9 } = {}): Record<string, unknown> {
  const hosts = ["h1", "h2", "h3", "h4"];
  const times = Array.from({ length: 200 }, (_, i) => (i + 1) * 1e-3);
  const wave = (phase: number, mean: number, swing: number) =>
    times.map((_, i) => mean + swing * Math.sin(i / 9 + phase));
  const share = goodput / hosts.length;
  return {
    scenario: name,
    clock: "wire",
    scale: 40,
    seed: 1,
    duration_s: 0.2,
    warmup_s: 0.04,
    congestion_control: "dcqcn",
    fidelity: { valid: true, reasons: [], loop_gap_us: { p50: 60, p99: 130, max: 900 }, host_drops: 0 },
    flows: hosts.map((from) => ({
      id: `incast/${from}`,
      from,
      to: "r",
      priority: 3,
      goodput_bps: share,
      wire_bps: share * 1.08,
      packets: 270_000,
      lost: 0,
      cnp_handled: 510,
    })),
    totals: { goodput_bps: goodput, jain: 0.9998 },
    switches: {
      sw: {
        drops: {},
        ecn_marked: 3495,
        pfc_sent: { "3": 16 },
        queues: { r: { "3": { mean: 42_550, p50: 37_380, p95: 111_620, p99: 137_220, max: 186_100 } } },
      },
    },
    nics: { r: { np_cnp_sent: 2068, rp_cnp_handled: 0, pfc_received: {} } },
    ...(series && {
      series: {
        interval_s: 1e-3,
        time_s: times,
        flows: Object.fromEntries(
          hosts.map((host, i) => [
            `incast/${host}`,
            {
              rate_bps: wave(i, share, share / 5),
              target_rate_bps: wave(i, share * 1.1, share / 6),
              alpha: wave(i, 0.4, 0.2),
              goodput_bps: wave(i, share, share / 8),
            },
          ]),
        ),
        queues: { "sw:r:3": { bytes: wave(1, 40_000, 20_000), max_bytes: wave(1, 55_000, 30_000) } },
        pauses: { "sw:h1:3": times.map((_, i) => (i < 3 ? 2 : 0)) },
        cnps: { r: times.map((_, i) => 8 + (i % 5)) },
        marks: { "sw:r:3": times.map((_, i) => 14 + (i % 7)) },
      },
    }),
  };
}
