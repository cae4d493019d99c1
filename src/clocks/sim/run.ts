/** Runs a scenario in virtual time. */
import { availableParallelism } from "node:os";
import { isAbsolute, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { asWeirError } from "../../base/error.js";
import { routesOf } from "../../device/network.js";
import { loadAddon } from "../../native/addon.js";
import { distribution } from "../../native/histogram.js";
import {
  kFinishedWords,
  kMostThreads,
  type NativeSimulation,
  type SimulationAddon,
  type SimulationConfig,
} from "../../native/simulation_types.js";
import { kRecordWords } from "../../native/types.js";
import { Completions } from "../../result/completions.js";
import { fastForwardResult } from "../../result/fast_forward_result.js";
import { recalledResult } from "../../result/recalled_result.js";
import { Recorder } from "../../result/recorder.js";
import { changedAt, changeTimes } from "../../scenario/changes.js";
import { Fabric, type SwitchTable } from "../../scenario/fabric.js";
import { allOutages, linksAvoided, linksDown, networkEvents } from "../../scenario/failures.js";
import { type Outage, timesDown } from "../../scenario/faults.js";
import type { FileRequest } from "../../scenario/places.js";
import { awaitsPrograms } from "../../scenario/programs.js";
import type { Link, Scenario } from "../../scenario/types.js";
import { GraphWatch } from "../graph_watch.js";
import { checkForSimulation } from "./check.js";
import { composeSimulation, composeSwitch } from "./compose.js";
import type { SimConnections } from "./connections.js";
import { requireMemory } from "./footprint.js";
import { composeResult } from "./outcome.js";
import { SimPrograms } from "./programs.js";
import { ProgressMeter } from "./progress.js";
import { SimulationTables } from "./tables.js";
import { Taps } from "./taps.js";
import type { SimOptions, SimOutcome } from "./types.js";

/** Events between two looks at signals and samples: some 20 to 100 ms. */
const kSlice = 200_000;
/** The same where programs run: their frames have payload, which traces keep until then. Their turns end it after some time, too. */
const kSliceOfPrograms = 20_000;
const kDrained = 4096;
/** Where messages come from memory, nothing is sampled: queues do not see them. */
const kNoSamples = {
  sample_interval: 0,
  sampled_flows: new Uint32Array(0),
  sampled_queues: [],
  all_distributions: false,
};

/**
 * Runs until the scenario's duration, or `options.until`, or until aborted: then the outcome covers what has happened so far, and is
 * not valid. The result depends on scenario, seed and `until` alone, not on how many threads there are.
 * @throws WeirError for what the user can mend.
 */
export async function runSimulation(
  scenario: Scenario,
  options: SimOptions,
  addon = loadAddon<SimulationAddon>(),
): Promise<SimOutcome> {
  checkForSimulation(scenario);
  requireMemory(scenario, addon);
  const fabric = new Fabric(scenario);
  const taps = new Taps(scenario, fabric, tracesOf(options));
  const composed = composeSimulation(scenario, fabric, taps.places);
  const until = Math.min(scenario.duration, options.until ?? scenario.duration);
  const changes = changeTimes(scenario);
  const events = networkEvents(scenario).map(({ at }) => at);
  const due = stops([...changes, ...events], until);
  const { fastForward: bound, verify: share } = options;
  const config = {
    ...composed,
    ...threading(options.threads ?? 1),
    ...(bound !== undefined && {
      fast_forward: { bound, ...(share !== undefined && { share }), due: [...due, until] },
    }),
    ...(bound !== undefined && scenario.graphs.length > 0 && kNoSamples),
  };
  const operations = scenario.graphs.reduce((sum, { graph }) => sum + graph.kind.length, 0);
  const meter = new ProgressMeter(until, options.onProgress, operations);
  const programs = scenario.programs.length > 0 ? new SimPrograms(scenario, fabric, options.folder) : undefined;
  let simulation: NativeSimulation | undefined;
  try {
    simulation = asWeirError(() =>
      programs === undefined
        ? new addon.Simulation(config)
        : new addon.Simulation({ ...config, nics: programs.hosting(config.nics), threads: 1 }, programs.plan),
    );
    taps.open();
    const connections = programs?.connections(simulation, config.nics);
    const run = new Run(addon, scenario, fabric, taps, simulation, meter, programs, connections, bound);
    for (const time of stops([scenario.warmup, ...due], until)) {
      await run.to(time, options.signal);
      if (run.now < time || run.done) break;
      if (time === scenario.warmup) run.markWarm();
      if (changes.includes(time)) run.change(time);
      if (events.includes(time)) run.fail(time);
    }
    await run.to(until, options.signal);
    return run.outcome(until, options.timeline);
  } finally {
    taps.close();
    simulation?.close();
    programs?.close();
  }
}

function tracesOf({ trace = [], folder = "" }: SimOptions): FileRequest[] {
  return trace.map(({ target, file }) => ({ target, file: isAbsolute(file) ? file : join(folder, file) }));
}

function threading(threads: number | "auto"): Pick<SimulationConfig, "threads" | "fewer_threads"> {
  if (threads !== "auto") return { threads, fewer_threads: false };
  return { threads: Math.min(availableParallelism(), kMostThreads), fewer_threads: true };
}

/** Times that come before the end, or with it, in order. */
function stops(times: readonly number[], until: number): number[] {
  return [...new Set(times)].filter((time) => time <= until).sort((a, b) => a - b);
}

/** States of a scenario's faults, in its order: those of frames the simulation knows. */
function faultStates(scenario: Scenario, simulation: NativeSimulation, now: number) {
  const ofFrames = simulation.faults();
  return scenario.faults.map((fault) => {
    if (fault.kind !== "down") return ofFrames.shift();
    const hits = timesDown(fault, scenario.duration).filter(({ at }) => at <= now).length;
    return { matched: hits, hits };
  });
}

function sameLinks(a: ReadonlySet<Link>, b: ReadonlySet<Link>): boolean {
  return a.size === b.size && [...a].every((link) => b.has(link));
}

class Run {
  now = 0;
  /** When the last program ended, where nothing but message graphs was to happen besides. */
  #programsEnd: number | undefined;
  private readonly recorder: Recorder;
  private readonly completions: Completions;
  private readonly records = new Float64Array(kRecordWords * kDrained);
  private readonly finished = new Float64Array(kFinishedWords * kDrained);
  private warm: SimulationTables | undefined;
  private readonly outages: readonly Outage[];
  private down: ReadonlySet<Link> = new Set();
  private avoided: ReadonlySet<Link> = new Set();
  private tables: readonly SwitchTable[];
  private readonly graphs: GraphWatch | undefined;

  constructor(
    private readonly addon: SimulationAddon,
    private readonly scenario: Scenario,
    private readonly fabric: Fabric,
    private readonly taps: Taps,
    private readonly simulation: NativeSimulation,
    private readonly meter: ProgressMeter,
    private readonly programs: SimPrograms | undefined,
    private readonly connections: SimConnections | undefined,
    private readonly bound: number | undefined,
  ) {
    const flows = scenario.flows.slice(0, scenario.probes.flows);
    this.recorder = new Recorder(scenario, {
      ports: scenario.switches.map((_, i) => fabric.peers(i)),
      flowAt: (_, index) => flows[index]?.id,
      flows,
      scale: 1,
      begin: 0,
      interval: scenario.probes.interval,
    });
    this.completions = new Completions(scenario, fabric);
    this.graphs = scenario.graphs.length > 0 ? new GraphWatch(scenario.graphs) : undefined;
    this.tables = fabric.tables;
    this.outages = allOutages(scenario);
  }

  /** Whether message graphs have come to their end, or cannot, and programs that are waited for; or these, without other traffic. */
  get done(): boolean {
    const programs = this.#programsEnd !== undefined;
    return this.graphs === undefined ? programs : this.graphs.done && (programs || !awaitsPrograms(this.scenario));
  }

  /** Goes on until virtual time `until`, until message graphs and programs are done, or until aborted. */
  async to(until: number, signal: AbortSignal): Promise<void> {
    let stop = this.graphs?.nextLook(this.now, until) ?? until;
    while (!signal.aborted && !this.done) {
      const next = Math.min(stop, this.connections?.due ?? stop);
      const there = this.simulation.run(next, this.programs === undefined ? kSlice : kSliceOfPrograms);
      const reached = there && next === stop;
      this.drain();
      const progress = this.simulation.progress();
      this.now = there ? next : progress.now;
      await this.connections?.attend(this.now);
      this.meter.update(progress);
      this.#lookAtPrograms();
      if (reached) this.graphs?.look(progress);
      await turn();
      if (reached && stop === until) return;
      if (reached) stop = this.graphs?.nextLook(this.now, until) ?? until;
    }
  }

  /** Rates count from now on. */
  markWarm(): void {
    this.warm = this.counters();
  }

  /** Service rates become those of `time`. */
  change(time: number): void {
    const changed = changedAt(this.scenario, time);
    this.scenario.switches.forEach(({ name }, i) => {
      if (changed.has(name)) this.reconfigure(i, time);
    });
  }

  /** Links and routes become those of `time`. */
  fail(time: number): void {
    const { scenario, fabric, simulation } = this;
    const down = linksDown(this.outages, time);
    scenario.links.forEach((link, i) => {
      if (down.has(link) !== this.down.has(link)) simulation.setLink(i, !down.has(link));
    });
    this.down = down;
    const avoided = linksAvoided(scenario, time);
    if (sameLinks(avoided, this.avoided)) return;
    this.avoided = avoided;
    this.tables = fabric.tablesWithout(avoided);
    this.tables.forEach((table, i) => {
      const forwarding = scenario.switches[i]?.forwarding;
      if (forwarding === "routed") this.reconfigure(i, time);
      else simulation.reroute(i, routesOf(table, forwarding === "learning"));
    });
  }

  private reconfigure(index: number, time: number): void {
    const table = this.tables[index] as SwitchTable;
    this.simulation.reconfigureSwitch(index, composeSwitch(this.scenario, this.fabric, index, { time, table }));
  }

  outcome(limit: number, asked = false): SimOutcome {
    const { fabric, completions, warm, simulation } = this;
    const times = simulation.operations();
    const graphs = this.graphs?.results(times, fabric, this.addon);
    // What has ended lasted until its end, whatever the scenario allowed it.
    const stuck = this.graphs?.stuck === undefined ? undefined : this.now;
    const ends = [this.graphs?.endedAt ?? stuck, this.#programsEnd].filter((at) => at !== undefined);
    const ended = this.done ? Math.max(...ends) : undefined;
    const scenario = ended === undefined ? this.scenario : { ...this.scenario, duration: ended };
    const skipped = simulation.fastForward();
    const learned = simulation.learned();
    const [now, until] = ended === undefined ? [this.now, limit] : [ended, ended];
    const result = composeResult({
      scenario,
      fabric,
      completions,
      now,
      until,
      counters: this.counters(),
      warm,
      queues: simulation.queueDistributions().map(({ switch: index, port, priority, ...lengths }) => ({
        ...distribution(lengths),
        switch: index,
        port,
        priority,
      })),
      underWay: simulation.underWay(),
      recorder: this.recorder,
      faults: faultStates(scenario, simulation, now),
      packets: simulation.progress().packets,
      graphs,
      stuck: this.graphs?.stuck,
      fastForward: skipped && fastForwardResult(skipped, this.bound ?? 0, now),
      recalled: learned && recalledResult(learned, this.bound ?? 0),
    });
    if (this.programs !== undefined) result.programs = this.programs.results(simulation.programs());
    return {
      result,
      series: this.recorder.series(Math.min(now, scenario.duration)),
      flowTable: completions.table,
      timeline: this.graphs?.timeline(times, asked),
      performance: this.meter.performance(simulation.progress()),
      complete: now >= until,
    };
  }

  #lookAtPrograms(): void {
    if (this.programs === undefined || !awaitsPrograms(this.scenario)) return;
    if (this.scenario.flows.length > 0 && this.graphs === undefined) return;
    const states = this.simulation.programs();
    const { programs } = this.scenario;
    const done = states.every(
      ({ ended, failure }, i) => ended !== undefined || failure !== "" || programs[i]?.background === true,
    );
    // Those that computed and did nothing else took no time at all, of which there are no rates.
    if (done) this.#programsEnd = Math.max(...states.map(({ ended = 0 }) => ended)) || this.now;
  }

  private counters(): SimulationTables {
    const { scenario, fabric } = this;
    const ports = scenario.switches.map((_, i) => fabric.ports[i]?.length ?? 0);
    const counts = { nics: scenario.hosts.length, links: scenario.links.length };
    return new SimulationTables(this.addon.simulationManifest(), this.simulation.counters(), ports, counts);
  }

  private drain(): void {
    const { simulation, records, finished } = this;
    for (let count = kDrained; count === kDrained; ) {
      count = simulation.drainRecords(records);
      this.recorder.take(records, count);
    }
    for (let count = kDrained; count === kDrained; ) {
      count = simulation.drainFinished(finished);
      this.complete(finished, count);
    }
    this.taps.write(simulation.drainTrace());
  }

  private complete(words: Float64Array, count: number): void {
    for (let at = 0; at < count * kFinishedWords; at += kFinishedWords) {
      const [flow, message, bytes, start, end] = words.subarray(at, at + kFinishedWords) as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      this.completions.complete({ flow, message, bytes, start, end });
    }
  }
}
