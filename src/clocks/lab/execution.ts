/** One execution of a scenario on native workers: open, begin, watch, drain, stop. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../../base/error.js";
import type { LabEnd } from "../../host/veth.js";
import { CounterTable } from "../../native/counters.js";
import type { OperationTimes, SimulationAddon } from "../../native/simulation_types.js";
import { kRecordWords, type NativeAddon, type NativeWorker, type WorkerConfig } from "../../native/types.js";
import { wallTime } from "../../native/wall.js";
import { Completions, completedAt } from "../../result/completions.js";
import { Recorder } from "../../result/recorder.js";
import { changeTimes } from "../../scenario/changes.js";
import { Fabric } from "../../scenario/fabric.js";
import { rerouteTimes } from "../../scenario/failures.js";
import { kCalculate } from "../../scenario/graphs/graph.js";
import { Share } from "../../scenario/parts.js";
import { awaitsPrograms } from "../../scenario/programs.js";
import { switchPorts } from "../../scenario/topology.js";
import { flowsAt } from "../../scenario/traffic.js";
import type { HostConfig, Scenario, SwitchConfig } from "../../scenario/types.js";
import { GraphWatch } from "../graph_watch.js";
import type { LabAccess, LabObserver, LabWorker } from "./access.js";
import { RateChanges } from "./changes.js";
import { composeLab } from "./compose.js";
import { LabFaults } from "./faults.js";
import { pausedFrames } from "./frozen.js";
import { MessageTimes } from "./message_times.js";
import { endOf, frameAccount, measured, type ParameterChange, type RunEvidence } from "./outcome.js";
import type { PartRun } from "./parts/part_run.js";
import type { Residents } from "./residents.js";

export type LabAddon = NativeAddon & Pick<SimulationAddon, "IdealNetwork">;

export interface ExecutionOptions {
  scale: number;
  end(link: number, node: string): LabEnd;
  signal: AbortSignal;
  observers: readonly LabObserver[];
  residents?: Residents | undefined;
  /** The run's dealings with the other parts, if this is a part. */
  part?: PartRun | undefined;
}

/** Time from the last worker's opening to the first packet, wall ns: both threads must be waiting by then. */
const kLeadNs = 100e6;
/** The same where programs look for their NICs before traffic starts. */
const kSettlingNs = 500e6;
const kWatchMs = 50;
const kDrainStepMs = 20;
/** Looks without anything new after which all frames are taken to have come. */
const kCalmLooks = 3;
/** Longest pause in bits: 65,535 quanta of 512. */
const kLongestPause = 65_535 * 512;
/** Time without an operation's end, beyond twice the longest calculation, after which message graphs stand still, wall ns. */
const kPatience = 10e9;
/** Time that frames may take to leave after traffic has ended, wall ms, beyond emptying the largest buffer and crossing all links. */
const kDrainMs = 2000;

/**
 * Runs the scenario once. Aborted while traffic flows, it ends there, and the evidence covers what happened until then.
 * @throws WeirError when a worker cannot open its ports or fails; the signal's reason when aborted before there is traffic.
 */
export async function execute(addon: LabAddon, scenario: Scenario, options: ExecutionOptions): Promise<RunEvidence> {
  const compose = composer(options);
  const workers: NativeWorker[] = [];
  const { residents } = options;
  const observers = [...options.observers, ...(residents ? [residents] : [])];
  try {
    for (const config of compose(scenario, 0)) {
      const worker: NativeWorker = new addon.Worker(config, () => hearPunted(workers, worker, residents));
      workers.push(worker);
      asWeirError(() => worker.open());
    }
    const [switches, nics] = workers.map((worker) => ({ worker })) as [
      { worker: NativeWorker },
      { worker: NativeWorker },
    ];
    for (const observer of observers) observer.opened?.({ scenario, scale: options.scale, switches, nics });
    const { part, signal } = options;
    const begin = part ? await part.agree(signal) : addon.monotonicNow() + (residents ? kSettlingNs : kLeadNs);
    for (const worker of workers) worker.begin(begin);
    const both = workers as [NativeWorker, NativeWorker];
    const lab = new RunningLab(addon, scenario, { ...options, observers }, both, begin, compose);
    await residents?.settle(lab);
    await lab.traffic();
    await residents?.end();
    await lab.drain();
    for (const worker of workers) worker.stop();
    lab.look();
    return lab.evidence(workers.map((worker) => measured(worker.outcome())));
  } finally {
    for (const observer of observers) observer.ended?.();
    for (const worker of workers.splice(0)) worker.close();
  }
}

