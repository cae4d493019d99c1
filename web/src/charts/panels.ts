/** Chooses the curves of each chart, in reading order. plot.ts draws them. */
import { hasAlpha, hasRates, hasWindow, hearsCnms } from "../../../src/congestion/flow_state.js";
import type { QueueThresholds } from "../../../src/result/thresholds.js";
import type { Session } from "../../../src/watch/dashboard/protocol.js";
import type { Curve, Range } from "../data/gather.js";
import { type EventKind, type FlowField, kEventKinds, type Loaded, type Recording } from "../data/recording.js";
import { bandOverFlows, bandOverTime, kBandPoints } from "./bands.js";
import { cdfPanel } from "./distribution.js";
import { dashOfRun, type Look, lookOf } from "./palette.js";
import type { Line, Panel, Threshold } from "./panel.js";

export interface Drawn {
  recordings: readonly Recording[];
  /** Runs of the recordings; empty while these still grow. */
  finished: readonly Loaded[];
  /** Runs that are not drawn, by their place. */
  hidden: ReadonlySet<number>;
  eventsPer: "per ms" | "per s";
  /** All flows, in the order of their colours. */
  flowIds: readonly string[];
  /** Flows that are drawn. */
  flows: ReadonlySet<string>;
  /** True if the flows of each of several runs are drawn as one band. */
  banded: boolean;
  /** Thresholds of the run under way. */
  queueThresholds: () => Threshold[];
  /** Congestion control of the run under way. */
  congestionControl: Session["congestion_control"];
}

/** With more flows, target rates are left out: they would double an already full picture. */
const kFlowsWithTarget = 8;
/** With more queues, the longest is the only curve: first for a run under way, then for finished ones, where looks begin again. */
const kQueuesDrawn = 8;
const kFinishedQueuesDrawn = 64;
/** Most queues that have a chart each, when several runs are compared. */
const kQueuesCompared = 6;

const kLaneTitles: Record<EventKind, string> = {
  mark: "Marks",
  cnp: "CNPs",
  cnm: "CNMs",
  pfc: "PFC",
  drop: "Drops",
};
const kPlaceTitles: Record<EventKind, string> = {
  mark: "Marks by queue",
  cnp: "CNPs by host",
  cnm: "CNMs by queue",
  pfc: "PFC frames by port and priority",
  drop: "",
};
const kLaneColors: Record<EventKind, string> = { mark: "c4", cnp: "c0", cnm: "c6", pfc: "c1", drop: "c7" };

export function panelsOf(drawn: Drawn): Panel[] {
  const { flowIds, recordings, finished, hidden } = drawn;
  const any = (has: (control: Control) => boolean) => controlsOf(drawn).some(has);
  const compared = recordings.length > 1;
  const ofFlows = [
    ...(any(hasRates) ? [ratePanel(drawn)] : []),
    ...(compared ? [totalPanel(drawn)] : []),
    throughputPanel(drawn),
    ...(any(hasWindow) ? [windowPanel(drawn)] : []),
    ...(any(hasAlpha) ? [alphaPanel(drawn)] : []),
  ];
  // A switch has no flows, and a NIC no queues.
  const queued = recordings.some(({ queues }) => queues.length > 0);
  const panels = [
    ...(flowIds.length > 0 ? ofFlows : []),
    ...(queued ? (compared ? comparedQueuePanels(drawn) : [queuePanel(drawn)]) : []),
    ...(queued && !compared ? finished.map(distributionPanel) : []),
    eventPanel(drawn),
    ...(compared ? [] : finished.flatMap(placePanels)),
  ];
  // A finished run gets no panel for values that it does not have.
  return finished.length === 0
    ? panels
    : panels.filter(({ lines }) => lines.length === 0 || lines.some(hasValues)).map((panel) => without(panel, hidden));
}

function without(panel: Panel, hidden: ReadonlySet<number>): Panel {
  if (hidden.size === 0) return panel;
  const isDrawn = (i: number) => !hidden.has(panel.lines[i]?.run ?? -1);
  const { lines, fixed } = panel;
  return {
    ...panel,
    lines: lines.filter((_, i) => isDrawn(i)),
    ...(fixed && { fixed: { ...fixed, ys: fixed.ys.filter((_, i) => isDrawn(i)) } }),
  };
}

