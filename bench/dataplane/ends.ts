/** Two hosts on a veth pair, or with a switch between them, and what runs at both: `weir perf`, iperf3, programs of others. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runTool } from "../../src/host/tools.js";
import { LabNetwork } from "../../src/host/veth.js";
import { hostIp, hostMac } from "../../src/scenario/addresses.js";
import type { PerfReport, PerfRow } from "../../src/verbs/perf/report.js";

const kMain = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const kLimitMs = 120_000;

export type End = "a" | "b";
const kEnds: readonly End[] = ["a", "b"];

/** What has to end, last first. */
export type Ends = (() => void | Promise<void>)[];

export const addressOf = (end: End) => hostIp(end === "a" ? 0 : 1).join(".");

/** weir0 at both ends, joined; or where there is a `switch`, the other ends of their cables in its namespace, a and b. */
export async function pair(ends: Ends, mtu: number, withSwitch = false): Promise<LabNetwork> {
  const hosts = kEnds.map((name) => ({ name, role: "host" as const }));
  const [fromMac, toMac] = [hostMac(0), hostMac(1)];
  const network = withSwitch
    ? await LabNetwork.create(
        [...hosts, { name: "sw", role: "switch" }],
        [
          { from: "a", to: "sw", mtu, fromMac },
          { from: "b", to: "sw", mtu, fromMac: toMac },
        ],
      )
    : await LabNetwork.create(hosts, [{ from: "a", to: "b", mtu, fromMac, toMac }]);
  ends.push(() => network.close());
  for (const end of kEnds) {
    const lines = `link set dev weir0 arp on\naddress add ${addressOf(end)}/24 dev weir0\n`;
    await network.namespace(end).run("ip", ["-batch", "-"], lines);
  }
  return network;
}

/** A process, with what it printed and the time that it had on CPUs: a shell tells that at the end. */
export class Timed {
  readonly ended: Promise<{ text: string; seconds: number }>;
  readonly #child: ChildProcess;
  #text = "";

  constructor(command: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    const script = `TIMEFORMAT="CPU %U %S"; time env "$0" "$@"`;
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    this.#child = spawn("setpriv", ["--pdeathsig", "TERM", "bash", "-c", script, ...variables, ...command], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: kLimitMs,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#text += text;
      });
    }
    this.ended = once(this.#child, "close").then(([status]) => {
      const [, user, system] = /^CPU ([\d.]+) ([\d.]+)$/m.exec(this.#text) ?? [];
      if (status !== 0) throw new Error(`${command[0]} ended with ${status}: ${this.#text}`);
      return { text: this.#text, seconds: Number(user) + Number(system) };
    });
    this.ended.catch(() => {});
  }

  async until(ready: (text: string) => boolean | Promise<boolean>): Promise<void> {
    for (const begin = performance.now(); !(await ready(this.#text)); await sleep(20)) {
      if (this.#child.exitCode !== null) await this.ended;
      if (performance.now() - begin > kLimitMs) throw new Error(`it does not begin: ${this.#text}`);
    }
  }
}

/** In the network namespace of an end, with a /sys that shows it. */
export const at = (network: LabNetwork, end: End, ...command: readonly string[]) => [
  "nsenter",
  `--net=${network.namespace(end).path}`,
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount -t sysfs sys /sys && exec "$@"',
  "sh",
  ...command,
];

/** Whether somebody listens, by the text of /proc/net/tcp and the like. */
export function listensIn(text: string, port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  return text.split("\n").some((line) => line.includes(local) && / 0A /.test(line));
}

/** Both ends of `weir perf`, the server on b; `options` after the name of the test. */
export async function weirPerf(
  network: LabNetwork,
  ...options: string[]
): Promise<Record<"client" | "server", PerfRow>> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const file = join(folder, "server.json");
  const inside = (end: End, ...more: string[]) =>
    new Timed(at(network, end, process.execPath, "--import", "tsx", kMain, "perf", ...options, "-d", "weir0", ...more));
  try {
    const serving = inside("b", "--out_json_file", file);
    await serving.until((text) => text.includes("Waiting for client"));
    const { text } = await inside("a", addressOf("b"), "--json").ended;
    await serving.ended;
    const reports = [text.replace(/^CPU .*$/m, ""), readFileSync(file, "utf8")];
    const [client, server] = reports.map((json) => (JSON.parse(json) as PerfReport).results[0]);
    if (client === undefined || server === undefined) throw new Error(`weir perf ${options.join(" ")} has no result`);
    return { client, server };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of a stream of TCP, payload in Gb/s; how many CPUs each end had, with the kernel's work on its behalf. */
export interface Stream {
  rate: number;
  client: number;
  server: number;
}

/** iperf3, one stream, with the offloads that veth has by default. */
export async function tcpStream(network: LabNetwork, seconds: number): Promise<Stream> {
  const server = network.namespace("b").run("iperf3", ["--server", "--one-off", "--bind", addressOf("b")]);
  server.catch(() => {}); // the client says what is wrong
  const client = ["--client", addressOf("b"), "--time", String(seconds), "--length", "64K", "--json"];
  await sleep(300);
  const { stdout } = await network.namespace("a").run("iperf3", client);
  await server.catch(() => {});
  const { end } = JSON.parse(stdout) as {
    end: {
      sum_received: { bits_per_second: number };
      cpu_utilization_percent: { host_total: number; remote_total: number };
    };
  };
  const { host_total, remote_total } = end.cpu_utilization_percent;
  return { rate: end.sum_received.bits_per_second / 1e9, client: host_total / 100, server: remote_total / 100 };
}

/** Says what is left out where a program is not there. */
export async function installed(program: string, packages: string): Promise<boolean> {
  const found = await runTool("sh", ["-c", `command -v ${program}`]).then(
    () => true,
    () => false,
  );
  if (!found) process.stderr.write(`  left out: ${program} not found (apt install ${packages})\n`);
  return found;
}
