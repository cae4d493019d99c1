/** The control socket of a lab: which of its devices answers what, in which units, and under which name it is found. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LabAccess } from "../../../src/clocks/lab/access.js";
import { LabControl } from "../../../src/clocks/lab/control.js";
import { ask } from "../../../src/device/control_client.js";
import { ControlServer } from "../../../src/device/control_server.js";
import { askDevice, findDevices } from "../../../src/device/running.js";
import { CounterTable } from "../../../src/native/counters.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { describedAs } from "../../native/counters.js";

const kScale = 40;
const zeros = [0, 0, 0, 0, 0, 0, 0, 0];

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-lab-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Time of counting by the wall clock, ns. */
const kCountedAt = 7e9;

type Count = [name: string, unit: string, labels: Record<string, string>, value: number];

function tableOf(counts: readonly Count[]): CounterTable {
  const table = new CounterTable({
    manifest: () => counts.map(([name, unit, labels]) => ({ ...describedAs(name, labels), unit })),
    readCounters: (target) => {
      counts.forEach(([, , , value], i) => {
        target[i] = value;
      });
      return kCountedAt;
    },
  });
  table.refresh();
  return table;
}

/** The small incast, 5 ms after its begin. */
function lab(): LabAccess {
  const { scenario } = loadScenario(join(import.meta.dirname, "../../../examples/incast-4to1.yaml"));
  const port = { up: true, queue_bytes: zeros, ingress_bytes: zeros, headroom_bytes: zeros, paused: 0, pausing: 0 };
  const state = {
    buffer: { total: 1, shared: 1, occupied: 0, watermark: 0, pfc_threshold: 1 },
    ports: scenario.links.map(() => port),
  };
  const pair = {
    name: "incast/h1",
    qpn: 17,
    remote_qpn: 17,
    state: "waiting",
    limited: true,
    rate: 1e9,
    target_rate: 2e9,
    alpha: 0.5,
    window: 0,
    stage: "fast_recovery",
    transport: "stream",
    priority: 3,
  };
  return {
    scenario,
    scale: kScale,
    switches: {
      worker: {
        switchState: () => state,
        forwardingTable: () => [{ mac: 1, vlan: 0, ports: [4], learned: true, expires_in: 4e11 }],
      },
      counters: tableOf([
        ["rx_packets", "packets", { switch: "sw", port: "h1" }, 7],
        ["pfc_rx_pause_duration", "ns", { switch: "sw", port: "h1", priority: "3" }, 4000],
      ]),
    },
    nics: {
      worker: { queuePairs: () => [pair] },
      counters: tableOf([
        ["tx_packets", "packets", { device: "h1" }, 100],
        ["rp_port_pri_centiseconds", "centiseconds", { device: "h1", priority: "3" }, 80],
      ]),
    },
    recorder: undefined,
    now: () => 5e6,
    change: () => {},
  } as unknown as LabAccess;
}

async function running(directory: string, name = "incast-4to1"): Promise<LabControl> {
  const control = await LabControl.open(name, directory, { version: "0.1.0", metrics: null });
  onTestFinished(() => control.close());
  control.begun(lab());
  return control;
}

