/** Two NICs that serve programs, on one link, and programs on them; as many pairs of programs as a test wants. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { LabNetwork } from "../../src/host/veth.js";
import { kWeir } from "../command.js";
import { eventually } from "../patience.js";
import { type Daemon, daemon, freePort, type kHosts, network, startSwitch } from "./daemons.js";
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

export interface NicOfPrograms extends Daemon {
  file: string;
}

/** @param more Of the file: its address, and who may use it. */
export async function startNic(net: LabNetwork, host: Host, more: string): Promise<NicOfPrograms> {
  const path = folder();
  const file = join(path, "nic.yaml");
  const control = join(path, `roce-${host}.sock`);
  writeFileSync(
    file,
    `name: roce-${host}
interface: weir0
namespace: ${net.namespace(host).path}
rate: 1Gbps
metrics: false
control: ${control}
${more}`,
  );
  return { ...(await daemon("nic", file, control)), file };
}

/** With a switch between them. */
export async function twoNics(more: (last: number) => string): Promise<Record<Host, NicOfPrograms>> {
  const net = await network();
  await startSwitch(net);
  return { a: await startNic(net, "a", more(1)), b: await startNic(net, "b", more(2)) };
}

/** @param as In front of the launcher: setpriv, unshare and their options. */
export function run({ socket }: Daemon, command: readonly string[], as: readonly string[] = []): Program {
  const [program = "", ...args] = [...as, ...kWeir, "run", "--socket", socket, "--", ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
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

/** A server on `to` that listens, and then a client on `from`. Both print their pid first: a signal to the launcher is not one to the program. */
export async function begin(
  { from, to }: { from: Daemon; to: Daemon },
  command: readonly string[],
): Promise<{ server: Program; client: Program }> {
  const port = String(await freePort());
  const whole = ["sh", "-c", 'echo $$; exec "$@"', "sh", ...command, "-p", port];
  const server = run(to, whole);
  await eventually(() => listens(Number(port)));
  return { server, client: run(from, [...whole, "127.0.0.1"]) };
}

/** Of one that begin() started. */
export const pidOf = (program: Program) => Number.parseInt(program.output(), 10);

function listens(port: number): void {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lines = ["tcp", "tcp6"].flatMap((file) => readFileSync(`/proc/net/${file}`, "utf8").split("\n"));
  expect(lines.some((line) => line.includes(hex) && / 0A /.test(line))).toBe(true);
}
