/** One execution of a scenario on native workers: open, begin, watch, drain, stop. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { changeTimes } from "../config/changes.js";
import { WeirError } from "../config/error.js";
import { switchPorts } from "../config/topology.js";
import type { Scenario } from "../config/types.js";
import { CounterTable } from "../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, type WorkerConfig } from "../native/types.js";
import { queueThresholds } from "../report/run_files.js";
import { RateChanges } from "./changes.js";
import { composeLab, queuePairsOf } from "./compose.js";
import { frameAccount, type RunEvidence } from "./outcome.js";
import { Recorder } from "./recorder.js";
import type { LiveState } from "./types.js";
import type { LabEnd } from "./veth.js";

export interface ExecutionOptions {
  scale: number;
  end(link: number, node: string): LabEnd;
  capture(link: number, node: string): string | undefined;
  signal: AbortSignal;
  onState?: ((state: LiveState) => void) | undefined;
}

/** From the last worker's opening to the first packet, wall ns: both threads must be waiting by then. */
const kLeadNs = 100e6;
const kWatchMs = 50;
const kDrainStepMs = 20;
/** How long frames may take to leave after traffic has ended, wall ms, beyond emptying the largest buffer and crossing all links. */
const kDrainMs = 2000;
const kHistory = 60;

/** @throws WeirError when a worker cannot open its ports or fails; the signal's reason when aborted. */
export async function execute(addon: NativeAddon, scenario: Scenario, options: ExecutionOptions): Promise<RunEvidence> {
  const cpus = availableParallelism();
  const compose = (time: number) =>
    composeLab(scenario, {
      scale: options.scale,
      end: options.end,
      capture: options.capture,
      time,
      cpus: cpus >= 2 ? { switches: cpus - 1, nics: 0 } : { switches: -1, nics: -1 },
    });
  const configs = compose(0);
  const planned = changeTimes(scenario).map((at) => ({ at, config: compose(at)[0] as WorkerConfig }));
  const workers: NativeWorker[] = [];
  try {
    for (const config of configs) {
      const worker = new addon.Worker(config);
      workers.push(worker);
      openWorker(worker);
    }
    const [switches, nics] = workers as [NativeWorker, NativeWorker];
    const begin = addon.monotonicNow() + kLeadNs;
    for (const worker of workers) worker.begin(begin);
    const clock = { begin, scale: options.scale, now: () => addon.monotonicNow() };
    const changes = new RateChanges(switches, planned, clock);
    const sampleInterval = configs[0]?.sample_interval ?? 0;
    const watch = new Watch(addon, scenario, options, { switches, nics }, { begin, sampleInterval, changes });
    await watch.traffic();
    await watch.drain();
    for (const worker of workers) worker.stop();
    watch.look();
    return watch.evidence(workers.map((worker) => worker.outcome()));
  } finally {
    for (const worker of workers) worker.close();
  }
}

function openWorker(worker: NativeWorker): void {
  try {
    worker.open();
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    throw new WeirError(message, { cause: error, ...(hint !== undefined && { hint }) });
  }
}

class Watch {
  private readonly switches: CounterTable;
  private readonly nics: CounterTable;
  private readonly recorder: Recorder;
  private readonly words = new Float64Array(kRecordWords * 4096);
  private readonly history: number[] = [];
  private queueMax = 0;

  constructor(
    private readonly addon: NativeAddon,
    private readonly scenario: Scenario,
    private readonly options: ExecutionOptions,
    private readonly workers: { switches: NativeWorker; nics: NativeWorker },
    private readonly run: { begin: number; sampleInterval: number; changes: RateChanges },
  ) {
    this.switches = new CounterTable(workers.switches);
    this.nics = new CounterTable(workers.nics);
    const peers = [...switchPorts(scenario).values()].map((ports) => ports.map((port) => port.peer));
    const flows = scenario.hosts.map((host) => queuePairsOf(scenario, host.name).map(({ flow }) => flow.id));
    this.recorder = new Recorder(scenario, {
      ports: peers,
      flowAt: (device, index) => flows[device]?.[index],
      scale: options.scale,
      begin: run.begin,
      interval: run.sampleInterval,
    });
  }

  /** Until the scenario's duration is over. */
  async traffic(): Promise<void> {
    const { begin, changes } = this.run;
    const end = begin + this.scenario.duration * this.options.scale;
    while (this.addon.monotonicNow() < end) {
      await changes.wait(kWatchMs);
      changes.apply();
      this.check();
      this.look();
      this.options.onState?.(this.state());
    }
  }