function hasValues({ curve, lane }: Line): boolean {
  return (
    curve === undefined ||
    curve.columns.some((column) =>
      lane === undefined
        ? curve.recording.has(column)
        : curve.recording.columns.column(column).some((value) => value > 0),
    )
  );
}

type Control = Session["congestion_control"];

const controlsOf = ({ finished, congestionControl }: Drawn): Control[] =>
  finished.length === 0 ? [congestionControl] : finished.map(({ result }) => result.congestion_control ?? "dcqcn");

const labelsOf = ({ finished }: Drawn): string[] => finished.map(({ label }) => label);

function ratePanel(drawn: Drawn): Panel {
  const targets = !drawn.banded && drawn.flows.size * drawn.recordings.length <= kFlowsWithTarget;
  return {
    id: "rate",
    title: targets ? "Rate R_C and target rate R_T" : "Rate R_C",
    note: targets
      ? "R_C solid, R_T thin"
      : (capital(bandNote(drawn)) ?? `R_T: with ${kFlowsWithTarget} flows or fewer`),
    unit: "Gb/s",
    lines: [...flowLines(drawn, "rate"), ...(targets ? flowLines(drawn, "target") : [])],
    height: 170,
  };
}

/** One curve for each of several runs. */
function totalPanel(drawn: Drawn): Panel {
  const labels = labelsOf(drawn);
  return {
    id: "throughput",
    title: "Throughput, all flows together",
    note: "Colour: run",
    unit: "Gb/s",
    lines: drawn.recordings.map((recording, run) => ({
      ...lookOf(run),
      run,
      label: `all flows, ${labels[run]}`,
      curve: { recording, columns: throughputsOf(recording), across: "sum", fold: "mean" },
    })),
    height: 140,
  };
}

function throughputPanel(drawn: Drawn): Panel {
  const { recordings, finished } = drawn;
  const [first] = recordings;
  const compared = recordings.length > 1;
  return {
    id: compared ? "goodput" : "throughput",
    title: compared ? "Throughput of each flow" : "Throughput",
    note: compared
      ? (capital(bandNote(drawn)) ?? "Colour: flow; dashes: run")
      : finished.length === 0 && first
        ? () => togetherNow(first)
        : "Goodput of each flow",
    unit: "Gb/s",
    lines: flowLines(drawn, "throughput"),
    height: 140,
  };
}

function windowPanel(drawn: Drawn): Panel {
  return {
    id: "window",
    title: "Congestion window",
    note: ["Packets that each flow may have in flight", bandNote(drawn)].filter(Boolean).join("; "),
    unit: "packets",
    lines: flowLines(drawn, "window"),
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
    note: ["Congestion estimate, 0 to 1", bandNote(drawn)].filter(Boolean).join("; "),
    unit: "",
    lines: flowLines(drawn, "alpha"),
    most: 1,
    height: 110,
  };
}

const capital = (text: string | undefined) => text && text.charAt(0).toUpperCase() + text.slice(1);

function bandNote({ banded, flows }: Drawn): string | undefined {
  return banded ? `mean of ${flows.size} flows, shaded from the lowest to the highest; colour: run` : undefined;
}

function flowLines(drawn: Drawn, field: FlowField): Line[] {
  const { recordings, flowIds, flows, banded } = drawn;
  const labels = labelsOf(drawn);
  const compared = recordings.length > 1;
  const fold = field === "throughput" ? "mean" : "last";
  if (banded) {
    return recordings.flatMap((recording, run) => {
      const columns = recording.flows.flatMap((id, index) =>
        flows.has(id) ? [recording.flowColumn(index, field)] : [],
      );
      return bandOverFlows({ recording, columns, fold }, { look: lookOf(run), run, label: labels[run] ?? "" });
    });
  }
  return recordings.flatMap((recording, run) =>
    flowIds.flatMap((id, position): Line[] => {
      const index = recording.flows.indexOf(id);
      if (index < 0 || !flows.has(id)) return [];
      const look = lookOf(position);
      return [
        {
          ...look,
          ...(compared && { run, dash: dashOfRun(run) }),
          label: `${id}${field === "target" ? " R_T" : ""}${compared ? `, ${labels[run]}` : ""}`,
          curve: {
            recording,
            columns: [recording.flowColumn(index, field)],
            across: "sum",
            fold,
          },
          ...(field === "target" && { faint: true }),
        },
      ];
    }),
  );
}

