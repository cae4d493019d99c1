/** What is drawn: which curves in which chart, in reading order. Drawing itself is plot.ts. */
import { hasAlpha, hasRates, hearsCnms } from "../../../src/congestion/flow_state.js";
import type { QueueDescription, Session } from "../../../src/dashboard/protocol.js";
import type { Curve } from "../data/gather.js";
import { type EventKind, type FlowField, kEventKinds, type Recording } from "../data/recording.js";
import { dashOfRun, type Look, lookOf } from "./palette.js";

export interface Line extends Look {
  label: string;
  curve: Curve;
  /** Thin and pale: of second rank. */
  faint?: boolean;
  /** Which lane of a panel with lanes, from the top. */
  lane?: number;
}

/** A horizontal line, in the unit of the panel. */
export interface Threshold {
  label: string;
  value: number;
}

export interface Panel {
  id: string;
  title: string;
  note: string | (() => string);
  unit: string;
  lines: Line[];
  /** They move with what switches hold. */
  thresholds?: () => Threshold[];
  /** Lanes share no axis: each is as high as its largest value, and all heights are square roots: a burst leaves room for the rest. */
  lanes?: string[];
  /** The axis never ends above. */
  most?: number;
  height: number;
}

export interface Drawn {
  recordings: readonly Recording[];
  /** They are still growing. */
  live: boolean;
  eventsPer: "per ms" | "per s";
  /** Names of the recordings where there are several. */
  labels: readonly string[];
  /** All, in the order of their colours. */
  flowIds: readonly string[];
  /** Those drawn. */
  flows: ReadonlySet<string>;
  queueThresholds: () => Threshold[];
  congestionControl: Session["congestion_control"];
}

/** With more flows, target rates are left out: they would double an already full picture. */
const kFlowsWithTarget = 8;
/** With more queues, all but the longest are one curve. */
const kQueuesDrawn = 8;

const kLaneTitles: Record<EventKind, string> = {
  mark: "Marks",
  cnp: "CNPs",
  cnm: "CNMs",
  pfc: "PFC",
  drop: "Drops",
};
const kLaneColors: Record<EventKind, string> = { mark: "c4", cnp: "c0", cnm: "c6", pfc: "c1", drop: "c7" };

export function panelsOf(drawn: Drawn): Panel[] {
  const { congestionControl: control, flowIds, recordings } = drawn;
  const ofFlows = [
    ...(hasRates(control) ? [ratePanel(drawn)] : []),
    throughputPanel(drawn),
    ...(hasAlpha(control) ? [alphaPanel(drawn)] : []),
  ];
  // A switch has no flows, and a NIC no queues.
  const queued = recordings.some(({ queues }) => queues.length > 0);
  return [...(flowIds.length > 0 ? ofFlows : []), ...(queued ? [queuePanel(drawn)] : []), eventPanel(drawn)];
}

function ratePanel(drawn: Drawn): Panel {
  const targets = drawn.flows.size * drawn.recordings.length <= kFlowsWithTarget;
  return {
    id: "rate",
    title: targets ? "Rate R_C and target rate R_T" : "Rate R_C",
    note: targets ? "R_C solid, R_T thin" : `R_T: with ${kFlowsWithTarget} flows or fewer`,
    unit: "Gb/s",
    lines: [...flowLines(drawn, "rate"), ...(targets ? flowLines(drawn, "target") : [])],
    height: 170,
  };
}

function throughputPanel(drawn: Drawn): Panel {
  const { recordings, labels } = drawn;
  const compared = recordings.length > 1;
  const totals = recordings.map(
    (recording, run): Line => ({
      ...lookOf(run),
      label: `all flows, ${labels[run]}`,
      curve: { recording, columns: throughputsOf(recording), across: "sum", fold: "mean" },
    }),
  );
  const [first] = recordings;
  return {
    id: "throughput",
    title: compared ? "Throughput, all flows together" : "Throughput",
    note: compared ? "Colour: run" : drawn.live && first ? () => togetherNow(first) : "Goodput of each flow",
    unit: "Gb/s",
    lines: compared ? totals : flowLines(drawn, "throughput"),
    height: 140,
  };
}

function throughputsOf(recording: Recording): number[] {
  return recording.flows.map((_, flow) => recording.flowColumn(flow, "throughput"));
}

