/** Records which transfers are complete, when, and how that compares to an empty network: flow completion times. */

import { hearsTelemetry } from "../congestion/flow_state.js";
import { sendsCnTags } from "../scenario/cn_domain.js";
import type { Fabric, Hop } from "../scenario/fabric.js";
import type { Flow, Scenario } from "../scenario/types.js";
import { idealTime } from "./ideal.js";
import type { FctResult } from "./result.js";
import { summarize } from "./statistics.js";

/** Upper bounds of the size classes, bytes. */
const kSizeBounds = [10e3, 100e3, 1e6, 10e6] as const;

/** Messages of graphs that have rows: those that are complete first. */
const kMostOnDemand = 500_000;

/** One completed message: a row of fct.csv. */
export interface FlowCompletion {
  /** Position in the scenario's flows. */
  flow: number;
  id: string;
  from: string;
  to: string;
  /** Number of the message in its flow, from 0. */
  message: number;
  bytes: number;
  start_ns: number;
  end_ns: number;
  /** Time that the same message takes alone in the empty network, ns. */
  ideal_ns: number;
  /** Quotient (end - start) / ideal. */
  slowdown: number;
}

/** A message that is complete, as the native core tells of it; times in meant ns from the start of traffic. */
export interface CompletedMessage {
  /** Position in the scenario's flows. */
  flow: number;
  /** Number of the message in its flow, from 0. */
  message: number;
  bytes: number;
  start: number;
  end: number;
}

/** A completion as it was told; `perMessage`: bytes. */
interface Told extends CompletedMessage {
  perMessage: number;
}

/** Completed messages of each flow, by its number. */
export class Completions {
  private readonly rows: FlowCompletion[] = [];
  /** Completions that have no row yet: while a lab runs its threads leave this one little of the CPUs. */
  private readonly rowless: Told[] = [];
  /** Time at which the latest message of a flow was complete, ns; 0: none yet. */
  readonly latest: Float64Array;
  private readonly bytes: Float64Array;
  private readonly messages: Uint32Array;
  /** Messages of graphs without rows. */
  private omitted = 0;
  private readonly paths = new Map<string, Hop[]>();
  private readonly ideals = new Map<number, { bytes: number; message: number; time: number }>();

  /** @param told Flows whose messages are told of here; default: all. */
  constructor(
    private readonly scenario: Scenario,
    private readonly fabric: Fabric,
    private readonly told: (flow: Flow) => boolean = () => true,
  ) {
    const count = scenario.flows.length;
    this.latest = new Float64Array(count);
    this.bytes = new Float64Array(count);
    this.messages = new Uint32Array(count);
  }

  /** Rows of flows with an end: one for each message with a size of its own, or of a graph, one for all of a flow with `bytes`. */
  get table(): readonly FlowCompletion[] {
    for (const told of this.rowless.splice(0)) this.rows.push(this.row(told));
    return this.rows;
  }

  /** Records a completed message; those of a flow come in order. */
  complete({ flow: number, message, bytes, start, end }: CompletedMessage): void {
    const flow = this.flow(number);
    this.latest[number] = end;
    this.bytes[number] = (this.bytes[number] as number) + bytes;
    this.messages[number] = (this.messages[number] as number) + 1;
    if (flow.onDemand) {
      if (this.rows.length + this.rowless.length >= kMostOnDemand) this.omitted++;
      else this.rowless.push({ flow: number, message, bytes, start, end, perMessage: bytes });
    } else if (flow.sizes !== undefined)
      this.rowless.push({ flow: number, message, bytes, start, end, perMessage: bytes });
    else if (flow.bytes !== undefined && this.done(number)) {
      const { bytes: all, start: first, message: perMessage } = flow;
      this.rowless.push({ flow: number, message: 0, bytes: all, start: first, end, perMessage });
    }
  }

  /** Bytes of a flow's messages that are complete. */
  bytesOf(number: number): number {
    return this.bytes[number] as number;
  }

