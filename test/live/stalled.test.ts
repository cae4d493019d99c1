/** An egress interface whose host does not take frames, and interfaces that another Weir has. */
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { CounterValue } from "../../src/device/protocol.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { freePort, network, ping, portOf, startNic, startSwitch, weir } from "./daemons.js";

/** A throttle that lets one frame a second and a half pass, whatever waits. */
const kThrottle = [
  "qdisc",
  "replace",
  "dev",
  "b",
  "root",
  "tbf",
  "rate",
  "8kbit",
  "burst",
  "1600",
  "limit",
  "200000000",
];

const throttle = (net: LabNetwork) => net.namespace("sw").run("tc", kThrottle);
const release = (net: LabNetwork) => net.namespace("sw").run("tc", ["qdisc", "del", "dev", "b", "root"]);

/** Sends UDP of 1,400 bytes from a to b, for so long; returns how many were sent. */
async function flood(net: LabNetwork, seconds: number): Promise<number> {
  const script = `const s = require("node:dgram").createSocket("udp4"), data = Buffer.alloc(1400);
    const end = Date.now() + ${seconds * 1000}; let sent = 0;
    const go = () => { if (Date.now() > end) { s.close(); return console.log(sent); }
      for (let i = 0; i < 50; i++) s.send(data, 9999, "10.66.0.2", (error) => { if (!error) sent++; });
      setTimeout(go, 2); };
    go();`;
  const { stdout } = await net.namespace("a").run(process.execPath, ["-e", script]);
  return Number(stdout);
}

const of = (counters: readonly CounterValue[], name: string, port: string) =>
  counters.find((c) => c.name === name && c.labels.port === port && c.labels.priority === undefined)?.value ?? 0;

describeLive("a switch with an egress that stands still", () => {
  it("keeps its frames in the shared buffer, tells of it, serves the others, and goes on when it works again", async () => {
    const hosts = ["a", "b", "c"];
    const net = await network(hosts);
    // The throttle is a queueing discipline: ports without a rate send through it.
    const ports = hosts.map((host) => portOf(net, host, "mtu: 1500"));
    const { socket, url } = await startSwitch(net, { ports });
    expect(await ping(net, 5)).toEqual({ sent: 5, received: 5 });
    expect(await ping(net, 5, "10.66.0.3")).toEqual({ sent: 5, received: 5 });
    await throttle(net);
    const flooded = flood(net, 8);
    await eventually(async () => {
      const { buffer, ports } = await ask(socket, "switch");
      // Half of the free buffer is what a lossy queue may have.
      expect(ports[1]?.queue_bytes[0]).toBeGreaterThan(5_000_000);
      expect(buffer.occupied).toBeGreaterThanOrEqual(ports[1]?.queue_bytes[0] ?? 0);
      expect((await ask(socket, "ports"))[1]).toMatchObject({ up: true, tx_stalled: true });
      // A busy machine fills the queue slowly.
      expect(of((await ask(socket, "counters")).counters, "drop_lossy_threshold", "a")).toBeGreaterThan(0);
    });
    const answer = await fetch(`${url}/healthz`);
    const { reasons } = (await answer.json()) as { reasons: { reason: string; port?: string }[] };
    expect(reasons).toContainEqual(expect.objectContaining({ reason: "transmit_stalled", port: "b" }));
    const { counters } = await ask(socket, "counters");
    expect(of(counters, "drop_no_descriptor", "a")).toBe(0);
    // Only the bytes that the kernel took have left, and one frame in a second and a half.
    expect(of(counters, "tx_bytes", "b")).toBeLessThan(400_000);
    const sent = await flooded;
    expect(sent).toBeGreaterThan(5_000);
    expect((await ask(socket, "ports"))[1]).toMatchObject({ tx_stalled: true });
    expect(await ping(net, 50, "10.66.0.3"), "beside it").toEqual({ sent: 50, received: 50 });
    await release(net);
    await eventually(async () => {
      expect((await ask(socket, "switch")).buffer.occupied).toBe(0);
      expect((await ask(socket, "ports"))[1]).toMatchObject({ tx_stalled: false });
    });
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
    const after = (await ask(socket, "counters")).counters;
    const lost = ["drop_lossy_threshold", "drop_buffer_full", "host_rx_overrun"].reduce(
      (sum, c) => sum + of(after, c, "a"),
      0,
    );
    const out = of(after, "tx_packets", "b") + of(after, "host_tx_errors", "b");
    // Pings and ARP beside the flood: everything is somewhere.
    expect(out + lost).toBeGreaterThanOrEqual(sent);
    expect(out + lost).toBeLessThan(sent + 100);
  });

  it("has nothing left of an interface that is deleted while it stands still", async () => {
    const net = await network();
    const { socket } = await startSwitch(net, { port: "mtu: 1500" });
    expect(await ping(net, 5)).toEqual({ sent: 5, received: 5 });
    await throttle(net);
    await flood(net, 2);
    expect((await ask(socket, "switch")).buffer.occupied).toBeGreaterThan(0);
    await net.namespace("b").run("ip", ["link", "delete", "weir0"]);
    await eventually(async () => {
      expect((await ask(socket, "ports"))[1]).toMatchObject({ up: false, tx_stalled: false });
      expect((await ask(socket, "switch")).buffer.occupied).toBe(0);
    });
    const { counters } = await ask(socket, "counters");
    // The kernel refuses its frames until its absence is noticed.
    expect(of(counters, "tx_port_down", "b") + of(counters, "host_tx_errors", "b")).toBeGreaterThan(1_000);
  });
});

