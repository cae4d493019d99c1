/** Two NICs that serve programs, with a switch between them, and programs that run on them by `weir run`. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { LabNetwork } from "../../src/host/veth.js";
import { kWeir } from "../command.js";
import { type Daemon, daemon, kHosts, network, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

export type Host = (typeof kHosts)[number];

export interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  output: string;
}
export interface Program {
  child: ChildProcess;
  output(): string;
  ended: Promise<Ended>;
}

async function startNic(net: LabNetwork, host: Host): Promise<Daemon> {
  const path = folder();
  const file = join(path, "nic.yaml");
  const control = join(path, `roce-${host}.sock`);
  writeFileSync(
    file,
    `name: roce-${host}
interface: weir0
namespace: ${net.namespace(host).path}
address: 10.66.0.${kHosts.indexOf(host) + 1}
rate: 1Gbps
metrics: false
programs: true
control: ${control}
`,
  );
  return daemon("nic", file, control);
}

export async function fabric(net?: LabNetwork): Promise<Record<Host, Daemon>> {
  net ??= await network();
  await startSwitch(net);
  return { a: await startNic(net, "a"), b: await startNic(net, "b") };
}

/** On one daemon's NIC; the program itself is in the test's own network namespace, where two of them reach each other by TCP. */
export function run(nic: Daemon, ...command: readonly string[]): Program {
  return runWith({}, nic, ...command);
}

export function runWith(env: Record<string, string>, { socket }: Daemon, ...command: readonly string[]): Program {
  const [program = "", ...args] = [...kWeir, "run", "--socket", socket, "--", ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  onTestFinished(() => void child.kill("SIGTERM"));
  let output = "";
  const take = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (status, signal) => resolve({ status, signal, output }));
  });
  return { child, output: () => output, ended };
}
