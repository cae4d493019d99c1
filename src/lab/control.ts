/**
 * The control socket of a lab: while it runs, its devices answer what daemons are asked, in meant units. One socket for all of
 * them, NAME.lab.sock, which no daemon can have: names have no dots.
 */
import { join } from "node:path";
import { WeirError } from "../base/error.js";
import { controlSockets, kLabSuffix, probe } from "../device/control_client.js";
import { type ControlRequest, ControlServer } from "../device/control_server.js";
import type { Device } from "../device/device.js";
import type { LabReport } from "../device/protocol.js";
import type { LabAccess, LabObserver } from "./access.js";
import { labDevices } from "./devices.js";

/** Labs of one name that run at a time: the others are called NAME-2, NAME-3, ... */
const kMostOfOneName = 100;

/** Where else a lab is served. */
interface LabAbout {
  version: string;
  metrics: string | null;
}

export class LabControl implements LabObserver {
  private server: ControlServer | undefined;
  private running: { lab: LabAccess; devices: ReadonlyMap<string, Device> } | undefined;

  /** @param name Without the suffix of its socket. */
  private constructor(
    readonly name: string,
    readonly path: string,
    private readonly about: LabAbout,
  ) {}

  /** @throws WeirError when there can be no socket in `directory`. */
  static async open(name: string, directory: string, about: LabAbout): Promise<LabControl> {
    // What labs left that were killed goes, also that of other names.
    await controlSockets(directory);
    for (let number = 1; number <= kMostOfOneName; number++) {
      const own = number === 1 ? name : `${name}-${number}`;
      const path = join(directory, `${own}${kLabSuffix}`);
      if (await probe(path)) continue;
      const control = new LabControl(own, path, about);
      control.server = await ControlServer.open(path, (request) => control.#answer(request));
      return control;
    }
    throw new WeirError(`${kMostOfOneName} labs called ${name} are running`);
  }

  begun(lab: LabAccess): void {
    const devices = labDevices(lab, { ...this.about, control: this.path });
    this.running = { lab, devices: new Map(devices.map((device) => [device.name, device])) };
  }

  /** Ends its captures. */
  ended(): void {
    for (const device of this.running?.devices.values() ?? []) device.close();
    this.running = undefined;
  }

  /** Removes the socket. Idempotent. */
  close(): void {
    this.server?.close();
  }

  #answer(asked: ControlRequest): unknown {
    const { device: name, ...own } = asked;
    const { running } = this;
    if (running === undefined || running.lab.switches.counters.manifest.length === 0) {
      throw new WeirError("the lab does not run yet, or no more");
    }
    const names = [...running.devices.keys()].join(", ");
    if (name === undefined) {
      if (own.request === "lab") return this.#report(running.lab);
      const hint = `add "device": ${names}`;
      throw new WeirError(`a lab has several devices, and ${own.request} is for one`, { hint });
    }
    const device = running.devices.get(String(name));
    if (device === undefined) throw new WeirError(`the lab has no device ${name}`, { hint: `it has ${names}` });
    return device.answer(own as ControlRequest);
  }

  #report(lab: LabAccess): LabReport {
    const { scenario, scale } = lab;
    return {
      name: this.name,
      version: this.about.version,
      pid: process.pid,
      scale,
      elapsed_ns: Math.max(0, lab.now()),
      duration_ns: scenario.duration,
      devices: [...(this.running?.devices.values() ?? [])].map(({ name, kind }) => ({ name, kind })),
    };
  }
}