  /** Until every frame that was sent is accounted for, or time is up: then the rest is missing. */
  async drain(): Promise<void> {
    // With PFC, switches may be full one behind the other, of frames for one link.
    const buffer = this.scenario.switches.reduce((sum, { buffer: { total } }) => sum + total, 0);
    const slowest = Math.min(...this.scenario.links.map((link) => link.rate)) / this.options.scale;
    const delays = this.scenario.links.reduce((sum, link) => sum + link.delay, 0) * this.options.scale;
    const limit = this.addon.monotonicNow() + kDrainMs * 1e6 + (buffer * 8e9) / slowest + delays;
    let calm = 0;
    let before = -1;
    while (calm < 3 && this.addon.monotonicNow() < limit) {
      await sleep(kDrainStepMs);
      this.check();
      this.look();
      const { sent, missing } = frameAccount(this.switches, this.nics);
      calm = missing === 0 && sent === before ? calm + 1 : 0;
      before = sent;
    }
  }

  /** Takes what the workers have recorded and counted. */
  look(): void {
    for (const worker of [this.workers.switches, this.workers.nics]) {
      for (;;) {
        const count = worker.drainRecords(this.words);
        this.recorder.take(this.words, count);
        if (count * kRecordWords < this.words.length) break;
      }
    }
    this.switches.refresh();
    this.nics.refresh();
  }

  evidence(outcomes: RunEvidence["outcomes"]): RunEvidence {
    const { scenario, recorder, switches, nics } = this;
    const changes = this.run.changes.applied;
    return { scenario, scale: this.options.scale, recorder, switches, nics, outcomes, changes };
  }

  private check(): void {
    this.options.signal.throwIfAborted();
    if (this.recorder.failed) {
      const failure = Object.values(this.workers).map((worker) => worker.outcome().failure);
      throw new WeirError(`a native worker failed: ${failure.filter(Boolean).join("; ")}`);
    }
  }

  private state(): LiveState {
    const { scenario, recorder, switches, nics } = this;
    const { algorithm } = scenario.congestion;
    const last = (list: readonly number[] | undefined) => list?.at(-1) ?? 0;
    let drops = 0;
    for (const { description, value } of switches.entries()) {
      if (description.name.startsWith("drop_")) drops += value;
    }
    return {
      elapsed_ns: Math.min(
        scenario.duration,
        Math.max(0, (this.addon.monotonicNow() - this.run.begin) / this.options.scale),
      ),
      duration_ns: scenario.duration,
      scale: this.options.scale,
      flows: scenario.flows.map(({ id }) => {
        const flow = recorder.flows.get(id);
        const alpha = algorithm === "qcn" ? null : last(flow?.alpha);
        return { id, rate_bps: last(flow?.rate), target_rate_bps: last(flow?.target), alpha };
      }),
      queue: this.fullestQueue(),
      congestion_control: algorithm,
      cnm_sent: switches.sum("cn_cp_transmitted_cnms"),
      cnm_handled: nics.sum("rp_cnm_handled"),
      ecn_marked: switches.sum("wred_ecn_marked_packets"),
      cnp_sent: nics.sum("np_cnp_sent"),
      cnp_handled: nics.sum("rp_cnp_handled"),
      pfc_sent: switches.sum("pfc_tx_packets"),
      drops,
      loop_gap_max_us: Math.max(this.workers.switches.worstGap(), this.workers.nics.worstGap()) / 1000,
    };
  }

  /** The probed queue that has been longest so far: the bottleneck. */
  private fullestQueue(): LiveState["queue"] {
    let name: string | undefined;
    let most = -1;
    for (const [key, queue] of this.recorder.queues) {
      const peak = queue.peak.reduce((max, x) => Math.max(max, x), 0);
      if (peak > most) [name, most] = [key, peak];
    }
    const queue = name === undefined ? undefined : this.recorder.queues.get(name);
    if (name === undefined || queue === undefined) return undefined;
    const bytes = queue.bytes.at(-1) ?? 0;
    this.history.push(bytes);
    if (this.history.length > kHistory) this.history.shift();
    this.queueMax = Math.max(this.queueMax, most);
    return {
      name,
      bytes,
      max_bytes: this.queueMax,
      history: this.history,
      ...queueThresholds(this.scenario, [name])[name],
    };
  }
}