const kQueuePanel = { title: "Queue depth", note: "Longest in each interval", unit: "KB", height: 170 };
/** Traces of runs over each other hide each other. */
const kComparedQueuePanel = {
  ...kQueuePanel,
  note: "Mean of the longest in each interval, shaded from the least of them to the greatest; zoom in for each",
  points: kBandPoints,
};

function queuePanel(drawn: Drawn): Panel {
  const { recordings, finished, queueThresholds } = drawn;
  const thresholds =
    finished.length === 0
      ? queueThresholds
      : () =>
          thresholdsOf(
            finished.flatMap((run) => Object.values(run.thresholds)),
            [],
          );
  const longest = (recording: Recording): Curve => ({
    recording,
    columns: recording.queues.map((_, queue) => recording.queueColumn(queue)),
    across: "max",
    fold: "max",
  });
  if (recordings.length > 1) {
    const labels = labelsOf(drawn);
    const lines = recordings.flatMap((one, run) =>
      bandOverTime(longest(one), { look: lookOf(run), run, label: labels[run] ?? "" }),
    );
    return {
      id: "queue",
      ...kComparedQueuePanel,
      title: "Queue depth, longest queue",
      lines,
      thresholds,
      legend: true,
    };
  }
  const lines = recordings.flatMap((recording): Line[] => {
    const { queues } = recording;
    if (queues.length > (finished.length === 0 ? kQueuesDrawn : kFinishedQueuesDrawn)) {
      return [{ ...lookOf(0), label: `longest of ${queues.length} queues`, curve: longest(recording) }];
    }
    return queues.map((name, queue) => queueLine(recording, name, lookOf(queue), name));
  });
  return { id: "queue", ...kQueuePanel, lines, thresholds, legend: true };
}

function queueLine(recording: Recording, queue: string, look: Look, label: string): Line {
  const columns = [recording.queueColumn(recording.queues.indexOf(queue))];
  return { ...look, label, curve: { recording, columns, across: "max", fold: "max" } };
}

function distributionPanel(run: Loaded): Panel {
  const curves = run.recording.queues.map((queue, i) => ({ run, queue, label: queue, look: lookOf(i) }));
  return cdfPanel("cdf", "Queue depth distribution", curves);
}

/** Charts of queues that all runs have, the longest first, each over time and its distribution; or else the longest of each run. */
function comparedQueuePanels(drawn: Drawn): Panel[] {
  const { recordings, finished } = drawn;
  const [first, ...others] = recordings;
  const common = first?.queues.filter((name) => others.every(({ queues }) => queues.includes(name))) ?? [];
  if (first === undefined || common.length === 0) return [queuePanel(drawn)];
  const means = new Map(common.map((name) => [name, first.meanOf(first.queueColumn(first.queues.indexOf(name)))]));
  const longest = [...common].sort((a, b) => (means.get(b) ?? 0) - (means.get(a) ?? 0)).slice(0, kQueuesCompared);
  return longest.flatMap((queue, i): Panel[] => {
    const id = i === 0 ? "" : `-${i}`;
    const thresholds = finished.flatMap((run) => run.thresholds[queue] ?? []);
    const looks = finished.map((_, run) => ({ ...lookOf(run), run }));
    const lines = finished.flatMap(({ recording, label }, run) => {
      const columns = [recording.queueColumn(recording.queues.indexOf(queue))];
      return bandOverTime({ recording, columns, across: "max" }, { look: lookOf(run), run, label });
    });
    const curves = finished.map((run, i) => ({ run, queue, label: run.label, look: looks[i] as Look }));
    return [
      {
        id: `queue${id}`,
        ...kComparedQueuePanel,
        title: `Queue depth, ${queue}`,
        note:
          common.length > longest.length
            ? `${kComparedQueuePanel.note}; ${longest.length} of ${common.length} queues, the longest`
            : kComparedQueuePanel.note,
        lines,
        thresholds: () => thresholdsOf(thresholds, []),
        legend: true,
      },
      cdfPanel(`cdf${id}`, `Queue depth distribution, ${queue}`, curves),
    ];
  });
}

/** Length of a chart's own time in relation to the events in it, and its largest part of the run. */
const kStartRoom = 1.25;
const kStartPart = 0.2;
const kStartAlone = "At the start alone, drawn on a time axis of its own: none came later";