function togetherNow(recording: Recording): string {
  const last = throughputsOf(recording).map((column) => recording.columns.last(column));
  const sum = last.reduce((total, value) => total + (Number.isNaN(value) ? 0 : value), 0);
  return `All ${recording.flows.length} flows together: ${sum.toFixed(1)} Gb/s`;
}

function alphaPanel(drawn: Drawn): Panel {
  return {
    id: "alpha",
    title: "Alpha",
    note: "Congestion estimate, 0 to 1",
    unit: "",
    lines: flowLines(drawn, "alpha"),
    most: 1,
    height: 110,
  };
}

function flowLines({ recordings, labels, flowIds, flows }: Drawn, field: FlowField): Line[] {
  const compared = recordings.length > 1;
  return recordings.flatMap((recording, run) =>
    flowIds.flatMap((id, position): Line[] => {
      const index = recording.flows.indexOf(id);
      if (index < 0 || !flows.has(id)) return [];
      const look = lookOf(position);
      return [
        {
          ...look,
          ...(compared && { dash: dashOfRun(run) }),
          label: `${id}${field === "target" ? " R_T" : ""}${compared ? `, ${labels[run]}` : ""}`,
          curve: {
            recording,
            columns: [recording.flowColumn(index, field)],
            across: "sum",
            fold: field === "throughput" ? "mean" : "last",
          },
          ...(field === "target" && { faint: true }),
        },
      ];
    }),
  );
}

function queuePanel({ recordings, labels, queueThresholds }: Drawn): Panel {
  const compared = recordings.length > 1;
  const lines = recordings.flatMap((recording, run): Line[] => {
    const columns = recording.queues.map((_, queue) => recording.queueColumn(queue));
    const curve = (of: number[]): Curve => ({ recording, columns: of, across: "max", fold: "max" });
    if (compared) return [{ ...lookOf(run), label: labels[run] ?? "", curve: curve(columns) }];
    if (columns.length > kQueuesDrawn) {
      return [{ ...lookOf(0), label: `longest of ${columns.length} queues`, curve: curve(columns) }];
    }
    return recording.queues.map((name, queue) => ({
      ...lookOf(queue),
      label: name,
      curve: curve([columns[queue] as number]),
    }));
  });
  return {
    id: "queue",
    title: compared ? "Queue depth, longest queue" : "Queue depth",
    note: "Longest in each interval",
    unit: "KB",
    lines,
    thresholds: queueThresholds,
    height: 170,
  };
}

/** @param xoff Of each switch, bytes; 0: it does not pause. */
export function thresholdsOf(queues: readonly QueueDescription[], xoff: readonly number[]): Threshold[] {
  const of = (field: "kmin" | "kmax" | "qeq") => queues.map((queue) => queue[field]);
  const pausing = xoff.filter((value) => value > 0);
  return [
    ...threshold("Kmin", of("kmin")),
    ...threshold("Kmax", of("kmax")),
    ...threshold("Q_eq", of("qeq")),
    ...threshold("PFC xoff", pausing.length === 0 ? [] : [Math.min(...pausing)]),
  ];
}

/** One line if all agree; otherwise the least, which acts first, and it says so. */
function threshold(name: string, values: readonly (number | null)[]): Threshold[] {
  const known = [...new Set(values.filter((value) => value !== null))];
  if (known.length === 0) return [];
  const value = Math.min(...known) / 1000;
  const text = `${name} ${Number(value.toPrecision(3))} KB`;
  return [{ label: known.length > 1 ? `${text} (lowest of ${known.length})` : text, value }];
}

function eventPanel({ recordings, labels, congestionControl: control, eventsPer }: Drawn): Panel {
  const compared = recordings.length > 1;
  const kinds = kEventKinds.filter((kind) =>
    kind === "cnm" ? hearsCnms(control) : kind !== "cnp" || !hearsCnms(control),
  );
  return {
    id: "events",
    title: "Events",
    note: compared ? "Colour: run" : "Height by square root, each kind up to its own maximum",
    unit: eventsPer,
    lanes: kinds.map((kind) => kLaneTitles[kind]),
    lines: kinds.flatMap((kind, lane) =>
      recordings.map(
        (recording, run): Line => ({
          ...(compared ? lookOf(run) : { color: kLaneColors[kind], dash: [] }),
          label: compared ? `${kLaneTitles[kind]}, ${labels[run]}` : kLaneTitles[kind],
          lane,
          curve: { recording, columns: [recording.eventColumn(kind)], across: "sum", fold: eventsPer },
        }),
      ),
    ),
    height: 44 * kinds.length + 34,
  };
}