describe("a lab's devices", () => {
  it("are told, with the scale", async () => {
    const { path } = await running(folder());
    expect(await ask(path, "lab")).toMatchObject({
      name: "incast-4to1",
      scale: kScale,
      elapsed_ns: 5e6,
      devices: [
        { name: "sw", kind: "switch" },
        { name: "h1", kind: "nic" },
        { name: "h2", kind: "nic" },
        { name: "h3", kind: "nic" },
        { name: "h4", kind: "nic" },
        { name: "r", kind: "nic" },
      ],
    });
    expect(await ask(path, "status", { device: "h1" })).toMatchObject({
      kind: "nic",
      name: "h1",
      scale: kScale,
      uptime_s: 0.005,
    });
  });

  it("answer in meant units", async () => {
    const { path } = await running(folder());
    const of = (device: string) => ({ device });
    const counters = await ask(path, "counters", of("sw"));
    expect(counters.at_ns).toBe(kCountedAt / kScale);
    expect(counters.counters.map(({ name, value }) => [name, value])).toEqual([
      ["rx_packets", 7],
      ["pfc_rx_pause_duration", 100],
    ]);
    const nic = await ask(path, "counters", of("h1"));
    expect(nic.counters.map(({ value }) => value)).toEqual([100, 2]);
    expect(await ask(path, "queue_pairs", of("h1"))).toMatchObject([
      { rate: 40e9, target_rate: 80e9, alpha: 0.5, peer: "r", priority: 3 },
    ]);
    expect(await ask(path, "fdb", of("sw"))).toMatchObject([{ ports: ["r"], expires_in_s: 10 }]);
    expect((await ask(path, "ports", of("h1")))[0]).toMatchObject({
      rate: 40e9,
      interface: "weir0",
      mac: "02:57:45:00:00:01",
    });
    expect((await ask(path, "ports", of("sw"))).map(({ name }) => name)).toEqual(["h1", "h2", "h3", "h4", "r"]);
    expect(await ask(path, "qos", of("h1"))).toMatchObject({ pfc_priorities: [3] });
  });

  it("are cleared one by one", async () => {
    const { path } = await running(folder());
    await ask(path, "clear", { device: "h1" });
    const values = async (device: string) =>
      (await ask(path, "counters", { device })).counters.map(({ value }) => value);
    expect(await values("h1")).toEqual([0, 0]);
    expect(await values("sw")).toEqual([7, 100]);
  });

  it("refuse what they do not have, and what is for none of them", async () => {
    const { path } = await running(folder());
    await expect(ask(path, "switch", { device: "h1" })).rejects.toThrow(
      "h1 is a NIC: it has no queues or buffer of a switch",
    );
    await expect(ask(path, "queue_pairs", { device: "sw" })).rejects.toThrow("sw is a switch: it has no queue pairs");
    await expect(ask(path, "counters")).rejects.toMatchObject({ hint: 'add "device": sw, h1, h2, h3, h4, r' });
    await expect(ask(path, "counters", { device: "h9" })).rejects.toThrow("the lab has no device h9");
    await expect(ask(path, "toString" as "status", { device: "h1" })).rejects.toThrow("unknown request toString");
    await expect(ask(path, "status", { device: "__proto__" })).rejects.toThrow("the lab has no device __proto__");
  });

  it("do not answer before the lab runs, nor after", async () => {
    const control = await LabControl.open("early", folder(), { version: "0.1.0", metrics: null });
    onTestFinished(() => control.close());
    await expect(ask(control.path, "lab")).rejects.toThrow("the lab does not run yet, or no more");
    control.begun(lab());
    await ask(control.path, "lab");
    control.ended();
    await expect(ask(control.path, "lab")).rejects.toThrow("the lab does not run yet, or no more");
  });
});

describe("names", () => {
  it("are a lab's, and a device's where it is one lab's alone; daemons of the same name are others", async () => {
    const directory = folder();
    await running(directory);
    const daemon = await ControlServer.open(join(directory, "incast-4to1.sock"), () => ({ kind: "nic" }));
    onTestFinished(() => daemon.close());
    const found = async (name?: string) => (await findDevices({ name }, () => directory)).map((device) => device.name);
    const own = ["sw", "h1", "h2", "h3", "h4", "r"].map((device) => `incast-4to1.${device}`);
    expect(await found()).toEqual(["incast-4to1", ...own]);
    expect(await found("incast-4to1")).toEqual(["incast-4to1"]);
    expect(await found("incast-4to1.h1")).toEqual(["incast-4to1.h1"]);
    expect(await found("r")).toEqual(["incast-4to1.r"]);
    daemon.close();
    expect(await found("incast-4to1")).toEqual(own);
  });

  it("of NICs of one daemon are theirs, and the daemon's means all of them", async () => {
    const directory = folder();
    mkdirSync(directory, { recursive: true });
    const devices = ["roce_0", "roce_1"];
    const daemon = await ControlServer.open(join(directory, "roce.sock"), ({ device }) => ({
      kind: "nic",
      name: "roce",
      devices,
      device,
    }));
    onTestFinished(() => daemon.close());
    const found = async (name?: string) => findDevices({ name }, () => directory);
    for (const name of [undefined, "roce"]) expect((await found(name)).map((one) => one.name)).toEqual(devices);
    const [second] = await found("roce_1");
    expect(second).toMatchObject({ name: "roce_1", kind: "nic", device: "roce_1", owner: "roce" });
    expect(second && (await askDevice(second, "status"))).toMatchObject({ device: "roce_1" });
    expect((await findDevices({ socket: daemon.path, name: "roce_0" })).map(({ device }) => device)).toEqual([
      "roce_0",
    ]);
  });

  it("of a second lab have a number, and then its devices need it", async () => {
    const directory = folder();
    await running(directory);
    const second = await running(directory);
    expect([second.name, second.path]).toEqual(["incast-4to1-2", join(directory, "incast-4to1-2.lab.sock")]);
    const choose = (name: string) => findDevices({ name }, () => directory);
    await expect(choose("h1")).rejects.toMatchObject({ hint: "name one: incast-4to1-2.h1, incast-4to1.h1" });
    const [device] = await choose("incast-4to1-2.h1");
    expect(device && (await askDevice(device, "status")).control).toBe(second.path);
  });

  it("that nothing has are refused with those that there are", async () => {
    const directory = folder();
    mkdirSync(directory, { recursive: true });
    await expect(findDevices({ name: "x" }, () => directory)).rejects.toMatchObject({
      message: "no daemon or lab called x is running",
      hint: `none is running in ${directory}`,
    });
    await expect(findDevices({}, () => directory)).rejects.toThrow("no daemon or lab is running");
  });
});
