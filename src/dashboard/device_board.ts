/** A daemon behind a dashboard: what its device is and does, and parameters that change until its file is read again. */

import type { Device } from "../daemon/device.js";
import type { DaemonConfig } from "../daemon/kinds.js";
import { DeviceFrames } from "./device_frames.js";
import { inspectDevicePort, inspectDeviceQueuePair } from "./device_inspect.js";
import { describeDevice } from "./device_session.js";
import type { Audience } from "./event_streams.js";
import type { Inspection, Parameter, Session } from "./protocol.js";
import type { DashboardSource, InspectRequest } from "./source.js";

export interface DeviceBoardOptions {
  version: string;
  device: Device;
  /** As it is now. */
  config(): DaemonConfig;
  parameters(): Parameter[];
  /** @throws WeirError for what cannot be had. */
  change(set: readonly string[]): void;
}

const kFrameMs = 50;
/** Queue pairs of a NIC from which on frames come five times a second: asking for all of them makes its thread stop for a while. */
const kMany = 512;
const kSlowFrameMs = 200;

export class DeviceBoard implements DashboardSource {
  private readonly started = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private frames: DeviceFrames | undefined;

  constructor(
    private readonly audience: Audience,
    private readonly options: DeviceBoardOptions,
  ) {}

  session(): Session {
    const { version } = this.options;
    const queues = this.frames?.queues ?? [];
    const described = describeDevice(this.options.config(), queues);
    return {
      version,
      ...described,
      scale: 1,
      duration_ns: null,
      parameters: this.options.parameters(),
      runs: [],
    };
  }

  change(set: readonly string[]): void {
    this.options.change(set);
    this.told();
  }

  /** The configuration is another one. */
  told(): void {
    if (this.audience.watched) this.audience.session(this.session());
  }

  inspect(what: InspectRequest): Inspection | undefined {
    const { device } = this.options;
    const config = this.options.config();
    return "port" in what
      ? inspectDevicePort(config, device, what.port)
      : inspectDeviceQueuePair(config, device, what.qp);
  }

  /** Frames are taken while somebody looks on. */
  watched(watched: boolean): void {
    clearInterval(this.timer);
    this.timer = this.frames = undefined;
    if (!watched) return;
    const config = this.options.config();
    this.frames = new DeviceFrames(config, this.options.device, () => performance.now() - this.started);
    const slow = config.kind === "nic" && config.queue_pairs.length > kMany;
    this.timer = setInterval(() => this.#frame(), slow ? kSlowFrameMs : kFrameMs).unref();
    this.told();
  }

  #frame(): void {
    const { frames, audience } = this;
    if (frames === undefined) return;
    const frame = frames.take();
    if (frames.grew()) audience.session(this.session());
    audience.frame(frame);
  }
}
