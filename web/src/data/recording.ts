/** One run over time, live or from a result document, in the units of the charts: ms, Gb/s, KB, counts. */
import type { Frame, Session } from "../../../src/dashboard/protocol.js";
import type { Result } from "../../../src/report/result.js";
import { Columns } from "./columns.js";

/** Ten minutes at 20 frames a second. */
const kFramesKept = 12_000;

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
    readonly queues: readonly string[],
    readonly columns: Columns,
  ) {}

  /** One that grows with the frames of a run. */
  static live({ flows, queues }: Pick<Session, "flows" | "queues">): Recording {
    return Recording.of(
      flows.map(({ id }) => id),
      queues.map(({ name }) => name),
      kFramesKept,
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

  queueColumn(queue: number): number {
    return this.flows.length * kFlowFields.length + queue;
  }

  eventColumn(kind: EventKind): number {
    return this.flows.length * kFlowFields.length + this.queues.length + kEventKinds.indexOf(kind);
  }

  append({ t_ns, flows, queues, events }: Frame): void {
    const counts: Record<EventKind, number> = { mark: 0, cnp: 0, cnm: 0, pfc: 0, drop: 0 };
    for (const { kind, count } of events) counts[kind] += count;
    this.columns.append(t_ns / 1e6, (set) => {
      for (let flow = 0; flow < this.flows.length; flow++) {
        set(this.flowColumn(flow, "rate"), scaled(flows.rate[flow], 1e9));
        set(this.flowColumn(flow, "target"), scaled(flows.target[flow], 1e9));
        set(this.flowColumn(flow, "alpha"), flows.alpha[flow]);
        set(this.flowColumn(flow, "throughput"), scaled(flows.throughput[flow], 1e9));
      }
      for (let queue = 0; queue < this.queues.length; queue++) {
        set(this.queueColumn(queue), scaled(queues.peak[queue], 1000));
      }
      for (const kind of kEventKinds) set(this.eventColumn(kind), counts[kind]);
    });
  }

  /** The stream was lost for a while: nothing is drawn between what came before and what comes now. */
  interrupt(): void {
    const last = this.span?.[1];
    if (last !== undefined) this.columns.append(last, () => {});
  }

  /** Whether a column has any value. */
  has(column: number): boolean {
    return this.columns.column(column).some((value) => !Number.isNaN(value));
  }

  /** ms; undefined without samples. */
  get span(): [first: number, last: number] | undefined {
    const { time } = this.columns;
    const [first] = time;
    const last = time.at(-1);
    return first === undefined || last === undefined ? undefined : [first, last];
  }

  /** Means of a flow's throughput over all that is kept. */
  meanThroughput(flow: number): number {
    let sum = 0;
    const values = this.columns.column(this.flowColumn(flow, "throughput"));
    for (const value of values) if (!Number.isNaN(value)) sum += value;
    return values.length === 0 ? 0 : sum / values.length;
  }
}

function scaled(value: number | null | undefined, by: number): number | null {
  return value === null || value === undefined ? null : value / by;
}
