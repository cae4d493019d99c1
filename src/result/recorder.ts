/** Collects the samples of a run: the state of flows, queues and pausing ports at each sample time, in meant units. */
import { hasAlpha, hasRates, hasWindow, hearsCnms } from "../congestion/flow_state.js";
import { kRecordWords, RecordKind } from "../native/types.js";
import type { Congestion, Flow, Scenario } from "../scenario/types.js";
import { kPriorities } from "../wire/priority.js";
import type { CompletedMessage } from "./completions.js";
import type { Series } from "./result.js";

interface FlowSamples {
  rate: number[];
  target: number[];
  alpha: number[];
  /** Window in packets, for algorithms that have one. */
  window: number[];
  /** Cumulative counts. */
  bytes: number[];
  wireBytes: number[];
  /** CNPs that the receiver has sent. */
  cnps: number[];
}

interface QueueSamples {
  bytes: number[];
  peak: number[];
  /** Cumulative counts, as are CNMs sent. */
  marks: number[];
  cnms: number[];
}

/** Meaning of the words of records. */
export interface RecordSource {
  /** Names of the peers at each switch's ports, in the order of switches and ports. */
  ports: readonly (readonly string[])[];
  /** Id of the flow that `transmit` and `receive` records with this device and index are about. */
  flowAt(device: number, index: number): string | undefined;
  /** Flows that are sampled; default: all of the scenario. */
  flows?: readonly Flow[];
  /** Time of a record = begin + meant time * scale; its rates are meant rates / scale. */
  scale: number;
  /** Time at which traffic started, ns of the records' clock. */
  begin: number;
  /** Time between samples, ns of the records' clock. */
  interval: number;
  /** A message is complete; device and index as of its record, times meant ns from the start of traffic. */
  completed?(device: number, index: number, message: Omit<CompletedMessage, "flow">): void;
}

export class Recorder {
  readonly flows: Map<string, FlowSamples>;
  readonly queues = new Map<string, QueueSamples>();
  /** Counts of PFC frames sent so far, by "switch:peer:priority". */
  readonly pauses = new Map<string, number[]>();
  /** Set when a worker's loop has failed. */
  failed = false;

  private readonly probed: ReadonlySet<string>;
  private readonly switchNames: readonly string[];
  /** Names of queues by device and index of records. */
  private readonly queueNames = new Map<number, string[]>();
  /** Receiving host of each flow. */
  private readonly receivers: ReadonlyMap<string, string>;
  private readonly algorithm: Congestion["algorithm"];
  private readonly scale: number;
  private readonly begin: number;
  private readonly interval: number;

  constructor(
    scenario: Scenario,
    private readonly source: RecordSource,
  ) {
    const { flows = scenario.flows, scale, begin, interval } = source;
    this.flows = new Map(
      flows.map(({ id }) => [id, { rate: [], target: [], alpha: [], window: [], bytes: [], wireBytes: [], cnps: [] }]),
    );
    this.probed = new Set(scenario.probes.queues.map((q) => `${q.switch}:${q.port}:${q.priority}`));
    this.receivers = new Map(flows.map((flow) => [flow.id, flow.to]));
    this.switchNames = scenario.switches.map((s) => s.name);
    this.algorithm = scenario.congestion.algorithm;
    this.scale = scale;
    this.begin = begin;
    this.interval = interval;
  }

  /** Takes `count` records of drainRecords(). It has to be quick: while a lab runs its threads leave this one little of the CPUs. */
  take(words: Float64Array, count: number): void {
    for (let first = 0; first < count * kRecordWords; first += kRecordWords) this.takeOne(words, first);
  }

  private takeOne(words: Float64Array, first: number): void {
    const word = (i: number) => words[first + i] as number;
    const time = word(0);
    const kind = word(1);
    const device = word(2);
    const index = word(3);
    const a = word(4);
    const b = word(5);
    const c = word(6);
    const d = word(7);
    const at = Math.round((time - this.begin) / this.interval);
    if (kind === RecordKind.ended) {
      if (a === 1) this.failed = true;
    } else if (kind === RecordKind.message) {
      this.source.completed?.(device, index, { message: a, bytes: b, start: this.meant(c), end: this.meant(time) });
    } else if (kind === RecordKind.queue) {
      const name = this.queueName(device, index);
      if (!this.probed.has(name)) return;
      const queue = entry(this.queues, name, () => ({ bytes: [], peak: [], marks: [], cnms: [] }));
      put(queue.bytes, at, a);
      put(queue.peak, at, b);
      put(queue.marks, at, c);
      put(queue.cnms, at, d);
    } else if (kind === RecordKind.pause) {
      const sent = entry(this.pauses, this.queueName(device, index), () => []);
      put(sent, at, a);
    } else if (kind === RecordKind.transmit || kind === RecordKind.receive) {
      const flow = this.flows.get(this.source.flowAt(device, index) ?? "");
      if (flow === undefined) return;
      if (kind === RecordKind.transmit) {
        put(flow.rate, at, a * this.scale);
        put(flow.target, at, b * this.scale);
        put(flow.alpha, at, c);
        if (hasWindow(this.algorithm)) put(flow.window, at, d);
      } else {
        put(flow.bytes, at, a);
        put(flow.wireBytes, at, b);
        put(flow.cnps, at, c);
      }
    }
  }

