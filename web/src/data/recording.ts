/** One run over time, live or from a result document, in the units of the charts: ms, Gb/s, KB, counts. */

import type { PageRun } from "../../../src/result/report/page_data.js";
import type { Result } from "../../../src/result/result.js";
import { kFlowSeries, kQueueSeries } from "../../../src/result/series.js";
import type { Sample, Session } from "../../../src/watch/dashboard/protocol.js";
import { kMostSamples } from "../../../src/watch/dashboard/sample.js";
import { Columns } from "./columns.js";

export const kFlowFields = ["rate", "target", "alpha", "throughput", "window"] as const;
export type FlowField = (typeof kFlowFields)[number];
export const kEventKinds = ["mark", "cnp", "cnm", "pfc", "drop"] as const;
export type EventKind = (typeof kEventKinds)[number];

const kSeriesOf = {
  rate: "rate_bps",
  target: "target_rate_bps",
  alpha: "alpha",
  throughput: "goodput_bps",
  window: "cwnd_packets",
} as const satisfies Record<FlowField, keyof typeof kFlowSeries>;

/** Place of events in a finished run: a queue, a port, a host. */
export interface Place {
  kind: EventKind;
  name: string;
}

/** Something that happened at one moment: a parameter was changed, or a link failed. */
export interface Change {
  /** Time in ms. */
  at: number;
  set: string[];
}

export class Recording {
  changes: Change[] = [];

  private constructor(
    readonly flows: readonly string[],
    private names: readonly string[],
    readonly columns: Columns,
    /** Places that had events. */
    readonly places: readonly Place[] = [],
  ) {}

  get queues(): readonly string[] {
    return this.names;
  }

  /** Makes one that grows with the samples of a run. */
  static live({ flows, queues }: Pick<Session, "flows" | "queues">): Recording {
    return Recording.of(
      flows.map(({ id }) => id),
      queues.map(({ name }) => name),
      kMostSamples,
    );
  }

