/** Daemons between ordinary namespaces of this machine: the kernel's own ping crosses the switch, a NIC sends through it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { ask } from "../../src/daemon/control_client.js";
import { LabNetwork } from "../../src/lab/veth.js";
import { describeLive } from "./capability.js";
import { folder, kRoot } from "./weir.js";

const kHosts = ["a", "b"] as const;
const kMacs = { a: 0x02_57_00_00_00_0a, b: 0x02_57_00_00_00_0b };

/** Two hosts with addresses 10.66.0.1 and .2 on weir0, and the namespace of a switch with their links' other ends. */
async function network(): Promise<LabNetwork> {
  const built = await LabNetwork.create(
    [
      { name: "a", role: "host" },
      { name: "b", role: "host" },
      { name: "sw", role: "switch" },
    ],
    kHosts.map((host) => ({ from: host, to: "sw", mtu: 1500, fromMac: kMacs[host] })),
  );
  onTestFinished(() => built.close());
  for (const [i, host] of kHosts.entries()) {
    // Links of labs are without ARP: only what the lab sends is on them.
    const lines = ["link set dev weir0 arp on multicast on", `address add 10.66.0.${i + 1}/24 dev weir0`];
    await built.namespace(host).run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  }
  return built;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Running {
  child: ChildProcess;
  finished: Promise<{ status: number | null; stderr: string }>;
}

/** In this process's own network namespace, where the test can reach its metrics; its ports are elsewhere. */
function weir(...args: string[]): Running {
  const child = spawn(process.execPath, ["--import", "tsx", join(kRoot, "src/cli/main.ts"), ...args], {
    cwd: kRoot,
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const finished = new Promise<{ status: number | null; stderr: string }>((resolve, reject) => {
    child.on("error", reject).on("close", (status) => resolve({ status, stderr }));
  });
  return { child, finished };
}

interface Daemon extends Running {
  socket: string;
}

/** Until it answers. */
async function daemon(kind: "switch" | "nic", file: string, socket: string): Promise<Daemon> {
  const running = weir(kind, "-c", file);
  let ended: string | undefined;
  void running.finished.then(({ status, stderr }) => {
    ended = `ended with ${status}: ${stderr}`;
  });
  await vi.waitFor(async () => ended ?? (await ask(socket, "ports")), { timeout: 20_000, interval: 50 });
  expect(ended).toBeUndefined();
  return { ...running, socket };
}

async function startSwitch(net: LabNetwork, more = "", rate = "1Gbps") {
  const path = folder();
  const socket = join(path, "sw0.sock");
  const port = await freePort();
  const file = join(path, "switch.yaml");
  const write = (extra: string) =>
    writeFileSync(
      file,
      `name: sw0
ports:
${kHosts.map((host) => `  - { interface: ${host}, namespace: ${net.namespace("sw").path}, rate: ${rate} }`).join("\n")}
control: ${socket}
metrics: { port: ${port} }
${extra}`,
    );
  write(more);
  return { ...(await daemon("switch", file, socket)), write, file, url: `http://127.0.0.1:${port}` };
}

/** "30 packets transmitted, 30 received, 0% packet loss, time 311ms". */
async function ping(net: LabNetwork, count: number): Promise<{ sent: number; received: number }> {
  const { stdout } = await net.namespace("a").run("ping", ["-q", "-c", String(count), "-i", "0.01", "10.66.0.2"]);
  const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(stdout) ?? [];
  return { sent: Number(sent), received: Number(received) };
}

async function metric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  expect(line, `${series} in\n${text}`).toBeDefined();
  return Number(line?.slice(series.length + 1));
}

describeLive("weir switch", () => {
  it("carries the kernel's traffic, learns where it comes from, and counts it for Prometheus", async () => {
    const net = await network();
    const { child, finished, socket, url } = await startSwitch(net);
    expect(await ping(net, 30)).toEqual({ sent: 30, received: 30 });
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
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok", name: "sw0", down: [] });

    child.kill("SIGTERM");
    const { status, stderr } = await finished;
    expect(status, stderr).toBe(0);
    const messages = stderr
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toEqual(["started", "stopping", "stopped"]);
    expect(existsSync(socket)).toBe(false);
  });

  it.each([
    ["whole super-frames through unshaped ports", "unlimited", "gso_passed"],
    ["super-frames cut for shaped ports", "1Gbps", "gso_segmented"],
  ])("carries TCP intact with the kernel's offloads on: %s", async (_, rate, counter) => {
    const net = await network();
    const { socket } = await startSwitch(net, "", rate);
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
    await vi.waitFor(async () => {
      const { counters } = await ask(socket, "counters");
      const of = (name: string) => counters.filter((c) => c.name === name).reduce((sum, c) => sum + c.value, 0);
      expect(of(counter)).toBeGreaterThan(0);
      // Every frame is accounted for, a cut one by its segments.
      const dropped = counters.filter((c) => c.name.startsWith("drop_")).reduce((sum, c) => sum + c.value, 0);
      const perPort = (name: string) =>
        of(name) - counters.filter((c) => c.name === name && c.labels.priority).reduce((sum, c) => sum + c.value, 0);
      expect(perPort("rx_packets") + of("flood_copies") + of("gso_segments")).toBe(
        perPort("tx_packets") + dropped + of("gso_segmented"),
      );
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
    await vi.waitFor(async () => expect(await kmin()).toBe(50_000), { timeout: 5000 });
    write("ecn: { kmin: 500KB }");
    child.kill("SIGHUP");
    const refused = () => metric(url, 'weir_reloads_total{result="failed"}');
    await vi.waitFor(async () => expect(await refused()).toBe(1), { timeout: 5000 });
    expect(await kmin()).toBe(50_000);
    write("ecn: { kmin: 60KB }");
    child.kill("SIGHUP");
    await vi.waitFor(async () => expect(await kmin()).toBe(60_000), { timeout: 5000 });
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
    await vi.waitFor(async () => expect((await ask(socket, "ports"))[1]).toMatchObject({ name: "b", up: false }), {
      timeout: 5000,
    });
    expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ status: "degraded", down: ["b"] });
    const lines = [
      `link add name b type veth peer name weir0 netns ${net.namespace("b").path}`,
      "link set dev b addrgenmode none up",
    ];
    await net.namespace("sw").run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
    const own = ["link set dev weir0 address 02:57:00:00:00:0b up", "address add 10.66.0.2/24 dev weir0"];
    await net.namespace("b").run("ip", ["-batch", "-"], `${own.join("\n")}\n`);
    await vi.waitFor(
      async () => expect((await ask(socket, "ports"))[1]).toMatchObject({ name: "b", up: true, recoveries: 1 }),
      { timeout: 5000 },
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
  it("sends through the switch to another, which misses nothing, and answers ARP for its own address", async () => {
    const net = await network();
    const bridge = await startSwitch(net);
    const path = folder();
    const nic = (name: "a" | "b", peer: "a" | "b", traffic: string) => {
      const file = join(path, `${name}.yaml`);
      const address = (host: "a" | "b") => `10.77.0.${kHosts.indexOf(host) + 1}`;
      writeFileSync(
        file,
        `name: roce-${name}
interface: weir0
namespace: ${net.namespace(name).path}
address: ${address(name)}
rate: 1Gbps
peers: [{ name: peer, address: ${address(peer)}, mac: "02:57:00:00:00:0${peer}" }]
queue_pairs: [{ name: qp, peer: peer, ${traffic} }]
metrics: false
control: ${join(path, `${name}.sock`)}
`,
      );
      return daemon("nic", file, join(path, `${name}.sock`));
    };
    const receiver = await nic("b", "a", "remote_qpn: 0x11");
    const sender = await nic("a", "b", "send: { message: 100KB, bytes: 2MB, rate: 20Mbps }");
    const own = async (at: Daemon, counter: string) =>
      (await ask(at.socket, "counters")).counters.find(({ name, labels }) => name === counter && "flow" in labels)
        ?.value;
    await vi.waitFor(async () => expect((await ask(sender.socket, "queue_pairs"))[0]?.state).toBe("finished"), {
      timeout: 20_000,
      interval: 100,
    });
    // 2 MB in packets of 1024 bytes; a message of 100 KB ends in a shorter one.
    const packets = 20 * Math.ceil(100_000 / 1024);
    expect(await own(sender, "tx_packets")).toBe(packets);
    await vi.waitFor(async () => expect(await own(receiver, "rx_packets")).toBe(packets), { timeout: 5000 });
    expect(await own(receiver, "rx_bytes")).toBe(2e6);
    const { counters } = await ask(bridge.socket, "counters");
    const queue = counters.find(
      ({ name, labels }) => name === "queue_packets" && labels.port === "b" && labels.priority === "3",
    );
    expect(queue?.value).toBe(packets);
    // Nobody answers at that address, but the kernel next door learns whose it is.
    const host = net.namespace("a");
    await host.run("ip", ["route", "add", "10.77.0.2/32", "dev", "weir0"]);
    await host.run("ping", ["-q", "-c", "1", "-W", "1", "10.77.0.2"]).catch(() => {});
    const { stdout } = await host.run("ip", ["neighbour", "show", "10.77.0.2"]);
    expect(stdout).toContain("lladdr 02:57:00:00:00:0b");
    for (const { child, finished } of [sender, receiver]) {
      child.kill("SIGTERM");
      expect((await finished).status).toBe(0);
    }
  });
});
