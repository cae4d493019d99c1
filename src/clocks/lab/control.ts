/**
 * The control socket of a lab: while it runs, its devices answer what daemons are asked, in meant units. One socket for all of
 * them, NAME.lab.sock, which no daemon can have: names have no dots.
 */
import { join } from "node:path";
import { WeirError } from "../../base/error.js";
import { controlSockets, kLabSuffix, probe } from "../../device/control_client.js";
import { type ControlRequest, ControlServer } from "../../device/control_server.js";
import type { Device } from "../../device/device.js";
import type { LabReport } from "../../device/protocol.js";
import { answerAmong } from "../../device/several.js";
import type { LabObserver } from "./access.js";
import { labDevices, type RunningDevices } from "./devices.js";

/** Labs of one name that run at a time: the others are called NAME-2, NAME-3, ... */
const kMostOfOneName = 100;

/** Facts about a lab that its devices do not tell. */
interface LabAbout {
  version: string;
  /** Address at which its metrics are served, too. */
  metrics: string | null;
  /** The lab stays, and has the name for itself: these requests it answers beside `lab`. */
  standing?: Readonly<Record<string, () => unknown>>;
}

export class LabControl implements LabObserver {
  private server: ControlServer | undefined;
  private running: { lab: RunningDevices; devices: ReadonlyMap<string, Device> } | undefined;

  /** @param name Without the suffix of its socket. */
  private constructor(
    readonly name: string,
    readonly path: string,
    private readonly about: LabAbout,
  ) {}

  /** @throws WeirError when there can be no socket in `directory`, or one that stays does not get its name. */
  static async open(name: string, directory: string, about: LabAbout): Promise<LabControl> {
    // Sockets of labs that were killed are removed, also those of other names.
    await controlSockets(directory);
    for (let number = 1; number <= kMostOfOneName; number++) {
      const own = number === 1 ? name : `${name}-${number}`;
      const path = join(directory, `${own}${kLabSuffix}`);
      if (await probe(path)) {
        if (about.standing === undefined) continue;
        throw new WeirError(`a lab called ${name} is running`, { hint: `weir lab down ${name}, or another --name` });
      }
      const control = new LabControl(own, path, about);
      control.server = await ControlServer.open(path, (request) => control.#answer(request));
      return control;
    }
    throw new WeirError(`${kMostOfOneName} labs called ${name} are running`);
  }

  begun(lab: RunningDevices): void {
    const { version, metrics } = this.about;
    const devices = labDevices(lab, { version, metrics, control: this.path });
    this.running = { lab, devices: new Map(devices.map((device) => [device.name, device])) };
  }

  /** Devices that answer, by their names. */
  get devices(): ReadonlyMap<string, Device> {
    return this.running?.devices ?? new Map();
  }

  /** Ends the captures of its devices. */
  ended(): void {
    for (const device of this.running?.devices.values() ?? []) device.close();
    this.running = undefined;
  }

  /** Removes the socket. Idempotent. */
  close(): void {
    this.server?.close();
  }

  #answer(asked: ControlRequest): unknown {
    const { running } = this;
    if (running === undefined || running.lab.switches.counters.manifest.length === 0) {
      throw new WeirError("the lab does not run yet, or no more");
    }
    const whole = { ...this.about.standing, lab: () => this.#report(running.lab) };
    return answerAmong(running.devices, asked, "the lab", whole);
  }

  #report(lab: RunningDevices): LabReport {
    const { scenario, scale } = lab;
    return {
      name: this.name,
      version: this.about.version,
      pid: process.pid,
      scale,
      elapsed_ns: Math.max(0, lab.now()),
      duration_ns: this.about.standing === undefined ? scenario.duration : null,
      devices: [...(this.running?.devices.values() ?? [])].map(({ name, kind }) => ({ name, kind })),
    };
  }
}
