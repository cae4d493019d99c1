/** Reads all devices that are to be shown, again and again. */
import { askDevice, type ControlledDevice } from "../../device/running.js";
import { type Reading, type Sample, sampleOf } from "./sample.js";

export class Poll {
  private before = new Map<string, Reading>();

  /** @param find The devices that run now; none is no error. */
  constructor(private readonly find: () => Promise<ControlledDevice[]>) {}

  async next(): Promise<Sample> {
    const devices = await this.find();
    const readings = (await Promise.all(devices.map(read))).filter((reading) => reading !== undefined);
    const sample = sampleOf(readings, this.before, new Date());
    this.before = new Map(readings.map((reading) => [reading.device.name, reading]));
    return sample;
  }
}

/** Returns undefined when the device does not answer yet, or no more. */
async function read(device: ControlledDevice): Promise<Reading | undefined> {
  try {
    const [status, counters, ports] = await Promise.all([
      askDevice(device, "status"),
      askDevice(device, "counters"),
      askDevice(device, "ports"),
    ]);
    const known = { device: { ...device, kind: status.kind }, scale: status.scale, counters, ports };
    if (status.kind === "nic") {
      return { ...known, queueBytes: undefined, pairs: await askDevice(device, "queue_pairs") };
    }
    const state = await askDevice(device, "switch");
    const queueBytes = state.ports.map(({ queue_bytes }) => queue_bytes.reduce((sum, bytes) => sum + bytes, 0));
    return { ...known, queueBytes, pairs: [] };
  } catch {
    return undefined;
  }
}
