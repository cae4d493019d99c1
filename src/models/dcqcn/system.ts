/**
 * Equations 5 to 9 and 11 as a delay differential system: one queue, and R_C, R_T and alpha of each class of flows.
 *
 *     q'     = sum_i N_i R_C,i(t) - C                                                              (6, 11)
 *     alpha' = (g / tau') ((1 - (1-p)^(tau' R_d)) - alpha)                                              (7)
 *     R_T'   = -(R_T - R_C) / tau (1 - (1-p)^(tau R_d)) + R_AI (additive increases in a second)         (8)
 *     R_C'   = -(R_C alpha / (2 tau)) (1 - (1-p)^(tau R_d)) + (R_T - R_C)/2 (increases in a second)     (9)
 *
 * p = p(q(t - tau*)), R_d = R_C(t - tau*); all others are those of the time t. N identical flows are one class of N (equation
 * 6), flows of different rates and starts are classes of their own (11).
 *
 * Equations 6 to 9 leave some things open, which are taken from the protocol and the switch:
 * - the queue is never negative: empty, it stays so while the flows do not fill the link;
 * - R_C and R_T never exceed the line rate: at it, they stay while the equations would raise them;
 * - before its start a flow sends nothing, so nothing of it was marked then (R_d = 0);
 * - at its start R_T = R_C (nothing to recover), and alpha is 1, or another value that is asked for. From then on alpha follows
 *   equation 7, which has it decay from the start. Without `alphaAtLineRate` it stays as it was at the start until a first packet
 *   of the flow is marked, and comes back to it when R_C has come within 1/4096 of the line rate while nothing is marked: the
 *   reaction point's release, a delay later.
 *
 * Hyper increase, the lowest rate of a limiter and PFC are not in the equations.
 *
 * State, in packets and seconds: q, then R_C of all classes, R_T of all, alpha of all. q and R_C are seen with the delay.
 */
import type { DelayProblem } from "../dde/index.js";
import type { FluidFlows, PacketParameters } from "./parameters.js";
import { type Increases, increases, logUnmarked, marked, marking, type Regime, regimeOf } from "./terms.js";

/** Values that count as small in the control of errors: packets of the queue, parts of C for rates, and of 1 for alpha. */
const kSmall = { queue: 1, rate: 1e-3, alpha: 1e-3 };

/** Part of the line rate: native/congestion/dcqcn_reaction_point.h has the same. */
const kReleaseResolution = 1 / 4096;

/** A moment at which a class begins or ends. */
interface Turn {
  time: number;
  flows: number;
  on: boolean;
}

export class FluidSystem {
  readonly classes: number;
  private readonly turns: Turn[];
  private readonly active: Uint8Array;
  /** Set for classes whose alpha follows equation 7. */
  private readonly limited: Uint8Array;
  private regime: Regime = 0;
  private readonly events: Increases = { all: 0, additive: 0 };

  /** @param packet Bytes of a packet on the link, for the rates of `flows`. */
  constructor(
    readonly parameters: PacketParameters,
    readonly flows: readonly FluidFlows[],
    private readonly packet: number,
  ) {
    this.classes = flows.length;
    this.active = new Uint8Array(flows.length);
    this.limited = new Uint8Array(flows.length).fill(1);
    this.turns = flows
      .flatMap(({ start, stop }, i): Turn[] => [
        { time: start / 1e9, flows: i, on: true },
        ...(Number.isFinite(stop) ? [{ time: stop / 1e9, flows: i, on: false }] : []),
      ])
      .sort((a, b) => a.time - b.time);
  }

  /** Index of R_C of class `i` in the state; those of R_T and alpha follow. */
  rateAt(i: number): number {
    return 1 + i;
  }
  targetAt(i: number): number {
    return 1 + this.classes + i;
  }
  alphaAt(i: number): number {
    return 1 + 2 * this.classes + i;
  }

  get dimension(): number {
    return 1 + 3 * this.classes;
  }

  /** The state at the start: an empty queue, and nobody who sends yet. */
  initial(): Float64Array {
    return new Float64Array(this.dimension);
  }

