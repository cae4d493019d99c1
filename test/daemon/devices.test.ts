/** Several NICs of one daemon: what they do together, on a native core that does as told. */
import { describe, expect, it, onTestFinished } from "vitest";
import { DaemonDevices } from "../../src/daemon/devices.js";
import { fixedChanges } from "../../src/daemon/kinds.js";
import { createLog } from "../../src/daemon/log.js";
import { loadNicDaemon } from "../../src/device/file/load.js";
import type { NicDaemonConfig } from "../../src/device/file/types.js";
import { lacking } from "../needs.js";
import { skipWhere } from "../obstacles.js";
import { FakeAddon } from "./fake_addon.js";

// Addresses of their interface are looked up in the kernel.
skipWhere(lacking("iproute2"));

const nic = (name: string, more = ""): NicDaemonConfig =>
  loadNicDaemon("nic.yaml", { text: `name: ${name}\ninterface: lo\naddress: 10.99.0.${name.length}\n${more}` }).config;

async function started(configs: readonly [NicDaemonConfig, ...NicDaemonConfig[]]) {
  const addon = new FakeAddon();
  const status = { uptime_s: 1, control: "/run/weir/roce.sock", metrics: null, dashboard: null };
  const host = { version: "1.2.3", status: () => status };
  const failures: string[] = [];
  const log: string[] = [];
  const devices = new DaemonDevices(
    addon,
    "roce",
    configs,
    createLog("roce", { write: (line) => void log.push(line) }),
    host,
    (reason) => failures.push(reason),
  );
  onTestFinished(() => devices.close());
  devices.open();
  await devices.begin();
  return { addon, devices, failures, log };
}

describe("NICs of one daemon", () => {
  it("have a worker each, and answer by their names", async () => {
    const { addon, devices, log } = await started([nic("a"), nic("bb")]);
    expect(addon.workers.map(({ calls }) => calls)).toEqual([
      ["open", "begin"],
      ["open", "begin"],
    ]);
    expect(devices.answer({ request: "status" })).toMatchObject({ kind: "nic", name: "roce", devices: ["a", "bb"] });
    expect(devices.answer({ request: "status", device: "bb" })).toMatchObject({ name: "bb" });
    expect(() => devices.answer({ request: "ports" })).toThrow("roce has several devices, and ports is for one");
    expect(() => devices.answer({ request: "ports", device: "c" })).toThrow("roce has no device c");
    expect(log.map((line) => (JSON.parse(line) as { device: string }).device)).toEqual(["a", "bb"]);
  });

  it("answer without a name where there is one, which has no others", async () => {
    const { devices } = await started([nic("a")]);
    expect(devices.answer({ request: "status" })).not.toHaveProperty("devices");
    expect(devices.answer({ request: "ports" })).toMatchObject([{ interface: "lo" }]);
  });

  it("take another file together, or none does", async () => {
    const { addon, devices } = await started([nic("a"), nic("bb")]);
    const [first, second] = addon.workers as [(typeof addon.workers)[0], (typeof addon.workers)[0]];
    const strict = () => [first, second].map(({ configs }) => configs.at(-1)?.nics[0]?.scheduler.strict);
    const before = strict();
    const changed = [nic("a", "scheduler: { strict: [5] }"), nic("bb", "scheduler: { strict: [4] }")] as const;
    const reconfigure = second.reconfigure;
    second.reconfigure = () => {
      throw new Error("cannot be had");
    };
    expect(() => devices.reconfigure(changed)).toThrow("cannot be had");
    expect(strict()).toEqual(before);
    expect(first.calls.filter((call) => call === "reconfigure")).toHaveLength(2);
    second.reconfigure = reconfigure;
    devices.reconfigure(changed);
    expect(strict()).toEqual([1 << 5, 1 << 4]);
    expect(devices.configs).toEqual(changed);
  });

  it("are as well as the worst of them, and one that fails fails all", async () => {
    const { addon, devices, failures } = await started([nic("a"), nic("bb")]);
    const [first, second] = addon.workers;
    for (const worker of addon.workers) worker.publishedAt = addon.now;
    devices.answer({ request: "ports", device: "a" });
    devices.answer({ request: "ports", device: "bb" });
    expect(devices.health()).toMatchObject({ status: "ok", name: "roce" });
    second?.stall(0, true, false);
    expect(devices.health()).toMatchObject({ status: "degraded", reasons: [{ port: "bb:lo" }] });
    first?.port(0, false);
    expect(devices.health().down).toEqual(["a:lo"]);
    first?.fail("gone");
    expect(failures).toEqual(["gone"]);
    expect(devices.health().status).toBe("failed");
  });

  it("cannot become more or fewer", () => {
    const [one, two] = [nic("a"), nic("bb")];
    expect(fixedChanges([one], [one, two])).toEqual(["ports"]);
    expect(fixedChanges([one, two], [one, { ...two, vlan: 5 }])).toEqual(["vlan"]);
    expect(fixedChanges([one, two], [one, nic("bb", "scheduler: { strict: [4] }")])).toEqual([]);
  });
});
