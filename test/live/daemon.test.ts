/** Daemons between ordinary namespaces of this machine: the kernel's own ping crosses the switch, a NIC sends through it. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { Health } from "../../src/device/health.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import {
  connectAgain,
  type Daemon,
  daemon,
  metric,
  network,
  ping,
  startNic,
  startSwitch,
  weir,
  weirAs,
} from "./daemons.js";
import { folder } from "./weir.js";

/** Health of a daemon's ports; how late the machine lets it be is another matter. */
async function health(url: string) {
  const { status: _, reasons, ...rest } = (await (await fetch(`${url}/healthz`)).json()) as Health;
  return { ...rest, reasons: reasons.filter(({ reason }) => !reason.startsWith("worker_")) };
}

/** CapPrm and NoNewPrivs of each thread of a process. */
function capabilitiesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((id) => {
    const status = readFileSync(`/proc/${pid}/task/${id}/status`, "utf8");
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\w+)$`, "m").exec(status)?.[1];
    return `${field("CapPrm")} ${field("NoNewPrivs")}`;
  });
}

describeLive("weir switch", () => {
  it("carries the kernel's traffic, learns where it comes from, and counts it for Prometheus", async () => {
    const net = await network();
    const { child, finished, socket, url } = await startSwitch(net);
    expect(await ping(net, 30)).toEqual({ sent: 30, received: 30 });
    // CAP_NET_RAW, CAP_IPC_LOCK for AF_XDP out, CAP_SYS_ADMIN and CAP_SYS_PTRACE for its ports' namespace, which is this process's:
    // all of its threads, and nothing else.
    expect(new Set(capabilitiesOf(child.pid as number))).toEqual(new Set(["0000000000286000 1"]));
    const fdb = await ask(socket, "fdb");
    expect(fdb.map(({ mac, ports, kind }) => [mac, ports, kind])).toEqual(
      expect.arrayContaining([
        ["02:57:00:00:00:0a", ["a"], "learned"],
        ["02:57:00:00:00:0b", ["b"], "learned"],
      ]),
    );
    // 30 echo requests and the ARP before them.
    const received = 'weir_switch_port_rx_packets_total{switch="sw0",port="a"}';
    const first = await metric(url, received);
    expect(first).toBeGreaterThanOrEqual(30);
    await ask(socket, "clear");
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
    expect(await metric(url, received)).toBeGreaterThanOrEqual(first + 10);
    const { counters } = await ask(socket, "counters");
    const shown = counters.find(({ name, labels }) => name === "rx_packets" && labels.port === "a")?.value ?? 0;
    expect(shown).toBeGreaterThanOrEqual(10);
    expect(shown).toBeLessThan(first);
    expect(await health(url)).toEqual({ name: "sw0", down: [], reasons: [] });

    child.kill("SIGTERM");
    const { status, stderr } = await finished;
    expect(status, stderr).toBe(0);
    const messages = stderr
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toEqual(["backend chosen", "backend chosen", "started", "stopping", "stopped"]);
    expect(existsSync(socket)).toBe(false);
  });

  it.each([
    ["whole super-frames through unshaped ports", "unlimited", "gso_passed"],
    ["super-frames cut for shaped ports", "1Gbps", "gso_segmented"],
  ])("carries TCP intact with the kernel's offloads on: %s", async (_, rate, counter) => {
    const net = await network();
    const { socket } = await startSwitch(net, { port: `rate: ${rate}` });
    const bytes = 20_000_000;
    // Both ends make or hash the same bytes; the server prints the hash of what came.
    const server = `const c = require("node:crypto").createHash("sha256");
      require("node:net").createServer((s) => s.on("data", (d) => c.update(d)).on("end", () => {
        console.log(c.digest("hex")); process.exit();
      })).listen(5001);`;
    const client = `const b = Buffer.alloc(${bytes}, Uint8Array.from({ length: 997 }, (_, i) => i * 31));
      console.log(require("node:crypto").createHash("sha256").update(b).digest("hex"));
      const go = () => require("node:net").connect(5001, "10.66.0.2", function () { this.end(b); }).on("error", () => setTimeout(go, 50));
      go();`;
    const [received, sent] = await Promise.all([
      net.namespace("b").run(process.execPath, ["-e", server]),
      net.namespace("a").run(process.execPath, ["-e", client]),
    ]);
    expect(received.stdout).toMatch(/^[0-9a-f]{64}\n$/);
    expect(received.stdout).toBe(sent.stdout);
    // The last acknowledgements may be under way still.
    await eventually(async () => {
      const { counters } = await ask(socket, "counters");
      const of = (name: string) => counters.filter((c) => c.name === name).reduce((sum, c) => sum + c.value, 0);
      expect(of(counter)).toBeGreaterThan(0);
      // Every frame is accounted for; super-frames count as the frames in them.
      const dropped = counters.filter((c) => c.name.startsWith("drop_")).reduce((sum, c) => sum + c.value, 0);
      const perPort = (name: string) =>
        of(name) - counters.filter((c) => c.name === name && c.labels.priority).reduce((sum, c) => sum + c.value, 0);
      expect(perPort("rx_packets") + of("flood_copies")).toBe(perPort("tx_packets") + dropped);
    });
  });

  it("takes other ECN thresholds on SIGHUP without losing a frame, and refuses bad ones", async () => {
    const net = await network();
    const { child, socket, write, url } = await startSwitch(net);
    const kmin = async () => (await ask(socket, "switch")).ecn.kmin;
    expect(await ping(net, 2)).toEqual({ sent: 2, received: 2 });
    const traffic = ping(net, 200);
    write("ecn: { kmin: 50KB }");
    child.kill("SIGHUP");
    await eventually(async () => expect(await kmin()).toBe(50_000));
    write("ecn: { kmin: 500KB }");
    child.kill("SIGHUP");
    const refused = () => metric(url, 'weir_reloads_total{result="failed"}');
    await eventually(async () => expect(await refused()).toBe(1));
    expect(await kmin()).toBe(50_000);
    write("ecn: { kmin: 60KB }");
    child.kill("SIGHUP");
    await eventually(async () => expect(await kmin()).toBe(60_000));
    expect(await traffic).toEqual({ sent: 200, received: 200 });
    const { counters } = await ask(socket, "counters");
    expect(counters.filter(({ name, value }) => name.startsWith("drop_") && value > 0)).toEqual([]);
  });

  it("tells of an interface that is gone, and goes on when it is back under its name", async () => {
    const net = await network();
    const { socket, url } = await startSwitch(net);
    expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 });
    // Deleting one end of a veth deletes the other.
    await net.namespace("b").run("ip", ["link", "delete", "weir0"]);
    await eventually(async () => expect((await ask(socket, "ports"))[1]).toMatchObject({ name: "b", up: false }));
    expect(await health(url)).toMatchObject({ down: ["b"], reasons: [{ reason: "port_down", port: "b" }] });
    await connectAgain(net);
    await eventually(async () =>
      expect((await ask(socket, "ports"))[1]).toMatchObject({ name: "b", up: true, recoveries: 1 }),
    );
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
    expect(await metric(url, 'weir_port_transitions_total{device="sw0",port="b"}')).toBe(2);
  });

  it("starts again after SIGKILL, on the socket that was left; a second one beside it is refused", async () => {
    const net = await network();
    const { child, finished, socket, file } = await startSwitch(net);
    const second = weir("switch", "-c", file);
    const refused = await second.finished;
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain(`a daemon is running already: it answers at ${socket}`);
    child.kill("SIGKILL");
    await finished;
    expect(existsSync(socket)).toBe(true);
    await daemon("switch", file, socket);
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
  });
});

describeLive("weir nic", () => {
  it("that cannot listen for metrics where the loopback interface is down sends nothing, and says what to do", async () => {
    const net = await network();
    const file = join(folder(), "nic.yaml");
    writeFileSync(
      file,
      `name: roce-early
interface: weir0
address: 10.77.0.1
peers: [{ name: peer, address: 10.77.0.2, mac: "02:57:00:00:00:0b" }]
queue_pairs: [{ name: to-b, peer: peer, send: {} }]
control: ${folder()}/nic.sock
`,
    );
    const host = net.namespace("a");
    await host.run("ip", ["link", "set", "lo", "down"]);
    const sent = async () => {
      const { stdout } = await host.run("ip", ["-json", "-stats", "link", "show", "dev", "weir0"]);
      return (JSON.parse(stdout) as [{ stats64: { tx: { packets: number } } }])[0].stats64.tx.packets;
    };
    const before = await sent();
    const { finished } = weirAs({ as: ["nsenter", `--net=${host.path}`, "--"] }, "nic", "-c", file);
    const { status, stderr } = await finished;
    expect(status).toBe(1);
    expect(stderr).toContain("metrics: cannot listen at 127.0.0.1:9465: no interface that is up has this address");
    expect(stderr).toContain("ip link set lo up");
    // A few may be the kernel's own solicitations.
    expect((await sent()) - before).toBeLessThan(5);
  });

  it.each(["auto", "af_xdp"])(
    "sends through the switch to another, which misses nothing, and answers ARP and ping: backend %s",
    async (backend) => {
      const net = await network();
      const bridge = await startSwitch(net);
      const receiver = await startNic(net, "b", { pairs: ["remote_qpn: 0x11"], more: `backend: ${backend}` });
      const sender = await startNic(net, "a", {
        pairs: ["send: { message: 100KB, bytes: 2MB, rate: 20Mbps }"],
        more: `backend: ${backend}`,
      });
      const own = async (at: Daemon, counter: string) =>
        (await ask(at.socket, "counters")).counters.find(({ name, labels }) => name === counter && "flow" in labels)
          ?.value;
      await eventually(async () => expect((await ask(sender.socket, "queue_pairs"))[0]?.state).toBe("finished"));
      // 2 MB in packets of 1024 bytes; a message of 100 KB ends in a shorter one.
      const packets = 20 * Math.ceil(100_000 / 1024);
      expect(await own(sender, "tx_packets")).toBe(packets);
      await eventually(async () => expect(await own(receiver, "rx_packets")).toBe(packets));
      expect(await own(receiver, "rx_bytes")).toBe(2e6);
      // The switch is another process, whose counters lag by up to 2 ms.
      await eventually(async () => {
        const { counters } = await ask(bridge.socket, "counters");
        const queue = counters.find(
          ({ name, labels }) => name === "queue_packets" && labels.port === "b" && labels.priority === "3",
        );
        expect(queue?.value).toBe(packets);
      });
      // The kernel next door does not know that it is no other kernel.
      const host = net.namespace("a");
      await host.run("ip", ["route", "add", "10.77.0.2/32", "dev", "weir0"]);
      expect(await ping(net, 20, "10.77.0.2")).toEqual({ sent: 20, received: 20 });
      const { stdout } = await host.run("ip", ["neighbour", "show", "10.77.0.2"]);
      expect(stdout).toContain("lladdr 02:57:00:00:00:0b");
      for (const { child, finished } of [sender, receiver]) {
        child.kill("SIGTERM");
        expect((await finished).status).toBe(0);
      }
    },
  );
});
