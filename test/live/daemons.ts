/** Daemons between ordinary namespaces of this machine: two hosts, a switch, and processes that run the command line. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { LabNetwork } from "../../src/host/veth.js";
import { kRoot, kWeir } from "../command.js";
import { endWithTest } from "../end_with_test.js";
import { eventually } from "../patience.js";
import { folder } from "./weir.js";

export const kHosts = ["a", "b"] as const;
const kFirstMac = 0x02_57_00_00_00_0a;

/** Hosts with addresses 10.66.0.1, .2 and so on on weir0, and the namespace of a switch with their links' other ends. */
export async function network(hosts: readonly string[] = kHosts): Promise<LabNetwork> {
  const built = await LabNetwork.create(
    [...hosts.map((name) => ({ name, role: "host" as const })), { name: "sw", role: "switch" }],
    hosts.map((host, i) => ({ from: host, to: "sw", mtu: 1500, fromMac: kFirstMac + i })),
  );
  onTestFinished(() => built.close());
  for (const [i, host] of hosts.entries()) {
    // Links of labs are without ARP: only what the lab sends is on them.
    const lines = ["link set dev weir0 arp on multicast on", `address add 10.66.0.${i + 1}/24 dev weir0`];
    await built.namespace(host).run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  }
  return built;
}

/** Makes the link of host b anew after it was deleted, with the same names and addresses. */
export async function connectAgain(net: LabNetwork): Promise<void> {
  const host = net.namespace("b");
  const link = [`link add name b type veth peer name weir0 netns ${host.path}`, "link set dev b addrgenmode none up"];
  await net.namespace("sw").run("ip", ["-batch", "-"], `${link.join("\n")}\n`);
  const own = ["link set dev weir0 address 02:57:00:00:00:0b up", "address add 10.66.0.2/24 dev weir0"];
  await host.run("ip", ["-batch", "-"], `${own.join("\n")}\n`);
}

/** A free TCP port of those that the kernel gives nobody: no other test's program has it before ours listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    const server = createServer().listen(port, "127.0.0.1");
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

export interface Running {
  child: ChildProcess;
  /** Returns its log so far. */
  log(): (Record<string, unknown> & { msg: string })[];
  finished: Promise<{ status: number | null; stdout: string; stderr: string }>;
}

/** Runs weir in this process's own network namespace, where the test can reach its metrics; its ports are elsewhere. */
export const weir = (...args: string[]): Running => weirAs({}, ...args);

export interface Way {
  /** Words in front of the command: nsenter, setpriv and their options. */
  as?: readonly string[];
  env?: Record<string, string>;
  /** Signal that ends it with the test, unless it has ended: SIGKILL by default. */
  end?: NodeJS.Signals;
}

export function weirAs({ as = [], env = {}, end = "SIGKILL" }: Way, ...args: string[]): Running {
  const [program = "", ...rest] = [...as, ...kWeir, ...args];
  const child = spawn(program, rest, {
    cwd: kRoot,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  endWithTest(child, end);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const finished = new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve, reject) => {
    child.on("error", reject).on("close", (status) => resolve({ status, stdout, stderr }));
  });
  const log = () =>
    stderr
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown> & { msg: string });
  return { child, log, finished };
}

export interface Daemon extends Running {
  socket: string;
}

/** Starts a daemon and waits until it answers. */
export async function daemon(
  kind: "switch" | "nic",
  file: string,
  socket: string,
  as: readonly string[] = [],
): Promise<Daemon> {
  const running = weirAs({ as }, kind, "-c", file);
  let ended: string | undefined;
  void running.finished.then(({ status, stderr }) => {
    ended = `ended with ${status}: ${stderr}`;
  });
  await eventually(async () => ended ?? (await ask(socket, "ports")));
  expect(ended).toBeUndefined();
  return { ...running, socket };
}

interface SwitchOptions {
  /** More lines of the file. */
  more?: string;
  /** Fields of each port in the file. */
  port?: string;
  /** The ports, instead of one to each host. */
  ports?: string[];
}

export async function startSwitch(
  net: LabNetwork,
  { more = "", port: fields = "rate: 1Gbps", ports }: SwitchOptions = {},
) {
  const path = folder();
  const socket = join(path, "sw0.sock");
  const port = await freePort();
  const file = join(path, "switch.yaml");
  const write = (extra: string) =>
    writeFileSync(
      file,
      `name: sw0
ports:
${(ports ?? kHosts.map((host) => portOf(net, host, fields))).map((line) => `  - ${line}`).join("\n")}
control: ${socket}
metrics: { port: ${port} }
${extra}`,
    );
  write(more);
  return { ...(await daemon("switch", file, socket)), write, file, url: `http://127.0.0.1:${port}` };
}

/** An XDP program that passes every frame on at a host's end of its link, until the test or the returned function ends it. */
export async function runXdp(net: LabNetwork, host: string): Promise<() => Promise<void>> {
  const args = [`--net=${net.namespace(host).path}`, "python3", join(kRoot, "test/live/xdp_pass.py"), "weir0"];
  const child = spawn("nsenter", args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onTestFinished(() => void child.stdin.end());
  await Promise.race([once(child.stdout, "data"), ended.then(() => Promise.reject(new Error("no XDP program")))]);
  return async () => {
    child.stdin.end();
    await ended;
  };
}

/** 10.77.0.1 and .2: addresses that the kernel does not have. */
const addressOf = (host: (typeof kHosts)[number]) => `10.77.0.${kHosts.indexOf(host) + 1}`;

/** Starts roce-a or roce-b, on the link of its host. `pairs`: queue pairs to the other, but for their names. */
export async function startNic(
  net: LabNetwork,
  host: (typeof kHosts)[number],
  { pairs, more = "" }: { pairs: readonly string[]; more?: string },
) {
  const path = folder();
  const peer = host === "a" ? "b" : "a";
  const port = await freePort();
  const file = join(path, `${host}.yaml`);
  const socket = join(path, `${host}.sock`);
  writeFileSync(
    file,
    `name: roce-${host}
interface: weir0
namespace: ${net.namespace(host).path}
address: ${addressOf(host)}
rate: 1Gbps
peers: [{ name: peer, address: ${addressOf(peer)}, mac: "02:57:00:00:00:0${peer}" }]
queue_pairs:
${pairs.map((pair, i) => `  - { name: qp${i}, peer: peer, ${pair} }`).join("\n")}
metrics: { port: ${port}, per_qp: true, node_infiniband: true }
control: ${socket}
${more}`,
  );
  return { ...(await daemon("nic", file, socket)), url: `http://127.0.0.1:${port}` };
}

/** A switch's port to a host, as its file has it. */
export function portOf(net: LabNetwork, host: string, fields: string): string {
  return `{ interface: ${host}, namespace: ${net.namespace("sw").path}, ${fields} }`;
}

/** Pings and returns the figures of "30 packets transmitted, 30 received, 0% packet loss, time 311ms". */
export async function ping(
  net: LabNetwork,
  count: number,
  to = "10.66.0.2",
): Promise<{ sent: number; received: number }> {
  const { stdout } = await net.namespace("a").run("ping", ["-q", "-c", String(count), "-i", "0.01", to]);
  const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(stdout) ?? [];
  return { sent: Number(sent), received: Number(received) };
}

export async function metric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  expect(line, `${series} in\n${text}`).toBeDefined();
  return Number(line?.slice(series.length + 1));
}