/** Longest calculation of message graphs, meant ns. */
function longestCalculation({ graphs }: Scenario): number {
  return graphs.reduce(
    (most, { graph }) =>
      graph.size.reduce((longest, size, i) => (graph.kind[i] === kCalculate ? Math.max(longest, size) : longest), most),
    0,
  );
}

/** Answers ARP and the like, where hosts have residents. @param workers Workers that are open. */
function hearPunted(workers: readonly NativeWorker[], worker: NativeWorker, residents: Residents | undefined): void {
  if (residents === undefined || !workers.includes(worker)) return;
  const [, nics] = workers;
  for (const { device, bytes } of worker.drainPunted()) if (worker === nics) residents.take(device, bytes);
}

/** Composes the workers, switches first, as they are from a time on. */
type Compose = (scenario: Scenario, time: number) => [WorkerConfig, WorkerConfig];

function composer({ scale, end, residents }: ExecutionOptions): Compose {
  const count = availableParallelism();
  const inhabited = residents !== undefined;
  // Programs run on any CPU, and the scheduler moves the workers' threads to where there are none.
  const cpus = count >= 2 && !inhabited ? { switches: count - 1, nics: 0 } : { switches: -1, nics: -1 };
  const fixed = { scale, end, cpus, inhabited };
  return (scenario, time) => {
    const prompt = scenario.programs.length > 0;
    return composeLab(scenario, { ...fixed, prompt, time }) as [WorkerConfig, WorkerConfig];
  };
}

class RunningLab implements LabAccess {
  readonly scale: number;
  readonly switches: LabWorker;
  readonly nics: LabWorker;
  readonly recorder: Recorder;
  private readonly completions: Completions;
  private readonly messageTimes = new MessageTimes();
  private current: Scenario;
  private readonly rates: RateChanges;
  private readonly faults: LabFaults;
  private readonly changed: ParameterChange[] = [];
  private ended: RunEvidence["ended"];
  private frozen = 0;
  private readonly taken = { all: 0, lately: 0 };
  private unread = 0;
  private readonly graphs: GraphWatch | undefined;
  private progress = { ended: 0, at: Number.POSITIVE_INFINITY };
  /** Time without an operation's end after which nothing is under way, wall ns. */
  private readonly patience: number;
  /** When message graphs had ended, as it was noticed, meant ns. */
  private finished: number | undefined;
  private readonly words = new Float64Array(kRecordWords * 4096);