  /** Makes one of the series of a finished run, empty if it has none, with changes of parameters and failures while it ran. */
  static finished({
    series,
    changes = [],
    events: network = [],
  }: Pick<Result, "series" | "changes" | "events">): Recording {
    const flows = Object.entries(series?.flows ?? {});
    const queues = Object.entries(series?.queues ?? {});
    const times = series?.time_s ?? [];
    const events = Object.entries({ mark: series?.marks, cnp: series?.cnps, cnm: series?.cnms, pfc: series?.pauses });
    const places = events.flatMap(([kind, lists = {}]) =>
      Object.entries(lists)
        .filter(([, counts]) => counts.some((count) => count > 0))
        .map(([name, counts]) => ({ kind: kind as EventKind, name, counts })),
    );
    const recording = Recording.of(
      flows.map(([id]) => id),
      queues.map(([name]) => name),
      Math.max(1, times.length),
      places,
    );
    recording.changes = [...changes, ...network.map(({ at_s, what }) => ({ at_s, set: [what] }))].map(
      ({ at_s, set }) => ({ at: at_s * 1000, set }),
    );
    const known = events.filter(([, lists]) => Object.keys(lists ?? {}).length > 0).map(([kind]) => kind as EventKind);
    times.forEach((seconds, i) => {
      recording.columns.append(seconds * 1000, (set) => {
        flows.forEach(([, flow], index) => {
          for (const field of kFlowFields) {
            const name = kSeriesOf[field];
            set(recording.flowColumn(index, field), scaled(flow[name]?.[i], kFlowSeries[name].per));
          }
        });
        queues.forEach(([, queue], index) => {
          set(recording.queueColumn(index), scaled((queue.max_bytes ?? queue.bytes)?.[i], kQueueSeries.bytes.per));
        });
        for (const kind of known) {
          const own = places.filter((place) => place.kind === kind);
          set(
            recording.eventColumn(kind),
            own.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0),
          );
        }
        places.forEach(({ counts }, place) => {
          set(recording.placeColumn(place), counts[i]);
        });
      });
    });
    return recording;
  }

  private static of(
    flows: readonly string[],
    queues: readonly string[],
    limit: number,
    places: readonly Place[] = [],
  ): Recording {
    const width = flows.length * kFlowFields.length + kEventKinds.length + queues.length + places.length;
    return new Recording(flows, queues, new Columns(width, limit), places);
  }

  flowColumn(flow: number, field: FlowField): number {
    return flow * kFlowFields.length + kFlowFields.indexOf(field);
  }

  eventColumn(kind: EventKind): number {
    return this.flows.length * kFlowFields.length + kEventKinds.indexOf(kind);
  }

  /** Column of a queue; these are the last ones, since queues become more. */
  queueColumn(queue: number): number {
    return this.flows.length * kFlowFields.length + kEventKinds.length + queue;
  }

  /** Column of a place in a finished run, whose queues do not become more. */
  placeColumn(place: number): number {
    return this.queueColumn(this.queues.length) + place;
  }

  /** Takes the same queues and more. Returns false if they are others, or in another order. */
  extend(queues: readonly string[]): boolean {
    if (!this.names.every((name, i) => name === queues[i])) return false;
    this.columns.widen(queues.length - this.names.length);
    this.names = queues;
    return true;
  }

  /**
   * Adds a sample; known parts are left out or replaced. A sample without values marks where one begins whose predecessor
   * is not there: at the start, and after a gap, in which nothing is drawn.
   *
   * @returns False: it was known.
   */
  append({ since_ns, t_ns, flows, queues, events }: Sample): boolean {
    const from = since_ns / 1e6;
    const at = t_ns / 1e6;
    const { columns } = this;
    if (at <= (columns.end ?? Number.NEGATIVE_INFINITY)) return false;
    columns.truncate(from);
    if (columns.end !== from) columns.append(from, () => {});
    columns.append(at, (set) => {
      for (let flow = 0; flow < this.flows.length; flow++) {
        set(this.flowColumn(flow, "rate"), scaled(flows.rate[flow], 1e9));
        set(this.flowColumn(flow, "target"), scaled(flows.target[flow], 1e9));
        set(this.flowColumn(flow, "alpha"), flows.alpha[flow]);
        set(this.flowColumn(flow, "throughput"), scaled(flows.throughput[flow], 1e9));
      }
      for (let queue = 0; queue < this.queues.length; queue++) {
        set(this.queueColumn(queue), scaled(queues.peak[queue], 1000));
      }
      for (const kind of kEventKinds) set(this.eventColumn(kind), events[kind] ?? 0);
    });
    return true;
  }

  /** Tells whether a column has any value. */
  has(column: number): boolean {
    return this.columns.column(column).some((value) => !Number.isNaN(value));
  }

  /** First and last time, ms; undefined without samples. */
  get span(): [first: number, last: number] | undefined {
    const [first] = this.columns.time;
    const last = this.columns.end;
    return first === undefined || last === undefined ? undefined : [first, last];
  }

  /** Mean of a flow's throughput over all samples that are kept. */
  meanThroughput(flow: number): number {
    return this.meanOf(this.flowColumn(flow, "throughput"));
  }

  /** Mean by time over all samples that are kept. */
  meanOf(column: number): number {
    const { time } = this.columns;
    const values = this.columns.column(column);
    let sum = 0;
    let known = 0;
    for (let i = 1; i < values.length; i++) {
      const value = values[i] as number;
      if (Number.isNaN(value)) continue;
      const took = (time[i] as number) - (time[i - 1] as number);
      sum += value * took;
      known += took;
    }
    return known === 0 ? 0 : sum / known;
  }
}

/** A finished run that can be looked at. */
export interface Loaded extends PageRun {
  /** A key such as "run:3" or "file:1". */
  key: string;
  recording: Recording;
}

function scaled(value: number | null | undefined, by: number): number | null {
  return value === null || value === undefined ? null : value / by;
}
