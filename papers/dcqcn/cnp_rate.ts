/**
 * Number of congested flows that a NIC has CNPs for, section 3.3 of the DCQCN paper. All packets are marked, and no rate falls
 * below the flow's share of the link, so that each flow is owed a CNP per 50 us all the time: the outcome is the NIC's alone.
 */
import type { Evidence, Trial } from "../engine/experiment.js";
import { atLeast, byName, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { DCQCN_PAPER } from "./paper.js";

const kFile = "dcqcn/incast-20to1.yaml";
const kReceiver = "h65";
const kLink = 40; // Gb/s
const kPeriod = 50e-6; // s
/** Part of the owed CNPs that must come, as little less as the other figures of the paper allow: 10%. */
const kRequired = 0.9;

/** Intervals of the whole NIC: the paper's range, and what 20 flows need by division. */
const kIntervals = {
  unlimited: { label: "no limit", set: [] },
  us1: { label: "one CNP per 1 us", set: ["host.cnp.nic_interval=1us"] },
  us2_5: { label: "one CNP per 2.5 us", set: ["host.cnp.nic_interval=2.5us"] },
  us5: { label: "one CNP per 5 us", set: ["host.cnp.nic_interval=5us"] },
} as const;
const kNames = namesOf(kIntervals);
type Name = (typeof kNames)[number];
const kFlows = [10, 20, 50] as const;

const trialName = (flows: number, name: Name) => `${flows}-flows-${name}`;

function trial(flows: number, name: Name): Trial {
  const share = `${(kLink * 1000) / flows}Mbps`;
  return {
    name: trialName(flows, name),
    file: kFile,
    set: [
      "duration=20ms",
      "warmup=5ms",
      "topology.hosts=65",
      "switch.buffer.total=17.9136MB",
      `traffic.0.to=${kReceiver}`,
      `traffic.0.degree=${flows}`,
      "switch.ecn={kmin: 1KB, kmax: 1KB, pmax: 1}",
      "host.line_rate_start=false",
      `host.initial_rate=${share}`,
      `congestion.parameters.rpg_min_rate=${share}`,
      ...kIntervals[name].set,
    ],
  };
}

/** CNPs that the receiver sent, of each flow and 50 us. */
function cnpsOf({ result }: Evidence, flows: number): number {
  return (result.nics[kReceiver]?.np_cnp_sent ?? 0) / ((flows * result.duration_s) / kPeriod);
}

/** CNPs of each flow in 50 us, by number of flows and limit of the NIC. */
type Seen = ReadonlyMap<number, Readonly<Record<Name, number>>>;

const see = (runs: Runs): Seen =>
  new Map(
    kFlows.map((flows) => [flows, byName(kNames, (name) => cnpsOf(runs[trialName(flows, name)] as Evidence, flows))]),
  );

type OfFlows = Readonly<Record<Name, number>>;
const part = (name: Name) =>
  quantity<OfFlows>(`${kIntervals[name].label}: CNPs / those without a limit`, "", (of) =>
    of.unlimited === 0 ? undefined : of[name] / of.unlimited,
  );

const kQuantities = grid(
  kFlows,
  (seen: Seen, flows) => seen.get(flows),
  (label, flows) => `${flows} flows, ${label}`,
)({
  owed: quantity("no limit: CNPs of each flow in 50 us", "", ({ unlimited }) => unlimited),
  us1: part("us1"),
  us2_5: part("us2_5"),
  us5: part("us5"),
});

export const DCQCN_SECTION_3_3 = studyOf<Seen>()({
  id: "dcqcn-section3.3",
  paper: DCQCN_PAPER,
  place: "section 3.3",
  title: "congested flows that a NIC has CNPs for",
  setup:
    "10, 20 and 50 hosts send to one at 40 Gb/s, each at its share of the link or more, and every packet is marked. The receiver's NIC generates one CNP per 1, 2.5 or 5 us, whichever flows they are of, or as many as are owed: one per 50 us and flow.",
  choices: [
    "Required rate: one CNP per 50 us and flow, as section 3.1 has it; supported is what gets 90% of them or more, as 10% are what differs in the paper's other figures.",
    "The paper has a range for the NIC, one CNP per 1 to 5 us, and one for the flows, 10 to 20. The slowest NIC is held against the fewest flows and the fastest against the most.",
    "No rate falls below the share, unlike with DCQCN: else the flows would soon owe less.",
    "ConnectX-4's interval is not printed.",
  ],
  quantities: kQuantities,
  statements: [
    statement(
      "Thus, the NP can typically support CNP generation at required rate for 10-20 congested flows.",
      "section 3.3",
      "10 flows get their CNPs with one per 5 us, and 20 with one per 1 us",
      [atLeast("us5_10", kRequired), atLeast("us1_20", kRequired)],
    ),
    statement(
      "The current version (ConnectX-4) can generate CNPs at the required rate for over 200 flows.",
      "section 3.3",
      "a NIC with ConnectX-4's interval sends 200 flows their CNPs",
      [],
      "ConnectX-4's interval is not printed; by division 200 flows need one CNP per 0.25 us or faster.",
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kFlows.flatMap((flows) => kNames.map((name) => trial(flows, name))),
    see,
    sim_seconds: 2,
  },
  plots: (seen) => [
    plot(
      "CNPs of each flow in 50 us",
      ["congested flows", 0, Math.max(...kFlows)],
      ["CNPs", 0, 1.1],
      kNames.map((name) => ({
        label: kIntervals[name].label,
        x: [...kFlows],
        y: kFlows.map((flows) => seen.get(flows)?.[name] ?? 0),
      })),
    ),
  ],
});
