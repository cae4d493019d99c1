/** A daemon from start to end, on a native core that does as told. */
import { EventEmitter, once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { arpReply, readArp } from "../../src/cm/arp.js";
import { ask } from "../../src/daemon/control_client.js";
import { runDaemon } from "../../src/daemon/run.js";
import { freePort } from "../live/daemons.js";
import { lacking } from "../needs.js";
import { skipWhere } from "../obstacles.js";
import { eventually } from "../patience.js";
import { FakeAddon } from "./fake_addon.js";
import { kHardware, kVeth } from "./probes.js";

// Their interface is looked up in the kernel.
skipWhere(lacking("iproute2"));

const kVersion = "1.2.3";

function switchFile(folder: string, more = ""): string {
  return `name: sw0
ports: [{ interface: lo, name: a, rate: 1Gbps, mtu: 1500 }]
control: ${folder}/sw0.sock
metrics: false
${more}`;
}

function nicFile(folder: string, more = ""): string {
  return `name: roce0
interface: lo
address: 10.99.0.1
peers: [{ name: b, address: 10.99.0.2, mac: "02:00:00:00:00:02" }]
queue_pairs: [{ name: to-b, peer: b, send: {} }]
control: ${folder}/roce0.sock
metrics: false
${more}`;
}

type Line = Record<string, unknown> & { level: string; msg: string };

async function start(kind: "switch" | "nic", text: (folder: string) => string, prepare?: (addon: FakeAddon) => void) {
  const folder = mkdtempSync(join(tmpdir(), "weir-daemon-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config.yaml");
  writeFileSync(file, text(folder));
  const addon = new FakeAddon();
  prepare?.(addon);
  const signals = new EventEmitter();
  const log: Line[] = [];
  const stderr = { write: (line: string) => void log.push(JSON.parse(line) as Line) };
  vi.stubEnv("NOTIFY_SOCKET", "/run/notify");
  onTestFinished(() => void vi.unstubAllEnvs());
  const ended = runDaemon(kind, file, { stderr, signals, version: kVersion, addon });
  const messages = () => log.map(({ msg }) => msg);
  const socket = join(folder, kind === "switch" ? "sw0.sock" : "roce0.sock");
  const started = eventually(() => expect(messages()).toContain("started"));
  await Promise.race([started, ended.catch(() => {})]);
  started.catch(() => {}); // it has ended instead
  return { folder, file, addon, signals, log, messages, socket, ended };
}

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
    const { addon, signals, ended } = await start("nic", nicFile);
    signals.emit("SIGINT", "SIGINT");
    signals.emit("SIGINT", "SIGINT");
    expect(await ended).toBe(0);
    expect(addon.worker.calls.at(-1)).toBe("close");
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
    ["another metrics port", "", "metrics cannot change while the daemon runs", "restart it"],
  ])("keeps its configuration when it finds %s, and says why", async (what, more, message, hint) => {
    const { folder, file, addon, signals, log, ended } = await start("switch", switchFile);
    let text = switchFile(folder, more);
    if (what === "other ports") text = text.replace("name: a,", "name: b,");
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

  it("changes a NIC's congestion control and rate caps while it runs, but not its queue pairs", async () => {
    const { folder, file, addon, signals, log, ended } = await start("nic", nicFile);
    const text = nicFile(folder, "congestion: { profile: mlx5 }").replace("send: {}", "send: { rate: 1Gbps }");
    writeFileSync(file, text);
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.msg).toBe("reloaded");
    expect(addon.worker.configs[1]?.nics[0]).toMatchObject({
      reaction_point: { form: "slotted" },
      queue_pairs: [{ rate_cap: 1e9 }],
    });
    writeFileSync(file, text.replace("name: to-b", "name: to-c"));
    signals.emit("SIGHUP", "SIGHUP");
    expect(log.at(-1)?.error).toBe("queue_pairs cannot change while the daemon runs");
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

  it("logs and counts interfaces that go and come back", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile);
    addon.worker.port(0, false);
    addon.worker.port(0, false);
    expect(log.at(-1)).toMatchObject({ level: "warn", msg: "interface is down or gone", port: "a" });
    expect(await ask(socket, "ports")).toMatchObject([{ name: "a", up: false, transitions: 1, recoveries: 0 }]);
    addon.worker.port(0, true);
    expect(log.filter(({ port }) => port === "a").map(({ msg }) => msg)).toEqual([
      "backend chosen",
      "interface is down or gone",
      "interface is up again",
    ]);
    expect(await ask(socket, "ports")).toMatchObject([{ up: true, transitions: 2, recoveries: 1 }]);
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("looks at its interfaces, picks backends by what it finds, and says so in one line each", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile);
    expect(addon.probed).toEqual([["lo", undefined]]);
    expect(log[0]).toMatchObject({
      level: "info",
      msg: "backend chosen",
      port: "a",
      interface: "lo",
      found: "veth; 10 Gb/s; MTU 1500; queues 1/1; offloads tso gso tx rx txvlan rxvlan; XDP native, several buffers",
      receive: "af_packet",
      transmit: "af_xdp",
      why: expect.stringMatching(/^a veth that is shaped/),
    });
    expect(addon.worker.configs[0]?.switches[0]?.ports[0]).toMatchObject({ receive: "af_packet", transmit: "af_xdp" });
    signals.emit("SIGHUP", "SIGHUP");
    expect(addon.worker.configs[1]).toEqual(addon.worker.configs[0]);
    expect(addon.probed).toHaveLength(1);
    const [shown] = await ask(socket, "ports");
    expect(shown).toMatchObject({
      receive: "af_packet",
      transmit: "af_xdp",
      xdp_mode: null,
      pfc: "works",
      mac_control: { reaches: "yes" },
      probe: { ...kVeth, mac_control: { reaches: "yes" } },
    });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it.each(["switch", "nic"] as const)("warns a %s where PFC frames do not arrive, until some have", async (kind) => {
    const { addon, signals, log, socket, ended } = await start(
      kind,
      kind === "switch" ? switchFile : nicFile,
      (fake) => {
        fake.probe = { ...kHardware, pause: { rx: true, tx: true } };
      },
    );
    const name = kind === "switch" ? "a" : "lo";
    const reason = "the MAC (ice) obeys PAUSE by itself and keeps MAC control frames";
    expect(log[1]).toMatchObject({ level: "warn", port: name, reason });
    expect(log[1]?.msg).toMatch(/^PFC: not possible here/);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ pfc: "not possible here", mac_control: { reason } });
    addon.worker.count(1, 1);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ pfc: "works", mac_control: { reaches: "yes" } });
    signals.emit("SIGTERM", "SIGTERM");
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("starts where an interface cannot be looked at, on packet sockets", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile, (fake) => {
      fake.probe = new Error("cannot ask about lo: Operation not permitted");
    });
    expect(log[0]).toMatchObject({
      found: "unknown: cannot ask about lo: Operation not permitted",
      receive: "af_packet",
    });
    expect(addon.worker.configs[0]?.switches[0]?.ports[0]).toMatchObject({
      receive: "af_packet",
      transmit: "af_packet",
    });
    expect((await ask(socket, "ports"))[0]).toMatchObject({ probe: null, pfc: "unknown" });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("tells of an interface that another took the place of between two looks, and looks at that one", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile);
    addon.probe = { ...kVeth, mtu: 9000 };
    addon.worker.port(0, true, 9000, true);
    expect(log.slice(-2)).toMatchObject([
      { level: "info", port: "a", found: expect.stringMatching(/^veth; 10 Gb\/s; MTU 9000/) },
      { level: "info", port: "a", from: 1500, to: 9000 },
    ]);
    expect(log.at(-2)?.msg).toBe("another interface has the name, it is used now");
    const [shown] = await ask(socket, "ports");
    expect(shown).toMatchObject({ up: true, transitions: 2, recoveries: 1, probe: { mtu: 9000 } });
    addon.worker.port(0, false, 9000);
    addon.worker.port(0, true, 9000, true);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ up: true, transitions: 4, recoveries: 2 });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("tells of an MTU that changes, and warns when it is smaller than the port's", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile);
    const before = log.length;
    addon.worker.port(0, true, 1500);
    expect(log.length).toBe(before);
    addon.worker.port(0, true, 1400);
    expect(log.at(-1)).toMatchObject({ level: "warn", port: "a", from: 1500, to: 1400, port_mtu: 1500 });
    expect((await ask(socket, "ports"))[0]).toMatchObject({ mtu: 1500, interface_mtu: 1400, mtu_changes: 1 });
    addon.worker.port(0, true, 4000);
    expect(log.at(-1)).toMatchObject({ level: "info", from: 1400, to: 4000 });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("goes on with packet sockets where AF_XDP was its own choice and cannot be opened", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile, (fake) => {
      fake.refuse = new Error("cannot bind to lo: Operation not supported");
      fake.refuses = ({ switches }) => switches[0]?.ports[0]?.transmit === "af_xdp";
    });
    expect(addon.workers.map(({ calls }) => calls[0])).toEqual(["open", "open"]);
    expect(addon.workers[0]?.calls.at(-1)).toBe("close");
    expect(log.find(({ level }) => level === "warn")).toMatchObject({
      msg: "af_xdp cannot be opened, af_packet instead",
      ports: ["a"],
      reason: "cannot bind to lo: Operation not supported",
    });
    expect((await ask(socket, "ports"))[0]).toMatchObject({
      transmit: "af_packet",
      backend_reason: "af_xdp failed: cannot bind to lo: Operation not supported",
    });
    signals.emit("SIGTERM", "SIGTERM");
    expect(await ended).toBe(0);
  });

  it("does not start on an interface that another Weir has, nor tries packet sockets there", async () => {
    const { addon, log, ended } = await start("switch", switchFile, (fake) => {
      const message = "lo: in use by sw1 (pid 4711), and one interface serves one Weir";
      fake.refuse = Object.assign(new Error(message), { code: "INTERFACE_IN_USE", hint: "end that one" });
    });
    await expect(ended).rejects.toMatchObject({
      message: "lo: in use by sw1 (pid 4711), and one interface serves one Weir",
      hint: "end that one",
    });
    expect(addon.workers).toHaveLength(1);
    expect(log.filter(({ level }) => level === "warn")).toEqual([]);
  });

  it("tells of a port whose frames do not pass, and when they do again", async () => {
    const { addon, signals, log, socket, ended } = await start("switch", switchFile);
    addon.worker.stall(0, true, false);
    expect(log.at(-1)).toMatchObject({
      level: "warn",
      port: "a",
      msg: "the host takes no frames to send: they wait in the queues",
    });
    expect((await ask(socket, "ports"))[0]).toMatchObject({ up: true, tx_stalled: true, rx_stuck: false });
    addon.worker.stall(0, false, true);
    expect(log.at(-1)).toMatchObject({
      level: "error",
      port: "a",
      msg: "frames arrive and are not taken from the host",
    });
    addon.worker.stall(0, false, false);
    expect(log.at(-1)).toMatchObject({ level: "info", port: "a", msg: "frames pass again" });
    expect((await ask(socket, "ports"))[0]).toMatchObject({ tx_stalled: false, rx_stuck: false });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
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
    addon.now += 2e9; // and the worker has published nothing since
    expect(await health()).toMatchObject({ code: 503, status: "failed" });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("does not start where AF_XDP was asked for and cannot be opened", async () => {
    const text = (folder: string) => switchFile(folder).replace("rate: 1Gbps,", "backend: af_xdp,");
    const { addon, ended } = await start("switch", text, (fake) => {
      fake.refuse = new Error("cannot bind to lo: Operation not supported");
    });
    await expect(ended).rejects.toThrow("Operation not supported");
    expect(addon.workers).toHaveLength(1);
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
      hint: "known: status, counters, ports, switch, fdb, queue_pairs, qos, clear, capture",
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
    const header = `ffffffffffff${"020000000002"}0806${"0001080006040001"}`;
    const request = Buffer.from(`${header}${"0200000000020a630002"}${"0000000000000a630001"}`, "hex");
    addon.worker.punt(request);
    expect(addon.worker.injected).toHaveLength(1);
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
    expect(readArp(Buffer.from(addon.worker.injected[0] as Uint8Array))?.targetAddress).toBe("10.99.0.2");
    addon.worker.punt(
      arpReply(Buffer.from(addon.worker.injected[0] as Uint8Array), "10.99.0.2", 0x02_00_00_00_00_02) as Buffer,
    );
    await eventually(() => expect(path(addon)).toBe(0x02_00_00_00_00_02));
    expect(addon.worker.calls).toContain("reconfigure");
    expect(log.at(-1)).toMatchObject({ level: "info", peer: "b", mac: "02:00:00:00:00:02", msg: "peer found by ARP" });
    expect(await ask(socket, "queue_pairs")).toMatchObject([{ name: "to-b", state: "ready" }]);
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
