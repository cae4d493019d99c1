/**
 * Runs the fluid model over time: samples at equal intervals, and sums along the way.
 *
 * Packets that leave the queue are counted for the flows by their shares of it: in each step the packets that a flow has sent
 * join its share, and those that the link carried (sent packets less the growth of the queue) are taken from all shares alike. So
 * nothing is lost; that the first to come is the first to go is not followed. Sums are taken over each step by Simpson's rule on
 * the step's polynomial.
 */
import { DelaySolver, type DenseStep } from "../dde/index.js";
import {
  checkFlows,
  checkParameters,
  type DcqcnModelParameters,
  type FluidFlows,
  inPackets,
  type PacketParameters,
} from "./parameters.js";
import { FluidSystem } from "./system.js";
import { logUnmarked, marked, marking, regimeOf } from "./terms.js";

export interface FluidOptions {
  /** Time to run, ns. */
  horizon: number;
  /** Time between two samples, ns. */
  step: number;
  /** Sums leave out the time before this, ns. */
  warmup?: number;
  /** Relative error of a step of the solver. */
  tolerance?: number;
}

/** Sample k is at k x step, the first at 0; class i of the flows at [i][k]. Rates are of one flow of the class. */
export interface FluidSeries {
  /** ns */
  time: number[];
  /** bit/s */
  rates: number[][];
  /** bit/s */
  targets: number[][];
  alphas: number[][];
  /** Bits that have left the queue of one flow since the start. */
  delivered: number[][];
  /** bytes */
  queue: number[];
  /** Longest queue since the sample before, bytes. */
  longest: number[];
  /** Packets marked since the start. */
  marks: number[];
  /** CNPs sent since the start, of all flows. */
  cnps: number[];
}

/** Sums of one flow of a class. */
export interface FlowSums {
  /** Bits that left the queue since the start, and since the end of the warm-up. */
  delivered: number;
  deliveredAfterWarmup: number;
  /** Packets that the flow sent, since the start. */
  packets: number;
  /** Packets of the flow that were marked. */
  marks: number;
  /** CNPs: probability of a mark in each interval tau, over tau. */
  cnps: number;
}

/** Parts of a step at which queue lengths are taken for the distribution. */
const kQueueParts = 4;

export class FluidRun {
  readonly series: FluidSeries;
  readonly sums: FlowSums[];
  /** Lengths of the queue after the warm-up, bytes, each with the time for which it counts, s. */
  readonly lengths: number[] = [];
  readonly weights: number[] = [];

  private readonly packets: PacketParameters;
  private readonly system: FluidSystem;
  private readonly solver: DelaySolver;
  private readonly warmup: number;
  private readonly peak = { since: 0, ever: 0 };
  /** Packets of one flow by class: sent in this step, and now in the queue. */
  private readonly arrived: Float64Array;
  private readonly shares: Float64Array;

  /** Throws RangeError for what the model has no meaning for. */
  constructor(
    private readonly parameters: DcqcnModelParameters,
    private readonly flows: readonly FluidFlows[],
    private readonly options: FluidOptions,
  ) {
    checkParameters(parameters);
    checkFlows(flows);
    const { horizon, step, warmup = 0, tolerance } = options;
    if (!(horizon >= 0 && Number.isFinite(horizon))) throw new RangeError("horizon must be finite and not negative");
    if (!(step > 0)) throw new RangeError("step must be positive");
    this.packets = inPackets(parameters);
    this.system = new FluidSystem(this.packets, flows, parameters.packet);
    this.solver = new DelaySolver(
      this.system.problem(),
      this.system.initial(),
      tolerance === undefined ? {} : { tolerance },
    );
    this.warmup = warmup / 1e9;
    this.arrived = new Float64Array(flows.length);
    this.shares = new Float64Array(flows.length);
    const lists = () => flows.map((): number[] => []);
    this.series = {
      time: [],
      rates: lists(),
      targets: lists(),
      alphas: lists(),
      delivered: lists(),
      queue: [],
      longest: [],
      marks: [],
      cnps: [],
    };
    this.sums = flows.map(() => ({ delivered: 0, deliveredAfterWarmup: 0, packets: 0, marks: 0, cnps: 0 }));
  }

  /** Time reached, ns. */
  get now(): number {
    return Math.round(this.solver.time * 1e9);
  }

  get done(): boolean {
    return this.now >= this.options.horizon;
  }

  /** Longest queue so far, bytes. */
  get longest(): number {
    return this.peak.ever * this.parameters.queued;
  }

  /** Steps of the solver so far. */
  get steps(): number {
    return this.solver.steps;
  }

