/** One execution of a scenario on native workers: open, begin, watch, drain, stop. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import type { LabEnd } from "../host/veth.js";
import { CounterTable } from "../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, type WorkerConfig } from "../native/types.js";
import { Recorder } from "../result/recorder.js";
import { changeTimes } from "../scenario/changes.js";
import { switchPorts } from "../scenario/topology.js";
import type { Scenario } from "../scenario/types.js";
import type { LabAccess, LabObserver, LabWorker } from "./access.js";
import { RateChanges } from "./changes.js";
import { composeLab, queuePairsOf } from "./compose.js";
import { frameAccount, measured, type ParameterChange, type RunEvidence } from "./outcome.js";

export interface ExecutionOptions {
  scale: number;
  end(link: number, node: string): LabEnd;
  signal: AbortSignal;
  observers: readonly LabObserver[];
}

/** From the last worker's opening to the first packet, wall ns: both threads must be waiting by then. */
const kLeadNs = 100e6;
const kWatchMs = 50;
const kDrainStepMs = 20;
/** How long frames may take to leave after traffic has ended, wall ms, beyond emptying the largest buffer and crossing all links. */
const kDrainMs = 2000;

/**
 * Aborted while traffic flows, it ends there, and the evidence is of what happened until then.
 * @throws WeirError when a worker cannot open its ports or fails; the signal's reason when aborted before there is traffic.
 */
export async function execute(addon: NativeAddon, scenario: Scenario, options: ExecutionOptions): Promise<RunEvidence> {
  const compose = composer(options);
  const workers: NativeWorker[] = [];
  try {
    for (const config of compose(scenario, 0)) {
      const worker = new addon.Worker(config);
      workers.push(worker);
      asWeirError(() => worker.open());
    }
    const [switches, nics] = workers.map((worker) => ({ worker })) as [
      { worker: NativeWorker },
      { worker: NativeWorker },
    ];
    for (const observer of options.observers) observer.opened?.({ scenario, scale: options.scale, switches, nics });
    const begin = addon.monotonicNow() + kLeadNs;
    for (const worker of workers) worker.begin(begin);
    const lab = new RunningLab(addon, scenario, options, workers as [NativeWorker, NativeWorker], begin, compose);
    await lab.traffic();
    await lab.drain();
    for (const worker of workers) worker.stop();
    lab.look();
    return lab.evidence(workers.map((worker) => measured(worker.outcome())));
  } finally {
    for (const observer of options.observers) observer.ended?.();
    for (const worker of workers) worker.close();
  }
}

/** The workers, switches first, as they are from a time on. */
type Compose = (scenario: Scenario, time: number) => [WorkerConfig, WorkerConfig];

function composer({ scale, end }: ExecutionOptions): Compose {
  const count = availableParallelism();
  const cpus = count >= 2 ? { switches: count - 1, nics: 0 } : { switches: -1, nics: -1 };
  return (scenario, time) => composeLab(scenario, { scale, end, time, cpus }) as [WorkerConfig, WorkerConfig];
}

class RunningLab implements LabAccess {
  readonly scale: number;
  readonly switches: LabWorker;
  readonly nics: LabWorker;
  readonly recorder: Recorder;
  private current: Scenario;
  private readonly rates: RateChanges;
  private readonly changed: ParameterChange[] = [];
  private ended: RunEvidence["ended"];
  private readonly words = new Float64Array(kRecordWords * 4096);

