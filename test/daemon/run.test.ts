/** A daemon from start to end, on a native core that does as told. */
import { once } from "node:events";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { RecordKind } from "../../src/native/types.js";
import { freePort } from "../live/daemons.js";
import { lacking } from "../needs.js";
import { skipWhere } from "../obstacles.js";
import { eventually } from "../patience.js";
import { FakeAddon } from "./fake_addon.js";
import { kVersion, nicFile, start, switchFile } from "./started.js";

// Their interface is looked up in the kernel.
skipWhere(lacking("iproute2"));

describe("a daemon", () => {
  it("that cannot listen for metrics or its dashboard has not begun to work, and says what to do", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    for (const section of ["metrics", "dashboard"]) {
      const text = (folder: string) =>
        nicFile(folder).replace("metrics: false\n", section === "metrics" ? "" : "metrics: false\n");
      const { addon, ended } = await start("nic", (folder) => `${text(folder)}${section}: { port: ${port} }\n`);
      await expect(ended).rejects.toThrow(`${section}: cannot listen at 127.0.0.1:${port}`);
      expect(addon.worker.calls).toContain("open");
      expect(addon.worker.calls).not.toContain("begin");
      expect(addon.worker.calls).toContain("close");
    }
  });

  it("tells who asks too early that it is starting", async () => {
    const port = await freePort();
    const where = `http://127.0.0.1:${port}`;
    let fake = new FakeAddon();
    const starting = start(
      "switch",
      (folder) => switchFile(folder, "dashboard: false\n").replace("metrics: false", `metrics: { port: ${port} }`),
      (addon) => {
        fake = addon;
        addon.slow = true;
        addon.prepare = (worker) => {
          worker.publishedAt = addon.now;
        };
      },
    );
    const early = await eventually(() => fetch(`${where}/healthz`));
    expect([early.status, await early.json()]).toEqual([503, { status: "starting", name: "sw0" }]);
    expect(await (await fetch(`${where}/metrics`)).text()).toBe("the daemon is starting\n");
    fake.slow = false;
    const { log } = await starting;
    expect(log.at(-1)).toMatchObject({ msg: "started" });
    expect((await fetch(`${where}/healthz`)).status).toBe(200);
  });

  it("starts, says so to its service manager, and stops on SIGTERM once its queues are empty", async () => {
    const { addon, signals, messages, socket, ended } = await start("switch", switchFile);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(addon.notified).toEqual([`READY=1\nMAINPID=${process.pid}`]);
    addon.worker.queued = 40_000;
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);
    expect(addon.notified.at(-1)).toBe("STOPPING=1");
    expect(addon.worker.queued).toBe(0);
    const { calls } = addon.worker;
    expect(calls.filter((call) => call !== "switchState")).toEqual(["open", "begin", "stopTraffic", "stop", "close"]);
    expect(calls.indexOf("stopTraffic")).toBeLessThan(calls.lastIndexOf("switchState"));
    expect(messages()).toEqual(["backend chosen", "started", "stopping", "stopped"]);
    expect(existsSync(socket)).toBe(false);
    expect(signals.eventNames()).toEqual([]);
  });

  it("gives up what it needs no more once it is ready to, and goes on where it cannot", async () => {
    const { addon, signals, log, ended } = await start("switch", switchFile);
    // A shaped veth, which sends by AF_XDP, is opened again when it comes back.
    expect(addon.limitCapabilities.mock.calls).toEqual([[[13, 14]]]);
    expect(log.at(-1)).toMatchObject({ msg: "started", capabilities: "CAP_NET_RAW CAP_IPC_LOCK" });
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);

    const other = await start("switch", switchFile, (refusing) => {
      refusing.limitCapabilities.mockImplementation(() => {
        throw new Error("cannot limit capabilities: ETIMEDOUT");
      });
    });
    const message = "capabilities that are needed no more could not be given up";
    expect(other.log.find(({ msg }) => msg === message)?.level).toBe("warn");
    expect(other.log.at(-1)).toMatchObject({ msg: "started", capabilities: "all" });
    other.signals.emit("SIGTERM", "SIGTERM");
    expect(await other.ended).toBe(0);
  });

  it("does not wait for queues for ever: a second signal ends it", async () => {
    const { addon, signals, messages, ended } = await start("nic", nicFile);
    signals.emit("SIGINT", "SIGINT");
    await eventually(() => expect(messages()).toContain("stopping"));
    signals.emit("SIGINT", "SIGINT");
    expect(await ended).toBe(0);
    expect(addon.worker.calls.at(-1)).toBe("close");
    // The loop that waits for the queues to be empty finds out that they are gone.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(messages().slice(-2)).toEqual(["stopping", "stopping at once"]);
  });

  it("waits two seconds at most for traffic that does not end", async () => {
    const { addon, signals, ended } = await start("nic", nicFile);
    signals.emit("SIGTERM", "SIGTERM");
    expect(addon.worker.calls).not.toContain("close");
    addon.now += 2e9;
    expect(await ended).toBe(0);
  });

  it("reads its file again on SIGHUP", async () => {
    const { folder, file, addon, signals, messages, socket, ended } = await start("switch", switchFile);
    writeFileSync(file, switchFile(folder, "ecn: { kmin: 50KB }"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(addon.worker.configs.map(({ switches }) => switches[0]?.red.kmin)).toEqual([5000, 50_000]);
    expect(messages()).toEqual(["backend chosen", "started", "reloaded"]);
    expect(addon.notified.slice(1)).toEqual(["RELOADING=1\nMONOTONIC_USEC=5000000", "READY=1"]);
    expect(await ask(socket, "switch")).toMatchObject({ ecn: { kmin: 50_000 } });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it.each([
    [
      "a bad file",
      "ecn: { kmin: 300KB }",
      "ecn.kmin: 300 KB is greater than kmax 200 KB",
      "kmin must be between 0 and kmax",
    ],
    ["other ports", "", "ports cannot change while the daemon runs", "restart it"],
    ["another backend", "", "receive of port a, transmit of port a cannot change while the daemon runs", "restart it"],
    ["another metrics port", "", "metrics cannot change while the daemon runs", "restart it"],
  ])("keeps its configuration when it finds %s, and says why", async (what, more, message, hint) => {
    const { folder, file, addon, signals, log, ended } = await start("switch", switchFile);
    let text = switchFile(folder, more);
    if (what === "other ports") text = text.replace("name: a,", "name: b,");
    if (what === "another backend") text = text.replace("name: a,", "name: a, backend: live,");
    if (what === "another metrics port") text = text.replace("metrics: false", "metrics: { port: 9999 }");
    writeFileSync(file, text);
    signals.emit("SIGHUP", "SIGHUP");
    expect(addon.worker.calls).not.toContain("reconfigure");
    const line = log.at(-1);
    expect(line).toMatchObject({ level: "error", msg: "not reloaded, the old configuration stays", hint });
    expect(line?.error).toContain(message);
    expect(addon.notified.at(-1)).toBe("READY=1");
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);
  });

  it("changes the limits of a switch's ports while it runs", async () => {
    const { folder, file, addon, signals, log, ended } = await start("switch", switchFile);
    const limited =
      "name: a, limits: { 0: { rate: 5Mbps, buffer: 20KB } }, storm_control: { broadcast: 1Mbps }, vlans: { untagged: 5 },";
    writeFileSync(file, switchFile(folder).replace("name: a,", limited));
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.msg).toBe("reloaded");
    const [before, after] = addon.worker.configs.map(({ switches }) => switches[0]?.ports[0]);
    expect(before).toMatchObject({ priority_rates: Array(8).fill(0), storm_rates: [0, 0, 0] });
    expect(after?.priority_rates?.[0]).toBe(5e6);
    expect(after?.queue_limits?.[0]).toBe(20_000);
    expect(after?.storm_rates).toEqual([1e6, 0, 0]);
    expect(after?.vlans).toEqual({ untagged: 5, tagged: [] });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("is made of a config_db.json, and of what that has become", async () => {
    const config = (kmin: string) =>
      JSON.stringify({
        PORT: { Ethernet0: { speed: "1000" }, Ethernet4: { speed: "1000" } },
        PORT_QOS_MAP: { "Ethernet0,Ethernet4": { pfc_enable: "3" } },
        WRED_PROFILE: {
          W: { ecn: "ecn_all", wred_green_enable: "true", green_min_threshold: kmin, green_max_threshold: "90000" },
        },
        QUEUE: { "Ethernet0,Ethernet4|3": { wred_profile: "W" } },
      });
    const sonic = { map: new Map([["Ethernet0", "lo"]]) };
    const { file, addon, signals, log, ended } = await start(
      "switch",
      () => config("6000"),
      undefined,
      (folder) => ({
        sonic,
        set: ["metrics=false", `control=${folder}/sw.sock`],
      }),
    );
    expect(addon.worker.configs[0]?.switches[0]?.ports.map((port) => port.interface)).toEqual(["lo"]);
    writeFileSync(file, config("7000"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(addon.worker.configs.map(({ switches }) => switches[0]?.red.kmin)).toEqual([6000, 7000]);
    writeFileSync(file, config("none"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.error).toContain("WRED_PROFILE|W|green_min_threshold: none is not a whole number");
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);
  });

  it("changes a NIC's congestion control and rate caps while it runs, but not its queue pairs", async () => {
    const { folder, file, addon, signals, log, ended } = await start("nic", nicFile);
    const text = nicFile(folder, "congestion: { profile: mlx5 }").replace("send: {}", "send: { rate: 1Gbps }");
    writeFileSync(file, text);
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.msg).toBe("reloaded");
    expect(addon.worker.configs[1]?.nics[0]).toMatchObject({
      dcqcn: { form: "slotted" },
      queue_pairs: [{ rate_cap: 1e9 }],
    });
    writeFileSync(file, text.replace("name: to-b", "name: to-c"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.error).toBe("queue_pairs cannot change while the daemon runs");
    writeFileSync(file, `${text}\ntransport: rc`);
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.error).toBe("transport cannot change while the daemon runs");
    writeFileSync(file, text.replace("profile: mlx5", "algorithm: qcn").concat("\nqcn: { notification: ip }"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.error).toBe("qcn.notification cannot change while the daemon runs");
    signals.emit("SIGTERM", "SIGTERM");
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("keeps what connections have agreed on: whether a NIC's packets have room for telemetry", async () => {
    const { folder, file, signals, log, ended } = await start("nic", (path) => nicFile(path, "transport: rc"));
    for (const [algorithm, said] of [
      ["none", "reloaded"],
      ["hpcc", "not reloaded, the old configuration stays"],
      ["swift", "not reloaded, the old configuration stays"],
    ]) {
      writeFileSync(file, nicFile(folder, `transport: rc\ncongestion: { algorithm: ${algorithm} }`));
      signals.emit("SIGHUP", "SIGHUP");
      expect(log.findLast(({ msg }) => msg.includes("reloaded"))?.msg).toBe(said);
    }
    expect(log.at(-1)?.error).toBe("congestion.algorithm cannot change while the daemon runs");
    signals.emit("SIGTERM", "SIGTERM");
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("ends with 1 and the reason when its worker fails", async () => {
    const { addon, log, ended, socket } = await start("switch", switchFile);
    addon.worker.fail("poll: out of memory");
    expect(await ended).toBe(1);
    expect(log.at(-1)).toMatchObject({ level: "fatal", msg: "the worker failed", reason: "poll: out of memory" });
    expect(existsSync(socket)).toBe(false);
  });

  it("can be stopped while it starts", async () => {
    const { addon, signals, messages, ended } = await start("switch", switchFile);
    addon.worker.switchState = () => {
      throw new Error("devices do not live yet");
    };
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);
    expect(messages().at(-1)).toBe("stopped without draining");
    expect(addon.worker.calls.at(-1)).toBe("close");
  });

  it("does not start when the worker cannot open a port", async () => {
    const refuse = Object.assign(new Error("cannot open lo: EPERM"), { hint: "this needs CAP_NET_RAW" });
    const { ended, socket } = await start("switch", switchFile, (addon) => {
      addon.refuse = refuse;
    });
    await expect(ended).rejects.toMatchObject({ message: "cannot open lo: EPERM", hint: "this needs CAP_NET_RAW" });
    expect(existsSync(socket)).toBe(false);
  });

  it("does not start on a CPU that the host does not have", async () => {
    for (const [kind, text] of [
      ["switch", (folder: string) => switchFile(folder, "workers: [{ cpu: 4095 }]")],
      ["nic", (folder: string) => nicFile(folder, "worker: { cpu: 4095 }")],
    ] as const) {
      const { addon, ended } = await start(kind, text);
      await expect(ended).rejects.toThrow(/cpu: 4095: this host has no such CPU/);
      expect(addon.workers).toEqual([]);
    }
  });

  it("answers at /healthz what is wrong with it, with status 503 where it does not do its work", async () => {
    const port = await freePort();
    const text = (folder: string) =>
      switchFile(folder)
        .replace("metrics: false", `metrics: { port: ${port} }`)
        .replace("ports: [", "ports: [{ interface: lo, namespace: /proc/self/ns/net, name: b, mtu: 1500 }, ");
    const { addon, signals, ended } = await start("switch", text, (fake) => {
      fake.prepare = (worker) => {
        worker.publishedAt = fake.now;
      };
    });
    const health = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/healthz`);
      return { code: response.status, ...((await response.json()) as Record<string, unknown>) };
    };
    expect(await health()).toEqual({ code: 200, status: "ok", name: "sw0", down: [], reasons: [] });
    addon.worker.stall(1, true, false);
    expect(await health()).toMatchObject({
      code: 200,
      status: "degraded",
      reasons: [{ reason: "transmit_stalled", port: "a" }],
    });
    addon.now += 2e9; // The worker has published nothing since.
    expect(await health()).toMatchObject({ code: 503, status: "failed" });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("shows what was counted since it was cleared", async () => {
    const { addon, signals, socket, ended } = await start("switch", switchFile);
    addon.worker.count(0, 100);
    const value = async () => (await ask(socket, "counters")).counters[0]?.value;
    expect(await value()).toBe(100);
    await ask(socket, "clear");
    expect(await value()).toBe(0);
    addon.worker.count(0, 130);
    expect(await value()).toBe(30);
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("answers over its control socket, and refuses what does not fit its kind", async () => {
    const { signals, socket, ended } = await start("switch", switchFile);
    expect(await ask(socket, "status")).toMatchObject({
      kind: "switch",
      name: "sw0",
      version: kVersion,
      pid: process.pid,
      control: socket,
      metrics: null,
    });
    expect(await ask(socket, "fdb")).toEqual([
      { mac: "02:00:00:00:00:01", vlan: 0, ports: ["a"], kind: "learned", expires_in_s: 12 },
    ]);
    await expect(ask(socket, "queue_pairs")).rejects.toThrow("sw0 is a switch: it has no queue pairs");
    await expect(ask(socket, "toString" as "status")).rejects.toMatchObject({
      message: "unknown request toString",
      hint: "known: status, counters, ports, switch, fdb, routes, neighbors, queue_pairs, reaction_points, programs, qos, lldp, dcbx, clear, fault, faults, end_fault, kill, capture",
    });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("answers nobody before it has started", async () => {
    let folder = "";
    let native: FakeAddon | undefined;
    const starting = start(
      "switch",
      (path) => {
        folder = path;
        return switchFile(path);
      },
      (addon) => {
        native = addon;
        addon.slow = true;
      },
    );
    await eventually(() => expect(ask(join(folder, "sw0.sock"), "ports")).rejects.toThrow("the daemon is starting"));
    (native as FakeAddon).slow = false;
    const { socket, signals, ended } = await starting;
    expect(await ask(socket, "ports")).toHaveLength(1);
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("answers ARP for an address that the kernel does not have", async () => {
    const { addon, signals, ended } = await start("nic", (folder) => nicFile(folder, 'mac: "02:00:00:00:00:01"'));
    const own = { address: { version: 4, bytes: Buffer.from([10, 99, 0, 1]) }, answers: true };
    expect(addon.worker.configs[0]?.nics[0]?.neighbours).toEqual({ addresses: [own], followed: [] });
    signals.emit("SIGTERM", "SIGTERM");
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  const unknown = (folder: string, more = "") =>
    nicFile(folder, `mac: "02:00:00:00:00:01"\n${more}`).replace(', mac: "02:00:00:00:00:02"', "");
  const path = ({ worker }: FakeAddon) => worker.configs.at(-1)?.nics[0]?.queue_pairs[0]?.path.destination_mac;

  it("asks by ARP for peers without a MAC address, and sends once they have answered", async () => {
    const { addon, signals, log, socket, ended } = await start("nic", unknown);
    expect(path(addon)).toBe(0);
    expect(await ask(socket, "queue_pairs")).toMatchObject([{ name: "to-b", state: "unresolved" }]);
    const wanted = { address: { version: 4, bytes: Buffer.from([10, 99, 0, 2]) }, own: 0 };
    expect(addon.worker.configs[0]?.nics[0]?.neighbours?.followed).toEqual([wanted]);
    addon.worker.record(RecordKind.neighbour, 0, 0);
    expect(log.at(-1)).toMatchObject({ level: "warn", peer: "b", msg: expect.stringContaining("does not answer ARP") });
    addon.worker.record(RecordKind.neighbour, 0, 0x02_00_00_00_00_02);
    expect(path(addon)).toBe(0x02_00_00_00_00_02);
    expect(addon.worker.calls).toContain("reconfigure");
    expect(log.at(-1)).toMatchObject({ level: "info", peer: "b", mac: "02:00:00:00:00:02", msg: "peer found by ARP" });
    expect(await ask(socket, "queue_pairs")).toMatchObject([{ name: "to-b", state: "ready" }]);
    // What was known stays while nobody answers, and what comes then is told if it is something else.
    const told = log.length;
    for (const mac of [0, 0x02_00_00_00_00_02, 0x02_00_00_00_00_03]) addon.worker.record(RecordKind.neighbour, 0, mac);
    expect(log.slice(told).map(({ msg }) => msg)).toEqual([
      expect.stringContaining("does not answer"),
      "peer has another MAC address",
    ]);
    addon.worker.record(RecordKind.neighbour, 0, 0x02_00_00_00_00_02);
    signals.emit("SIGHUP", "SIGHUP");
    expect(path(addon)).toBe(0x02_00_00_00_00_02);
    signals.emit("SIGTERM", "SIGTERM");
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("does not start without a peer's MAC address where the kernel gets the answers to ARP", async () => {
    const shared = (folder: string) =>
      unknown(folder, "receive: af_xdp").replace("address: 10.99.0.1", "address: 127.0.0.1");
    const { ended } = await start("nic", shared);
    await expect(ended).rejects.toMatchObject({
      message: "peer b has no mac, and answers to ARP do not come here",
      hint: expect.stringContaining("give peers a mac, or set receive: af_packet"),
    });
  });
});