describeLive("an interface that a Weir has", () => {
  it("is refused to a second switch, whichever namespace that runs in, and free after SIGKILL", async () => {
    const net = await network();
    const first = await startSwitch(net);
    const folder = mkdtempSync(join(tmpdir(), "weir-live-"));
    const file = join(folder, "second.yaml");
    const socket = join(folder, "second.sock");
    const text = (port: string) => `name: second\nports:\n  - ${port}\ncontrol: ${socket}\nmetrics: false\n`;
    writeFileSync(file, text(portOf(net, "b", "mtu: 1500")));
    const refused = await weir("switch", "-c", file).finished;
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain(`b: in use by sw0 (pid ${first.child.pid}), and one interface serves one Weir`);
    expect(refused.stderr).not.toContain("af_xdp cannot be opened");
    // The other end of the link is free: it is another interface.
    const nic = await startNic(net, "b", { pairs: ["remote_qpn: 0x11"] });
    nic.child.kill("SIGKILL");
    await nic.finished;
    first.child.kill("SIGKILL");
    await first.finished;
    const second = weir("switch", "-c", file);
    await eventually(() => expect(second.log().map(({ msg }) => msg)).toContain("started"));
    expect(existsSync(socket)).toBe(true);
  });

  it("is refused to a NIC beside a switch, by AF_XDP and by packet sockets", async () => {
    const net = await network();
    await startSwitch(net, { ports: [portOf(net, "a", "backend: af_packet"), portOf(net, "b", "backend: af_xdp")] });
    const folder = mkdtempSync(join(tmpdir(), "weir-live-"));
    for (const [name, backend] of [
      ["a", "af_xdp"],
      ["b", "af_packet"],
    ] as const) {
      const file = join(folder, `${name}.yaml`);
      writeFileSync(
        file,
        `name: nic-${name}\ninterface: ${name}\nnamespace: ${net.namespace("sw").path}\naddress: 10.77.0.9\nbackend: ${backend}
metrics: { port: ${await freePort()} }\ncontrol: ${join(folder, `${name}.sock`)}\n`,
      );
      const { status, stderr } = await weir("nic", "-c", file).finished;
      expect(status).toBe(1);
      expect(stderr).toContain(`${name}: in use by sw0 (pid `);
    }
  });
});