  /** @param asWritten Before anybody changes it. */
  constructor(
    private readonly addon: NativeAddon,
    private readonly asWritten: Scenario,
    private readonly options: ExecutionOptions,
    [switches, nics]: readonly [NativeWorker, NativeWorker],
    private readonly begin: number,
    private readonly compose: Compose,
  ) {
    this.current = asWritten;
    this.scale = options.scale;
    this.switches = { worker: switches, counters: new CounterTable(switches) };
    this.nics = { worker: nics, counters: new CounterTable(nics) };
    const planned = changeTimes(asWritten).map((at) => ({ at, config: compose(asWritten, at)[0] }));
    this.rates = new RateChanges(switches, planned, {
      begin,
      scale: this.scale,
      now: () => addon.monotonicNow(),
    });
    const flows = asWritten.hosts.map((host) => queuePairsOf(asWritten, host.name).map(({ flow }) => flow.id));
    this.recorder = new Recorder(asWritten, {
      ports: [...switchPorts(asWritten).values()].map((ports) => ports.map((port) => port.peer)),
      flowAt: (device, index) => flows[device]?.[index],
      scale: this.scale,
      begin,
      interval: Math.round(asWritten.probes.interval * this.scale),
    });
    for (const observer of options.observers) observer.begun?.(this);
  }

  get scenario(): Scenario {
    return this.current;
  }

  now(): number {
    return (this.addon.monotonicNow() - this.begin) / this.scale;
  }

  change(scenario: Scenario, set: readonly string[]): void {
    const [switches, nics] = this.compose(scenario, this.rates.applied.at(-1)?.at ?? 0);
    this.switches.worker.reconfigure(switches);
    this.nics.worker.reconfigure(nics);
    this.rates.replan((at) => this.compose(scenario, at)[0]);
    this.current = scenario;
    this.changed.push({ at: Math.max(0, this.now()), set });
  }

  /** Until the scenario's duration is over, or somebody ends it. */
  async traffic(): Promise<void> {
    const { signal } = this.options;
    while (this.now() < this.asWritten.duration && !signal.aborted) {
      await this.rates.wait(kWatchMs);
      this.rates.apply();
      this.check();
      this.look();
    }
    if (!signal.aborted || this.now() >= this.asWritten.duration) return;
    if (this.now() <= 0) throw signal.reason;
    this.ended = { at: Math.round(this.now()), why: (signal.reason as Error).message };
    for (const { worker } of [this.nics, this.switches]) worker.stopTraffic();
  }

  /** Until every frame that was sent is accounted for, or time is up: then the rest is missing. */
  async drain(): Promise<void> {
    const { switches, links } = this.asWritten;
    // With PFC, switches may be full one behind the other, of frames for one link.
    const buffer = switches.reduce((sum, { buffer: { total } }) => sum + total, 0);
    const slowest = Math.min(...links.map((link) => link.rate)) / this.scale;
    const delays = links.reduce((sum, link) => sum + link.delay, 0) * this.scale;
    // Who ends a run does not wait for all of that.
    const patience = this.ended === undefined ? (buffer * 8e9) / slowest + delays : 0;
    const limit = this.addon.monotonicNow() + kDrainMs * 1e6 + patience;
    let calm = 0;
    let before = -1;
    while (calm < 3 && this.addon.monotonicNow() < limit) {
      await sleep(kDrainStepMs);
      this.check();
      this.look();
      const { sent, missing } = frameAccount(this.switches.counters, this.nics.counters);
      calm = missing === 0 && sent === before ? calm + 1 : 0;
      before = sent;
    }
  }

  /** Takes what the workers have recorded and counted. */
  look(): void {
    for (const { worker, counters } of [this.switches, this.nics]) {
      for (;;) {
        const count = worker.drainRecords(this.words);
        this.recorder.take(this.words, count);
        if (count * kRecordWords < this.words.length) break;
      }
      counters.refresh();
    }
    for (const observer of this.options.observers) observer.looked?.(this);
  }

  evidence(outcomes: RunEvidence["outcomes"]): RunEvidence {
    return {
      scenario: this.asWritten,
      scale: this.scale,
      recorder: this.recorder,
      switches: this.switches.counters,
      nics: this.nics.counters,
      outcomes,
      changes: this.rates.applied,
      parameterChanges: this.changed,
      ended: this.ended,
    };
  }

  private check(): void {
    if (this.recorder.failed) {
      const failure = [this.switches, this.nics].map(({ worker }) => worker.outcome().failure);
      throw new WeirError(`a native worker failed: ${failure.filter(Boolean).join("; ")}`);
    }
  }
}