  /** Returns true when nothing is left of a flow that has an end. */
  done(number: number): boolean {
    const flow = this.flow(number);
    if (flow.sizes !== undefined) return (this.messages[number] as number) >= flow.sizes.length;
    return flow.bytes !== undefined && (this.bytes[number] as number) >= flow.bytes;
  }

  /** Links that a flow crosses. */
  hops(number: number): number {
    return this.path(this.flow(number)).length;
  }

  /** Returns undefined when no flow has an end. `now`: time that the run has come to, ns. */
  result(now: number): FctResult | undefined {
    if (!this.scenario.flows.some(hasEnd)) return undefined;
    const begun = this.scenario.flows.filter(
      (flow, i) => hasEnd(flow) && this.told(flow) && flow.start < now && !this.done(i),
    );
    const bounds = [0, ...kSizeBounds, Number.POSITIVE_INFINITY];
    const bins = bounds.slice(1).map((most, i) => {
      const above = bounds[i] as number;
      const rows = this.table.filter(({ bytes }) => bytes > above && bytes <= most);
      return { above_bytes: above, ...(Number.isFinite(most) && { up_to_bytes: most }), ...figures(rows) };
    });
    return {
      ...figures(this.table),
      incomplete: begun.length,
      ...(this.omitted > 0 && { omitted: this.omitted }),
      bins: bins.filter((bin) => bin.count > 0),
    };
  }

  private row({ flow: number, message, bytes, start, end, perMessage }: Told): FlowCompletion {
    const flow = this.flow(number);
    const ideal = this.ideal(number, bytes, perMessage);
    return {
      flow: number,
      id: flow.id,
      from: flow.from,
      to: flow.to,
      message,
      bytes,
      start_ns: start,
      end_ns: end,
      ideal_ns: ideal,
      slowdown: (end - start) / ideal,
    };
  }

  /** Messages of a flow are often of one size. */
  private ideal(number: number, bytes: number, message: number): number {
    const known = this.ideals.get(number);
    if (known !== undefined && known.bytes === bytes && known.message === message) return known.time;
    const flow = this.flow(number);
    const sender = this.scenario.hosts[this.fabric.host(flow.from)];
    const time = idealTime(this.path(flow), {
      bytes,
      message,
      pathMtu: sender?.path_mtu ?? 0,
      tagged: sender !== undefined && sendsCnTags(this.scenario.congestion, sender, flow.priority),
      telemetry: hearsTelemetry(this.scenario.congestion.algorithm),
      operation: flow.operation,
      window: this.scenario.transport.window,
      rateCap: flow.rate,
      reliable: this.scenario.transport.type === "rc",
    });
    this.ideals.set(number, { bytes, message, time });
    return time;
  }

  private path(flow: Flow): Hop[] {
    const key = `${flow.from} ${flow.to}`;
    const known = this.paths.get(key) ?? this.fabric.path(this.fabric.host(flow.from), this.fabric.host(flow.to));
    this.paths.set(key, known);
    return known;
  }

  private flow(number: number): Flow {
    return this.scenario.flows[number] as Flow;
  }
}

/** The host that knows when a flow's messages are complete: the one that asked for reliable ones, else the one that receives them. */
export function completedAt({ from, to, operation }: Flow, { transport }: Pick<Scenario, "transport">): string {
  return transport.type === "rc" && operation !== "read" ? from : to;
}

/** Tells whether a flow is done at some time: it has a total, or messages of given sizes. */
export function hasEnd(flow: Flow): boolean {
  return flow.bytes !== undefined || flow.sizes !== undefined;
}

function figures(rows: readonly FlowCompletion[]) {
  return {
    count: rows.length,
    slowdown: { ...summarize(rows.map(({ slowdown }) => slowdown)) },
    fct_us: { ...summarize(rows.map(({ start_ns, end_ns }) => (end_ns - start_ns) / 1000)) },
  };
}
