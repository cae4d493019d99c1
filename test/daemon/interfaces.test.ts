/** A daemon and its interfaces: looks, backends, and events while it runs. */
import { describe, expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { skipWhere } from "../obstacles.js";
import { kHardware, kVeth } from "./probes.js";
import { nicFile, start, switchFile } from "./started.js";

// Their interface is looked up in the kernel.
skipWhere(lacking("iproute2"));

describe("a daemon", () => {
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

  it("tells of a port that takes no live frames, and when it does", async () => {
    const text = (folder: string) => switchFile(folder).replace("rate: 1Gbps,", "backend: live,");
    const { addon, signals, log, socket, ended } = await start("switch", text);
    const settled = log.length;
    addon.worker.stall(0, false, false, true);
    expect(log.slice(settled)).toMatchObject([
      { level: "warn", port: "a", msg: "the interface takes no live frames: they leave by af_xdp" },
    ]);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ transmit: "live", tx_falls_back: true, tx_stalled: false });
    addon.worker.stall(0, false, false, false);
    expect(log.slice(settled + 1)).toMatchObject([
      { level: "info", port: "a", msg: "the interface takes live frames" },
    ]);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ tx_falls_back: false });
    signals.emit("SIGTERM", "SIGTERM");
    await ended;
  });

  it("tells of the sockets of AF_XDP, and when an interface has got more receive queues", async () => {
    const text = (folder: string) => switchFile(folder).replace("rate: 1Gbps,", "backend: af_xdp,");
    const { addon, signals, log, socket, ended } = await start("switch", text);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ xdp_queues: 0, rx_zero_copy: null, tx_zero_copy: null });
    const settled = log.length;
    addon.worker.queues(0, 1, true, true);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ xdp_queues: 1, rx_zero_copy: true, tx_zero_copy: true });
    expect(log.slice(settled)).toEqual([]);
    addon.worker.queues(0, 4, false, true);
    expect(log.slice(settled)).toMatchObject([{ level: "info", port: "a", from: 1, to: 4 }]);
    expect((await ask(socket, "ports"))[0]).toMatchObject({ xdp_queues: 4, rx_zero_copy: false, tx_zero_copy: true });
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
});