  /** Runs until `time`, ns, and at most to the horizon. */
  advance(time: number): void {
    const { step, horizon } = this.options;
    const until = Math.min(time, horizon);
    // A step ends at each sample and at the end of the warm-up, so that sums are known there.
    for (;;) {
      const next = this.series.time.length * step;
      const { warmup = 0 } = this.options;
      const stop = Math.min(next, until, this.now < warmup ? warmup : Number.POSITIVE_INFINITY);
      this.solver.advance(stop / 1e9, (taken) => this.observe(taken));
      if (stop === next) this.sample(next);
      if (stop >= until) return;
    }
  }

  private sample(time: number): void {
    const { series, system, solver, flows, parameters, sums } = this;
    const bits = 8 * parameters.packet;
    const { y } = solver;
    series.time.push(time);
    // Classes that begin at this time have begun, though the solver comes to it with its next step; those that end have sent until now.
    flows.forEach(({ start, stop, rate, alpha }, i) => {
      const [r, t, a] = [system.rateAt(i), system.targetAt(i), system.alphaAt(i)].map((at) => y[at]) as [
        number,
        number,
        number,
      ];
      const now =
        time > stop
          ? [0, 0, 0]
          : time === start
            ? [rate, rate, alpha]
            : [r * bits, t * bits, a].map((value) => Math.max(0, value));
      series.rates[i]?.push(now[0] as number);
      series.targets[i]?.push(now[1] as number);
      series.alphas[i]?.push(now[2] as number);
      series.delivered[i]?.push((sums[i] as FlowSums).delivered);
    });
    const total = (of: "marks" | "cnps") =>
      flows.reduce((sum, { count }, i) => sum + count * (sums[i] as FlowSums)[of], 0);
    series.marks.push(total("marks"));
    series.cnps.push(total("cnps"));
    series.queue.push((y[0] as number) * parameters.queued);
    series.longest.push(Math.max(this.peak.since, y[0] as number) * parameters.queued);
    this.peak.since = 0;
  }

  private observe(step: DenseStep): void {
    const { peak, lengths, weights, parameters } = this;
    const length = step.end - step.begin;
    for (const [part, weight] of [
      [0, 1 / 6],
      [0.5, 2 / 3],
      [1, 1 / 6],
    ] as const) {
      this.sumUp(step, step.begin + part * length, weight * length);
    }
    this.deliver(step);
    const counts = step.begin >= this.warmup - 1e-12;
    for (let i = 0; i < kQueueParts; i++) {
      const queue = Math.max(0, step.value(0, step.begin + ((i + 0.5) / kQueueParts) * length));
      if (counts) {
        lengths.push(queue * parameters.queued);
        weights.push(length / kQueueParts);
      }
      peak.since = Math.max(peak.since, queue);
    }
    peak.since = Math.max(peak.since, step.value(0, step.end));
    peak.ever = Math.max(peak.ever, peak.since);
  }

  /** Sums up packets that flows sent in the step, and marks on them. */
  private sumUp(step: DenseStep, time: number, weight: number): void {
    const { packets, system, sums, arrived } = this;
    const queue = Math.max(0, step.value(0, time));
    const p = marking(packets, queue, regimeOf(packets, queue));
    const l = logUnmarked(p);
    for (let i = 0; i < arrived.length; i++) {
      const rate = Math.max(0, step.value(system.rateAt(i), time));
      const sum = sums[i] as FlowSums;
      arrived[i] = (arrived[i] as number) + rate * weight;
      sum.packets += rate * weight;
      sum.marks += rate * p * weight;
      sum.cnps += (marked(packets.interval * rate, l) / packets.interval) * weight;
    }
  }

  /** Takes from each flow's share the packets that left the queue in the step. */
  private deliver(step: DenseStep): void {
    const { flows, arrived, shares, sums, parameters } = this;
    let all = 0;
    for (let i = 0; i < shares.length; i++) {
      shares[i] = (shares[i] as number) + (arrived[i] as number);
      all += (flows[i] as FluidFlows).count * (shares[i] as number);
      arrived[i] = 0;
    }
    if (all <= 0) return;
    const kept = Math.min(1, Math.max(0, step.value(0, step.end)) / all);
    const after = step.begin >= this.warmup - 1e-12;
    for (let i = 0; i < shares.length; i++) {
      const share = shares[i] as number;
      const bits = 8 * parameters.packet * share * (1 - kept);
      const sum = sums[i] as FlowSums;
      sum.delivered += bits;
      if (after) sum.deliveredAfterWarmup += bits;
      shares[i] = share * kept;
    }
  }
}

/** Runs it from start to end. Throws RangeError for parameters that the model has no meaning for. */
export function runFluid(
  parameters: DcqcnModelParameters,
  flows: readonly FluidFlows[],
  options: FluidOptions,
): FluidRun {
  const run = new FluidRun(parameters, flows, options);
  run.advance(options.horizon);
  return run;
}
