/** A lab behind a dashboard: its runs one after the other, parameters that change meanwhile, and frames of what goes on. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WeirError } from "../../base/error.js";
import type { LabAccess, LabObserver } from "../../clocks/lab/access.js";
import { Frames } from "../../device/frames.js";
import { type NetworkEvent, networkEvents } from "../../scenario/failures.js";
import type { Scenario } from "../../scenario/types.js";
import type { Audience } from "./event_streams.js";
import { inspectLabPort, inspectLabQueuePair } from "./lab_inspect.js";
import { LabNetwork } from "./lab_network.js";
import type { LabScenario } from "./lab_scenario.js";
import { describeQueues, flowsOf, queueNames, topologyOf } from "./lab_session.js";
import type { Inspection, RunDescription, RunRequest, Session } from "./protocol.js";
import type { DashboardSource, InspectRequest } from "./source.js";

/** A run that is to be made. */
export interface RunOrder {
  id: number;
  scenario: Scenario;
  /** Values that differ from the scenario file. */
  set: readonly string[];
  signal: AbortSignal;
  observer: LabObserver;
}

/** Outcome of a run that left results: complete, or stopped while traffic flowed. */
export interface RunEnd {
  folder: string;
  valid: boolean;
}

export interface LabBoardOptions {
  version: string;
  /** Makes the run and writes its files; rejects when aborted before there is anything to write. */
  execute(order: RunOrder): Promise<RunEnd>;
  /** Warns of changed parameters that are questionable. */
  warn(text: string): void;
}

/** Most failures and faults that are told of, as they are of a daemon's changes. */
const kMostEvents = 100;
/** Least time between frames, wall ms. */
const kFrameMs = 45;

interface CurrentRun {
  description: RunDescription;
  abort: AbortController;
  /** Changes that came before traffic could begin. */
  early: string[];
  lab: LabAccess | undefined;
  frames: Frames | undefined;
  /** Failures and faults of the scenario that are still to come, in order of time. */
  ahead: NetworkEvent[];
  settled: Promise<void>;
}

export class LabBoard implements DashboardSource {
  private readonly runs: RunDescription[] = [];
  private readonly queues: readonly string[];
  private current: CurrentRun | undefined;
  /** Scale of the first run: all runs have it, so that they compare. */
  private scale: number | undefined;
  private lastFrame = 0;
  private readonly started = new Date().toISOString();

  constructor(
    private settings: LabScenario,
    private readonly audience: Audience,
    private readonly options: LabBoardOptions,
  ) {
    const { scenario } = settings;
    this.scale = scenario.scale === "auto" ? undefined : scenario.scale;
    this.queues = queueNames(scenario);
  }

  session(): Session {
    const { scenario } = this.settings;
    return {
      version: this.options.version,
      kind: "lab",
      started: this.started,
      name: scenario.name,
      scale: this.scale ?? 1,
      duration_ns: scenario.duration,
      congestion_control: scenario.congestion.algorithm,
      topology: topologyOf(scenario),
      flows: flowsOf(scenario),
      queues: describeQueues(scenario, this.queues),
      parameters: this.settings.parameters,
      runs: this.runs,
      changes: [],
    };
  }

  change(set: readonly string[]): void {
    const settings = this.settings.with(set);
    const { current } = this;
    if (current?.lab !== undefined) this.#changeNow(current, current.lab, settings.scenario, set);
    else current?.early.push(...set);
    this.settings = settings;
    for (const warning of settings.warnings) this.options.warn(warning);
    this.#told();
  }

  run(action: RunRequest["action"]): void {
    if (action === "start") this.start();
    else if (this.current === undefined) throw new WeirError("no run is under way", { hint: "start one" });
    else this.current.abort.abort(new Error("stopped from the dashboard"));
  }

  /** Begins a run with the parameters as they are. @throws WeirError while another one is under way. */
  start(): void {
    if (this.current !== undefined) throw new WeirError("a run is under way", { hint: "stop it first" });
    const description: RunDescription = {
      id: this.runs.length + 1,
      state: "running",
      set: [...this.settings.set],
      changes: [],
      valid: null,
      error: null,
      folder: null,
    };
    const abort = new AbortController();
    const current: CurrentRun = {
      description,
      abort,
      early: [],
      lab: undefined,
      frames: undefined,
      ahead: [],
      settled: Promise.resolve(),
    };
    this.runs.push(description);
    this.current = current;
    current.settled = this.#execute(current);
    this.#told();
  }