  /** @param asWritten The scenario before anybody changes it. */
  constructor(
    private readonly addon: LabAddon,
    private readonly asWritten: Scenario,
    private readonly options: ExecutionOptions,
    [ofSwitches, ofNics]: readonly [NativeWorker, NativeWorker],
    private readonly begin: number,
    private readonly compose: Compose,
  ) {
    this.current = asWritten;
    this.scale = options.scale;
    this.graphs = asWritten.graphs.length > 0 ? new GraphWatch(asWritten.graphs) : undefined;
    this.patience = kPatience + 2 * longestCalculation(asWritten) * options.scale;
    this.switches = { worker: ofSwitches, counters: new CounterTable(ofSwitches) };
    this.nics = { worker: ofNics, counters: new CounterTable(ofNics) };
    const times = new Set([...changeTimes(asWritten), ...rerouteTimes(asWritten)]);
    const planned = [...times].sort((a, b) => a - b).map((at) => ({ at, config: compose(asWritten, at)[0] }));
    this.rates = new RateChanges(ofSwitches, planned, {
      begin,
      scale: this.scale,
      now: () => addon.monotonicNow(),
    });
    const fabric = new Fabric(asWritten);
    this.faults = new LabFaults(this, fabric);
    const share = new Share(asWritten);
    // Devices are in the order of the workers', which have only those of this part.
    const hosts = share.hosts.map((i) => asWritten.hosts[i] as HostConfig);
    const switches = share.switches.map((i) => asWritten.switches[i] as SwitchConfig);
    const pairs = hosts.map(({ name }) => flowsAt(asWritten.flows, name));
    const portsOf = switchPorts(asWritten);
    this.completions = new Completions(asWritten, fabric, (flow) => share.has(completedAt(flow, asWritten)));
    const recorded = { ...asWritten, switches };
    this.recorder = new Recorder(recorded, {
      ports: switches.map(({ name }) => (portsOf.get(name) ?? []).map((port) => port.peer)),
      flows: asWritten.flows.filter((flow) => share.sees(flow)),
      flowAt: (device, index) => pairs[device]?.[index]?.flow.id,
      completed: (device, index, message) => {
        const pair = pairs[device]?.[index];
        // Acknowledgements still come when nobody sends any more.
        if (pair !== undefined && message.end <= endOf({ scenario: asWritten, ended: this.ended })) {
          this.completions.complete({ flow: pair.number, ...message });
          this.messageTimes.take(message.end - message.start, this.completions.hops(pair.number));
        }
      },
      scale: this.scale,
      begin,
      interval: wallTime(asWritten.probes.interval, this.scale),
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

  /** Waits until the scenario's duration is over, or somebody ends it. */
  async traffic(): Promise<void> {
    const { signal, residents } = this.options;
    const awaited = awaitsPrograms(this.asWritten);
    // Programs that are all the traffic there is tell by themselves when it is over, and message graphs wait for them.
    const done = () =>
      this.graphs === undefined
        ? this.asWritten.flows.length === 0 && (residents?.done() ?? false)
        : this.graphsDone() && (!awaited || (residents?.done() ?? false));
    while (this.now() < this.asWritten.duration && !signal.aborted && !done()) {
      await this.rates.wait(kWatchMs);
      this.rates.apply();
      this.check();
      this.look();
    }
    // Where this process got no CPU until the end, the changes are still to be made, and to be told of as late.
    this.rates.apply();
    this.unread = this.taken.lately / Math.max(1, this.taken.all);
    if (this.now() >= this.asWritten.duration) return;
    if (this.now() <= 0) throw signal.reason;
    if (this.graphs?.done && !signal.aborted) this.finished = Math.round(this.now());
    else this.ended = { at: Math.round(this.now()), ...(signal.aborted && { why: (signal.reason as Error).message }) };
    if (this.ended?.why !== undefined) this.options.part?.leave(this.ended.why);
    for (const { worker } of [this.nics, this.switches]) worker.stopTraffic();
  }

  /** Whether message graphs have ended, or stand still for so long that nothing can be under way. */
  private graphsDone(): boolean {
    const { graphs } = this;
    if (graphs === undefined) return false;
    const [ended, now] = [this.nics.worker.operationsEnded(), this.addon.monotonicNow()];
    if (ended !== this.progress.ended) this.progress = { ended, at: now };
    graphs.look({ operations_ended: ended, moves: now - this.progress.at < this.patience, flows_failed: 0 });
    return graphs.done;
  }

  /** Waits until every frame that was sent is accounted for, or time is up: then the rest is missing. */
  async drain(): Promise<void> {
    const { switches, links } = this.asWritten;
    // With PFC, several switches in a row may be full of frames for one link.
    const buffer = switches.reduce((sum, { buffer: { total } }) => sum + total, 0);
    const slowest = Math.min(...links.map((link) => link.rate)) / this.scale;
    const delays = links.reduce((sum, link) => sum + link.delay, 0) * this.scale;
    // A run that somebody ends does not wait for all of that.
    const pause = (kLongestPause * 1e9) / slowest;
    const patience = this.ended === undefined ? (buffer * 8e9) / slowest + delays + pause : 0;
    const limit = this.addon.monotonicNow() + kDrainMs * 1e6 + patience;
    let calm = 0;
    let before = { moved: -1, data: -1, since: 0 };
    const { part } = this.options;
    // Other parts may still send; a part that ends before its time does not wait for them, nor they for it.
    const done = () => calm >= kCalmLooks && (part === undefined || part.quiet || this.ended !== undefined);
    while (!done() && this.addon.monotonicNow() < limit) {
      await sleep(kDrainStepMs);
      this.check();
      this.look();
      const { counters } = this.nics;
      const { sent, missing } = frameAccount(this.asWritten, this.switches.counters, counters);
      // Frames that a NIC has yet to take have reached its host's interface already.
      const arrived = counters.sum("rx_packets") + this.switches.counters.sum("tx_packets");
      const moved = sent + arrived;
      const data = counters.sum("tx_packets") + arrived; // pauses go on where nothing else does
      calm = missing === 0 && moved === before.moved ? calm + 1 : 0;
      part?.calm(calm >= kCalmLooks);
      before = { moved, data, since: data === before.data ? before.since : this.addon.monotonicNow() };
    }
    // A pause that nobody renews would have ended, and frames would have moved.
    if (this.addon.monotonicNow() - before.since > pause + kDrainMs * 5e5) {
      const { switches: count } = new Share(this.asWritten);
      this.frozen = pausedFrames(this.switches.worker, count.length, this.switches.counters);
    }
  }

  /** Takes what the workers have recorded and counted. */
  look(): void {
    this.taken.lately = 0;
    for (const { worker, counters } of [this.switches, this.nics]) {
      for (;;) {
        const count = worker.drainRecords(this.words);
        this.recorder.take(this.words, count);
        this.taken.lately += count;
        if (count * kRecordWords < this.words.length) break;
      }
      counters.refresh();
    }
    this.taken.all += this.taken.lately;
    for (const observer of this.options.observers) observer.looked?.(this);
  }

  evidence(outcomes: RunEvidence["outcomes"]): RunEvidence {
    const { ended, finished } = this;
    const scenario = finished === undefined ? this.asWritten : { ...this.asWritten, duration: finished };
    const times = this.meantTimes();
    const residents = this.options.residents?.result(this, endOf({ scenario, ended }));
    return {
      scenario,
      scale: this.scale,
      recorder: this.recorder,
      completions: this.completions,
      messageTimes: this.messageTimes,
      switches: this.switches.counters,
      nics: this.nics.counters,
      outcomes,
      changes: this.rates.applied,
      parameterChanges: this.changed,
      ended,
      unread: this.unread,
      frozen: this.frozen,
      faults: this.faults.states(),
      ...(this.graphs && {
        graphs: this.graphs.results(times, new Fabric(scenario), this.addon),
        stuck: this.graphs.stuck,
      }),
      timeline: this.graphs?.timeline(times, false),
      ...(residents && { residents }),
      ...(this.options.part && { joints: this.options.part.reports(), run: this.options.part.run }),
    };
  }

  /** Times of message graphs' operations. */
  private meantTimes(): OperationTimes {
    if (this.graphs === undefined)
      return { started: new Float64Array(), ended: new Float64Array(), taken: new Uint32Array() };
    const { started, ended, taken } = this.nics.worker.operations();
    const meant = (at: number) => (at < 0 ? -1 : (at - this.begin) / this.scale);
    return { started: started.map(meant), ended: ended.map(meant), taken };
  }

  private check(): void {
    if (this.recorder.failed) {
      const failure = [this.switches, this.nics].map(({ worker }) => worker.outcome().failure);
      throw new WeirError(`a native worker failed: ${failure.filter(Boolean).join("; ")}`);
    }
    const failure = this.options.residents?.failure();
    if (failure !== undefined) throw new WeirError(failure);
  }
}