  /** Returns the system in the solver's form. */
  problem(): DelayProblem {
    const { parameters, classes, dimension, flows, packet } = this;
    const scale = new Float64Array(dimension).fill(kSmall.rate * parameters.capacity);
    scale[0] = kSmall.queue;
    scale.fill(kSmall.alpha, 1 + 2 * classes);
    const upper = new Float64Array(dimension).fill(Number.POSITIVE_INFINITY);
    const lower = new Float64Array(dimension).fill(Number.NEGATIVE_INFINITY);
    lower[0] = 0;
    flows.forEach(({ lineRate }, i) => {
      upper[this.rateAt(i)] = lineRate / (8 * packet);
      upper[this.targetAt(i)] = lineRate / (8 * packet);
    });
    return {
      dimension,
      lagged: 1 + classes,
      lag: parameters.delay,
      scale,
      lower,
      upper,
      before: (_, past) => void past.fill(0),
      derivative: (_, y, past, out) => this.derivative(y, past, out),
      levels: [
        ...[...new Set([parameters.kmin, parameters.kmax])].map((level) => [0, level] as const),
        ...(parameters.alphaAtLineRate ? [] : flows.map((flow, i) => [this.rateAt(i), this.release(flow)] as const)),
      ],
      begin: (past, y) => {
        this.regime = regimeOf(parameters, past[0] as number);
        if (!parameters.alphaAtLineRate) this.limit(past, y);
      },
      events: this.turns.map(({ time }) => time),
      event: (index, y) => this.turn(this.turns[index] as Turn, y),
    };
  }

  /** R_C from which on a flow is at line rate. */
  private release({ lineRate }: FluidFlows): number {
    return ((1 - kReleaseResolution) * lineRate) / (8 * this.packet);
  }

  /** Notes which classes are at line rate, and have their initial alpha there, and which are not. */
  private limit(past: Float64Array, y: Float64Array): void {
    this.flows.forEach((flow, i) => {
      const then = past[this.rateAt(i)] as number;
      if (this.limited[i] === 0) {
        if (this.regime > 0 && then > 0) this.limited[i] = 1;
      } else if (this.active[i] === 1 && this.regime === 0 && then >= this.release(flow)) {
        this.limited[i] = 0;
        y[this.alphaAt(i)] = flow.alpha;
      }
    });
  }

  /** The right-hand sides, for a past in the piece of equation 5 that `regime` names. */
  derivativeIn(regime: Regime, y: Float64Array, past: Float64Array, out: Float64Array): void {
    this.regime = regime;
    this.derivative(y, past, out);
  }

  /** Makes all flows send from now on, whatever their start: for the equations without time. */
  activateAll(): void {
    this.active.fill(1);
  }

  private turn({ flows: i, on }: Turn, y: Float64Array): void {
    const flow = this.flows[i] as FluidFlows;
    const rate = on ? flow.rate / (8 * this.packet) : 0;
    this.active[i] = on ? 1 : 0;
    this.limited[i] = this.parameters.alphaAtLineRate || rate < this.release(flow) ? 1 : 0;
    y[this.rateAt(i)] = rate;
    y[this.targetAt(i)] = rate;
    y[this.alphaAt(i)] = on ? flow.alpha : 0;
  }

  private derivative(y: Float64Array, past: Float64Array, out: Float64Array): void {
    const { parameters, classes, flows, active, limited, events } = this;
    const { g, interval, alphaInterval, increase, capacity } = parameters;
    const p = marking(parameters, past[0] as number, this.regime);
    const l = logUnmarked(p);
    let arriving = 0;
    for (let i = 0; i < classes; i++) {
      const [c, t, a] = [1 + i, 1 + classes + i, 1 + 2 * classes + i];
      if (active[i] === 0) {
        out[c] = out[t] = out[a] = 0;
        continue;
      }
      const rate = y[c] as number;
      const gap = (y[t] as number) - rate;
      const alpha = y[a] as number;
      // Near 0 the solver may come out a little below.
      const then = Math.max(0, past[c] as number);
      arriving += (flows[i] as FluidFlows).count * rate;
      const cuts = marked(interval * then, l) / interval;
      increases(parameters, p, then, events);
      out[a] = limited[i] === 0 ? 0 : (g / alphaInterval) * (marked(alphaInterval * then, l) - alpha);
      out[t] = -gap * cuts + increase * events.additive;
      out[c] = -0.5 * rate * alpha * cuts + 0.5 * gap * events.all;
    }
    out[0] = arriving - capacity;
  }
}