  /** Waits until the run that is under way has ended, stopped by `reason` where there is one. It never rejects. */
  async settled(reason?: Error): Promise<RunDescription | undefined> {
    if (reason !== undefined) this.current?.abort.abort(reason);
    await this.current?.settled;
    return this.runs.at(-1);
  }

  async result(id: number): Promise<string | undefined> {
    const folder = this.runs.find((run) => run.id === id)?.folder;
    if (typeof folder !== "string") return undefined;
    try {
      const [result, series] = await Promise.all(
        ["result.json", "series.json"].map((name) => readFile(join(folder, name), "utf8")),
      );
      return JSON.stringify({ ...JSON.parse(result as string), series: JSON.parse(series as string) });
    } catch (error) {
      throw new WeirError(`the result of run ${id} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  inspect(what: InspectRequest): Inspection | undefined {
    const lab = this.current?.lab;
    if (lab === undefined || !lives(lab)) return undefined;
    return "port" in what ? inspectLabPort(lab, what.port) : inspectLabQueuePair(lab, what.qp);
  }

  async #execute(current: CurrentRun): Promise<void> {
    const { description, abort } = current;
    const { scenario, set } = this.settings;
    try {
      const { folder, valid } = await this.options.execute({
        id: description.id,
        scenario: { ...scenario, scale: this.scale ?? scenario.scale },
        set,
        signal: abort.signal,
        observer: this.#observer(current),
      });
      const ended: Partial<RunDescription> = abort.signal.aborted
        ? { state: "stopped", folder }
        : { state: "complete", folder, valid };
      Object.assign(description, ended);
    } catch (error) {
      description.state = abort.signal.aborted ? "stopped" : "failed";
      if (!abort.signal.aborted) description.error = (error as Error).message;
    }
    this.current = undefined;
    this.#told();
  }

  #observer(current: CurrentRun): LabObserver {
    return {
      begun: (lab) => {
        current.lab = lab;
        this.scale = lab.scale;
        current.ahead = networkEvents(this.settings.scenario).slice(0, kMostEvents);
        if (current.early.length > 0) this.#changeNow(current, lab, this.settings.scenario, current.early);
        this.#frame(current, lab);
        this.#told();
      },
      looked: (lab) => {
        this.#happened(current, lab.now());
        if (performance.now() - this.lastFrame >= kFrameMs) this.#frame(current, lab);
      },
      ended: () => {
        if (current.lab !== undefined) this.#frame(current, current.lab);
        current.lab = current.frames = undefined;
      },
    };
  }

  /** Tells of what the scenario has happen to the network. */
  #happened({ ahead, description }: CurrentRun, now: number): void {
    const count = ahead.findIndex(({ at }) => at > now);
    const due = ahead.splice(0, count < 0 ? ahead.length : count);
    if (due.length === 0) return;
    description.changes.push(...due.map(({ at, what }) => ({ t_ns: Math.round(at), set: [what] })));
    this.#told();
  }

  /** Changes the run under way; once its traffic is over, changes are for the next run. */
  #changeNow(current: CurrentRun, lab: LabAccess, scenario: Scenario, set: readonly string[]): void {
    if (lab.now() >= scenario.duration) return;
    lab.change(scenario, set);
    current.description.changes.push({ t_ns: Math.max(0, Math.round(lab.now())), set: [...set] });
  }

  /** Takes frames also while nobody looks on: somebody will want to have seen a lab with a dashboard from its beginning. */
  #frame(current: CurrentRun, lab: LabAccess): void {
    if (current.frames !== undefined) {
      this.lastFrame = performance.now();
      this.audience.frame(current.frames.take());
    } else if (lives(lab)) {
      current.frames = new Frames(new LabNetwork(lab, current.description.id, this.queues));
    }
  }

  #told(): void {
    if (this.audience.watched) this.audience.session(this.session());
  }
}

/** Tells whether its devices count. */
function lives({ switches, nics }: LabAccess): boolean {
  return switches.counters.manifest.length > 0 && nics.counters.manifest.length > 0;
}
