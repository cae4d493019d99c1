/** A daemon behind a dashboard: state and work of its device, and parameters that change until its file is read again. */

import { readScenarioText } from "../../base/yaml.js";
import type { ServedDevice } from "../../daemon/devices.js";
import type { ServedDaemon } from "../../daemon/run.js";
import { Frames } from "../../device/frames.js";
import { DaemonNetwork } from "./daemon_network.js";
import { inspectDevicePort, inspectDeviceQueuePair } from "./device_inspect.js";
import { describeDevice } from "./device_session.js";
import type { Audience } from "./event_streams.js";
import { admitAssignments, listParameters } from "./parameters.js";
import type { Inspection, Parameter, Session, TimedChange } from "./protocol.js";
import type { DashboardSource, InspectRequest } from "./source.js";

/** A daemon, as far as its dashboard needs it. */
export type WatchedDaemon = Pick<ServedDaemon, "version" | "file" | "change"> & Pick<ServedDevice, "device" | "config">;

const kFrameMs = 50;
/** Queue pairs of a NIC from which on frames come five times a second: asking for all of them makes its thread stop for a while. */
const kMany = 512;
const kSlowFrameMs = 200;
/** While nobody looks on, frames are for the history, at about a tenth of what a page costs. */
const kUnwatchedFrameMs = 1000;
/** Most changes that are told of. */
const kMostChanges = 100;

export class DeviceBoard implements DashboardSource {
  private readonly started = { at: performance.now(), date: new Date().toISOString() };
  private readonly network: DaemonNetwork;
  private readonly frames: Frames;
  private readonly changes: TimedChange[] = [];
  private values: ReadonlyMap<string, string>;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** Expects the device to run. */
  constructor(
    private readonly audience: Audience,
    private readonly options: WatchedDaemon,
  ) {
    this.network = new DaemonNetwork(options.config(), options.device, () => this.#now());
    this.frames = new Frames(this.network);
    this.values = this.#values();
  }

  session(): Session {
    const { version } = this.options;
    return {
      version,
      started: this.started.date,
      ...describeDevice(this.options.config(), this.network.names),
      scale: 1,
      duration_ns: null,
      parameters: this.#parameters(),
      runs: [],
      changes: this.changes,
    };
  }

  /** @throws WeirError for what a page may not change */
  change(set: readonly string[]): void {
    admitAssignments(set, this.#parameters());
    this.options.change(set);
    this.#changed([...set]);
  }

  /** Takes note of what has happened; without that, that the file was read again. */
  told(what: readonly string[] = this.#news()): void {
    this.#changed([...what]);
  }

  inspect(what: InspectRequest): Inspection | undefined {
    const { device } = this.options;
    const config = this.options.config();
    return "port" in what
      ? inspectDevicePort(config, device, what.port)
      : inspectDeviceQueuePair(config, device, what.qp);
  }

  /** Takes frames from now on; how often depends on whether somebody looks on. */
  watched(watched: boolean): void {
    clearInterval(this.timer);
    if (this.closed) return;
    const config = this.options.config();
    const slow = config.kind === "nic" && config.queue_pairs.length > kMany;
    const every = !watched ? kUnwatchedFrameMs : slow ? kSlowFrameMs : kFrameMs;
    this.timer = setInterval(() => this.#frame(), every).unref();
  }

  /** Ends the frames. Idempotent. */
  close(): void {
    this.closed = true;
    clearInterval(this.timer);
  }

  #frame(): void {
    const { network, frames, audience } = this;
    const frame = frames.take();
    if (network.grew() && audience.watched) audience.session(this.session());
    audience.frame(frame);
  }

  /** Parameters that are others than at the last change. */
  #news(): string[] {
    const { values } = this;
    return [...this.#values()]
      .filter(([path, value]) => values.get(path) !== value)
      .map(([path, value]) => `${path}=${value}`);
  }

  #changed(set: string[]): void {
    if (set.length > 0) this.changes.push({ t_ns: Math.round(this.#now() * 1e6), set });
    if (this.changes.length > kMostChanges) this.changes.shift();
    this.values = this.#values();
    if (this.audience.watched) this.audience.session(this.session());
  }

  /** Parameters of its file that can be changed. */
  #parameters(): Parameter[] {
    const config = this.options.config();
    const { text, path, set, kind } = this.options.file();
    const { data } = readScenarioText(text, path, set, kind);
    if (config.kind === "nic") {
      const { congestion } = config;
      return listParameters({ data, switchAt: undefined, buffer: undefined, congestion, qcn: false });
    }
    const { buffer, qcn } = config.switch;
    return listParameters({ data, switchAt: [], buffer, congestion: undefined, qcn: qcn.enabled });
  }

  #values(): ReadonlyMap<string, string> {
    return new Map(this.#parameters().map(({ path, value }) => [path, value]));
  }

  /** Time since it began, ms. */
  #now(): number {
    return performance.now() - this.started.at;
  }
}
