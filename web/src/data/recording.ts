/** One run over time, live or from a result document, in the units of the charts: ms, Gb/s, KB, counts. */
import type { Sample, Session } from "../../../src/dashboard/protocol.js";
import { kMostSamples } from "../../../src/dashboard/sample.js";
import type { Result } from "../../../src/result/result.js";
import { Columns } from "./columns.js";

export const kFlowFields = ["rate", "target", "alpha", "throughput"] as const;
export type FlowField = (typeof kFlowFields)[number];
export const kEventKinds = ["mark", "cnp", "cnm", "pfc", "drop"] as const;
export type EventKind = (typeof kEventKinds)[number];

/** What happened at one moment: a parameter was changed. */
export interface Change {
  /** ms. */
  at: number;
  set: string[];
}

export class Recording {
  changes: Change[] = [];

  private constructor(
    readonly flows: readonly string[],
    private names: readonly string[],
    readonly columns: Columns,
  ) {}

  get queues(): readonly string[] {
    return this.names;
  }

  /** One that grows with the samples of a run. */
  static live({ flows, queues }: Pick<Session, "flows" | "queues">): Recording {
    return Recording.of(
      flows.map(({ id }) => id),
      queues.map(({ name }) => name),
      kMostSamples,
    );
  }

  /** The series of a finished run; empty if it has none. */
  static finished({ series }: Result): Recording {
    const flows = Object.entries(series?.flows ?? {});
    const queues = Object.entries(series?.queues ?? {});
    const times = series?.time_s ?? [];
    const recording = Recording.of(
      flows.map(([id]) => id),
      queues.map(([name]) => name),
      Math.max(1, times.length),
    );
    if (series === undefined) return recording;
    const sources: Record<EventKind, Readonly<Record<string, readonly number[]>> | undefined> = {
      mark: series.marks,
      cnp: series.cnps,
      cnm: series.cnms,
      pfc: series.pauses,
      drop: undefined,
    };
    times.forEach((seconds, i) => {
      recording.columns.append(seconds * 1000, (set) => {
        flows.forEach(([, flow], index) => {
          set(recording.flowColumn(index, "rate"), scaled(flow.rate_bps?.[i], 1e9));
          set(recording.flowColumn(index, "target"), scaled(flow.target_rate_bps?.[i], 1e9));
          set(recording.flowColumn(index, "alpha"), flow.alpha?.[i]);
          set(recording.flowColumn(index, "throughput"), scaled(flow.goodput_bps?.[i], 1e9));
        });
        queues.forEach(([, queue], index) => {
          set(recording.queueColumn(index), scaled((queue.max_bytes ?? queue.bytes)?.[i], 1000));
        });
        for (const kind of kEventKinds) {
          const lists = Object.values(sources[kind] ?? {});
          if (lists.length > 0)
            set(
              recording.eventColumn(kind),
              lists.reduce((sum, list) => sum + (list[i] ?? 0), 0),
            );
        }
      });
    });
    return recording;
  }

  private static of(flows: readonly string[], queues: readonly string[], limit: number): Recording {
    const width = flows.length * kFlowFields.length + queues.length + kEventKinds.length;
    return new Recording(flows, queues, new Columns(width, limit));
  }

  flowColumn(flow: number, field: FlowField): number {
    return flow * kFlowFields.length + kFlowFields.indexOf(field);
  }

  eventColumn(kind: EventKind): number {
    return this.flows.length * kFlowFields.length + kEventKinds.indexOf(kind);
  }

  /** The last ones: queues become more. */
  queueColumn(queue: number): number {
    return this.flows.length * kFlowFields.length + kEventKinds.length + queue;
  }

  /** The same queues and more. False: they are others, or in another order. */
  extend(queues: readonly string[]): boolean {
    if (!this.names.every((name, i) => name === queues[i])) return false;
    this.columns.widen(queues.length - this.names.length);
    this.names = queues;
    return true;
  }

  /**
   * What is known already is left out, and what is known in part is replaced. A sample without values marks where one begins whose
   * predecessor is not there: at the start, and after a gap, in which nothing is drawn.
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

  /** Whether a column has any value. */
  has(column: number): boolean {
    return this.columns.column(column).some((value) => !Number.isNaN(value));
  }

  /** ms; undefined without samples. */
  get span(): [first: number, last: number] | undefined {
    const [first] = this.columns.time;
    const last = this.columns.end;
    return first === undefined || last === undefined ? undefined : [first, last];
  }

  /** Mean of a flow's throughput over all that is kept. */
  meanThroughput(flow: number): number {
    const { time } = this.columns;
    const values = this.columns.column(this.flowColumn(flow, "throughput"));
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

function scaled(value: number | null | undefined, by: number): number | null {
  return value === null || value === undefined ? null : value / by;
}