  /** Names are made once, as every sample asks for them. */
  private queueName(device: number, index: number): string {
    const names = entry(this.queueNames, device, () => []);
    const port = () => this.source.ports[device]?.[Math.floor(index / kPriorities.length)];
    const name = names[index] ?? `${this.switchNames[device]}:${port()}:${index % kPriorities.length}`;
    names[index] = name;
    return name;
  }

  private meant(time: number): number {
    return (time - this.begin) / this.scale;
  }

  /** Bytes delivered between two meant times, from the samples around them. */
  delivered(flow: string, from: number, to: number): { bytes: number; wireBytes: number } {
    const samples = this.flows.get(flow);
    const step = this.interval / this.scale;
    const between = (list: number[]) => valueAt(list, to / step) - valueAt(list, from / step);
    return samples === undefined
      ? { bytes: 0, wireBytes: 0 }
      : { bytes: between(samples.bytes), wireBytes: between(samples.wireBytes) };
  }

  /** The series up to the end of traffic. */
  series(duration: number): Series {
    const step = this.interval / this.scale;
    const count = Math.floor(duration / step) + 1;
    const seconds = step / 1e9;
    const level = (list: number[]) => Array.from({ length: count }, (_, i) => valueAt(list, i));
    const growth = (list: number[], per = 1) =>
      Array.from({ length: count }, (_, i) => (i === 0 ? 0 : (valueAt(list, i) - valueAt(list, i - 1)) / per));
    return {
      interval_s: seconds,
      time_s: Array.from({ length: count }, (_, i) => i * seconds),
      flows: Object.fromEntries(
        [...this.flows].map(([id, f]) => [
          id,
          {
            ...(hasRates(this.algorithm) && {
              rate_bps: level(f.rate),
              target_rate_bps: level(f.target),
            }),
            ...(hasWindow(this.algorithm) && { cwnd_packets: level(f.window) }),
            alpha: hasAlpha(this.algorithm) ? level(f.alpha) : null,
            goodput_bps: growth(f.bytes, seconds / 8),
          },
        ]),
      ),
      queues: Object.fromEntries(
        [...this.queues].map(([name, q]) => [name, { bytes: level(q.bytes), max_bytes: level(q.peak) }]),
      ),
      pauses: Object.fromEntries([...this.pauses].map(([name, list]) => [name, growth(list)])),
      cnps: this.cnpsByHost(growth),
      marks: Object.fromEntries([...this.queues].map(([name, q]) => [name, growth(q.marks)])),
      ...(hearsCnms(this.algorithm) && {
        cnms: Object.fromEntries([...this.queues].map(([name, q]) => [name, growth(q.cnms)])),
      }),
    };
  }

  private cnpsByHost(growth: (list: number[]) => number[]): Record<string, number[]> {
    const sums = new Map<string, number[]>();
    for (const [id, { cnps }] of this.flows) {
      const host = this.receivers.get(id);
      if (host === undefined || cnps.length === 0) continue;
      const own = growth(cnps);
      sums.set(host, sums.get(host)?.map((sum, i) => sum + (own[i] as number)) ?? own);
    }
    return Object.fromEntries(sums);
  }
}

function entry<K, T>(map: Map<K, T>, key: K, make: () => T): T {
  const found = map.get(key) ?? make();
  map.set(key, found);
  return found;
}

/** Stores a sample; places that were skipped keep the value before. */
function put(list: number[], at: number, value: number): void {
  if (at < 0) return;
  while (list.length < at) list.push(list.at(-1) ?? 0);
  list[at] = value;
}

/** Interpolates between samples; beyond the end the last value stays. */
function valueAt(list: readonly number[], at: number): number {
  if (list.length === 0) return 0;
  const before = Math.min(Math.floor(at), list.length - 1);
  const after = Math.min(before + 1, list.length - 1);
  const [low, high] = [list[before] as number, list[after] as number];
  return low + (high - low) * Math.min(1, at - before);
}