/** Range of a chart if all events of a long run came at its start: they would be one spike at its left edge. */
function startAlone({ columns, span }: Recording, own: readonly number[]): Range | undefined {
  const last = Math.max(...own.map((column) => columns.column(column).findLastIndex((count) => count > 0)));
  const end = kStartRoom * (columns.time[last] ?? 0);
  return end > 0 && end < kStartPart * (span?.[1] ?? 0) ? [0, end] : undefined;
}

/** Charts by place, for kinds of events that happened at several places. */
function placePanels({ recording }: Loaded): Panel[] {
  return kEventKinds.flatMap((kind) => {
    const own = recording.places.map((place, index) => ({ ...place, index })).filter((place) => place.kind === kind);
    if (own.length < 2) return [];
    const start = startAlone(
      recording,
      own.map(({ index }) => recording.placeColumn(index)),
    );
    return {
      id: `places-${kind}`,
      title: kPlaceTitles[kind],
      ...(start === undefined ? { note: "" } : { note: kStartAlone, span: start }),
      unit: "per ms",
      legend: true,
      lines: own.map(({ name, index }, i) => ({
        ...lookOf(i),
        label: name,
        curve: { recording, columns: [recording.placeColumn(index)], across: "sum", fold: "per ms" },
      })),
      height: 110,
    };
  });
}

type Thresholds = { readonly [K in keyof QueueThresholds]: QueueThresholds[K] | null };

/** @param xoff Threshold of each switch, bytes; 0: it does not pause. */
export function thresholdsOf(queues: readonly Thresholds[], xoff: readonly number[]): Threshold[] {
  const of = (field: keyof QueueThresholds) => queues.map((queue) => queue[field] ?? null);
  const pausing = xoff.filter((value) => value > 0);
  return [
    ...threshold("Kmin", of("kmin")),
    ...threshold("Kmax", of("kmax")),
    ...threshold("Q_eq", of("qeq")),
    ...threshold("PFC xoff", pausing.length === 0 ? [] : [Math.min(...pausing)]),
  ];
}

/** Makes one line if all agree; otherwise the least, which acts first, and the label says so. */
function threshold(name: string, values: readonly (number | null)[]): Threshold[] {
  const known = [...new Set(values.filter((value) => value !== null))];
  if (known.length === 0) return [];
  const value = Math.min(...known) / 1000;
  const text = `${name} ${Number(value.toPrecision(3))} KB`;
  return [{ label: known.length > 1 ? `${text} (lowest of ${known.length})` : text, value }];
}

function eventPanel(drawn: Drawn): Panel {
  const { flowIds, recordings, eventsPer, finished } = drawn;
  const controls = controlsOf(drawn);
  const labels = labelsOf(drawn);
  const compared = recordings.length > 1;
  // A finished run has CNPs by flow: of programs alone none are counted.
  const hasCnps = controls.some((control) => !hearsCnms(control)) && (finished.length === 0 || flowIds.length > 0);
  const kinds = kEventKinds.filter((kind) => (kind === "cnm" ? controls.some(hearsCnms) : kind !== "cnp" || hasCnps));
  return {
    id: "events",
    title: "Events",
    note: `${compared ? "Colour: run; height" : "Height"} by square root, each kind up to its own maximum${finished.length > 0 ? ", of the time after the warm-up" : ""}`,
    unit: eventsPer,
    lanes: kinds.map((kind) => kLaneTitles[kind]),
    lines: kinds.flatMap((kind, lane) =>
      recordings.map(
        (recording, run): Line => ({
          ...(compared ? { run, ...lookOf(run) } : { color: kLaneColors[kind], dash: [] }),
          label: compared ? `${kLaneTitles[kind]}, ${labels[run]}` : laneLabel(recording, kind),
          lane,
          curve: { recording, columns: [recording.eventColumn(kind)], across: "sum", fold: eventsPer },
        }),
      ),
    ),
    height: 44 * kinds.length + 34,
  };
}

/** Label of a lane; if there is one place, the label names it. */
function laneLabel({ places }: Recording, kind: EventKind): string {
  const [place, ...others] = places.filter((one) => one.kind === kind);
  return place === undefined || others.length > 0 ? kLaneTitles[kind] : `${kLaneTitles[kind]}, ${place.name}`;
}
