/** One switch on several workers, seen as one, on a native core that does as told. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import { composeSwitchWorkers } from "../../src/device/compose.js";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { kRecordWords, RecordKind, type WorkerOutcome } from "../../src/native/types.js";
import { DeviceWorkers } from "../../src/native/workers.js";
import { FakeAddon, type FakeWorker } from "./fake_addon.js";

const { config } = loadSwitchDaemon("sw0.yaml", {
  text: `workers: [{ cpu: 1 }, { cpu: 2, polling: adaptive }]
ports: [{ interface: a }, { interface: b, worker: 1 }, { interface: c }]`,
});
const kOwner = [0, 1, 0];

describe("a switch on two workers", () => {
  let addon: FakeAddon;
  let device: DeviceWorkers;
  let workers: [FakeWorker, FakeWorker];
  const doorbell = vi.fn();

  beforeEach(() => {
    doorbell.mockClear();
    addon = new FakeAddon();
    device = new DeviceWorkers(addon, composeSwitchWorkers(config, []), kOwner, doorbell);
    workers = addon.workers as typeof workers;
  });

  it("gives each its place, and a share of the one switch", () => {
    const given = workers.map(({ configs: [own] }) => own);
    expect(given).toMatchObject([
      { name: "sw0-0", cpu: 1, polling: "interrupt", share: 0 },
      { name: "sw0-1", cpu: 2, polling: "adaptive", share: 1 },
    ]);
    expect(given[0]?.shared).toBeInstanceOf(addon.SharedSwitch);
    expect(given[0]?.shared).toBe(given[1]?.shared);
  });

  it("takes the records of one after those of the other, no more than there is room for", () => {
    workers[0].port(0, false);
    workers[0].port(2, false);
    workers[1].port(1, false);
    workers[1].port(1, true);
    expect(doorbell).toHaveBeenCalledTimes(4);
    const target = new Float64Array(3 * kRecordWords);
    const drained = () => {
      const count = device.drainRecords(target.fill(-1));
      return Array.from({ length: count }, (_, i) => [...target.subarray(i * kRecordWords, (i + 1) * kRecordWords)]);
    };
    const record = (port: number, up: number) => [0, RecordKind.port, 0, port, up, 0, 0, 0];
    expect(drained()).toEqual([record(0, 0), record(2, 0), record(1, 0)]);
    expect(drained()).toEqual([record(1, 1)]);
    expect(drained()).toEqual([]);
  });

  it("has the counters of all, in the order of the manifest, once all live", () => {
    workers[1].starting = () => true;
    expect(device.manifest()).toBeUndefined();
    workers[1].starting = () => false;
    const each = workers[0].counters.length;
    expect(device.manifest()).toEqual(workers.flatMap(({ counters }) => counters.map(([description]) => description)));
    workers[0].count(0, 5);
    workers[1].count(each - 1, 7);
    const values = new Float64Array(2 * each);
    workers[0].publishedAt = 9e6;
    workers[1].publishedAt = 8e6;
    expect(device.readCounters(values), "the oldest").toBe(8e6);
    expect([...values]).toEqual([5, ...Array(2 * each - 2).fill(0), 7]);
  });

  it("asks a port's own worker for what is of that port", () => {
    workers[0].queued = 60;
    workers[1].queued = 200;
    const { buffer, ports } = device.switchState(0);
    expect(buffer.watermark).toBe(100);
    expect(ports.map(({ queue_bytes }) => queue_bytes[3])).toEqual([30, 100, 30]);
    const frame = Uint8Array.of(1, 2, 3);
    expect(device.inject(0, 1, frame)).toBe(true);
    expect(workers.map(({ injected }) => injected)).toEqual([[], [frame]]);
    workers[0].punt(Buffer.from("a"));
    workers[1].punt(Buffer.from("b"));
    expect(device.drainPunted().map(({ bytes }) => String(bytes))).toEqual(["a", "b"]);
  });

  it("knows each neighbor that any of them knows, once, with what waits for it anywhere", () => {
    const entry = { address: "10.0.0.2", interface: 0, port: 1, mac: 5, state: "reachable" as const, waits: 0 };
    const asked = { ...entry, port: 0, mac: 0, state: "incomplete" as const, waits: 3 };
    vi.spyOn(workers[0], "neighbors").mockReturnValue([asked, { ...entry, address: "10.0.0.3" }]);
    vi.spyOn(workers[1], "neighbors").mockReturnValue([
      { ...entry, waits: 1 },
      { ...asked, address: "10.0.0.3" },
    ]);
    expect(device.neighbors(0)).toEqual([
      { ...entry, waits: 4 },
      { ...entry, address: "10.0.0.3", waits: 3 },
    ]);
  });

  it("changes all of them at once, or none", () => {
    const [whole] = composeSwitchWorkers(config, []);
    if (whole === undefined) throw new Error("no worker");
    device.reconfigure(whole);
    expect(workers.map(({ calls }) => calls)).toEqual([["reconfigure"], ["reconfigure with another"]]);
    expect(workers.map(({ configs }) => configs.at(-1))).toEqual([whole, whole]);
  });

  it("ends all threads before it gives up what they share", () => {
    const order: string[] = [];
    for (const [i, worker] of workers.entries()) {
      for (const call of ["stop", "close"] as const)
        vi.spyOn(worker, call).mockImplementation(() => void order.push(`${call} ${i}`));
    }
    device.close();
    expect(order).toEqual(["stop 0", "stop 1", "close 0", "close 1"]);
  });

  it("tells how it went by the sum, the longest gap, what any could not do, and the first failure", () => {
    const [first, second] = workers.map((worker) => worker.outcome()) as [WorkerOutcome, WorkerOutcome];
    expect(device.outcome()).toEqual({ host_drops: 0, loop_gap: first.loop_gap, tuning: [] });
    const worst = { ...second.loop_gap, max: 9 };
    vi.spyOn(workers[0], "outcome").mockReturnValue({ ...first, host_drops: 2, tuning: ["x"] });
    vi.spyOn(workers[1], "outcome").mockReturnValue({
      ...second,
      host_drops: 3,
      loop_gap: worst,
      tuning: ["x", "y"],
      failure: "no memory",
    });
    expect(device.outcome()).toEqual({ host_drops: 5, loop_gap: worst, tuning: ["x", "y"], failure: "no memory" });
  });
});

describe("a device on one worker", () => {
  it("has a worker that shares nothing", () => {
    const addon = new FakeAddon();
    const [whole] = composeSwitchWorkers(config, []);
    if (whole === undefined) throw new Error("no worker");
    expect(new DeviceWorkers(addon, [whole], [0, 0, 0], () => {}).ofPort(2)).toBe(addon.worker);
    expect(addon.worker.configs[0]).not.toHaveProperty("shared");
    expect(() => new DeviceWorkers(addon, [], [], () => {})).toThrow(RangeError);
  });
});
