/** NICs that serve programs, with a switch between them, and programs that run on them by `weir run`. */
import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { LabNetwork } from "../../src/host/veth.js";
import { eventually } from "../patience.js";
import { type Daemon, daemon, freePort, kHosts, network, startSwitch, type Way, weirAs } from "./daemons.js";
import { folder } from "./weir.js";

export type Host = (typeof kHosts)[number];
export type Nics<Nic = NicOfPrograms> = Record<Host, Nic>;

export interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  /** Both of its outputs, as they came. */
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

/** The fields of a NIC's file that depend on the test, by the last number of the host's address. */
type Fields = (last: number) => string;
const kPlain: Fields = (last) => `address: 10.66.0.${last}\nprograms: true\n`;

/** With WEIR_DIRECT in the environment all programs of these tests have paths of their own. */
const onPath = (text: string) =>
  process.env.WEIR_DIRECT === undefined
    ? text
    : text
        .replace("programs: true", "programs: { direct: true }")
        .replace("programs: { group", "programs: { direct: true, group");

/** Starts roce_a or roce_b, on the link of its host. */
export async function startNic(net: LabNetwork, host: Host, fields: Fields = kPlain): Promise<NicOfPrograms> {
  const path = folder();
  const file = join(path, "nic.yaml");
  const control = join(path, `roce_${host}.sock`);
  writeFileSync(
    file,
    `name: roce_${host}
interface: weir0
namespace: ${net.namespace(host).path}
rate: 1Gbps
metrics: false
control: ${control}
${onPath(fields(kHosts.indexOf(host) + 1))}`,
  );
  return { ...(await daemon("nic", file, control)), file };
}

export async function fabric({ net, fields }: { net?: LabNetwork; fields?: Fields } = {}): Promise<Nics> {
  net ??= await network();
  await startSwitch(net);
  return { a: await startNic(net, "a", fields), b: await startNic(net, "b", fields) };
}

/**
 * Runs a program on one daemon's NIC; the program itself is in the test's own network namespace, where two of them reach each
 * other by TCP.
 */
export const run = (nic: Daemon, ...command: readonly string[]): Program => runBy({}, nic, ...command);

export function runBy(way: Way, { socket }: Daemon, ...command: readonly string[]): Program {
  // The launcher hands on those signals that may be handed on.
  const { child, finished } = weirAs({ end: "SIGTERM", ...way }, "run", "--socket", socket, "--", ...command);
  let output = "";
  const take = (bytes: Buffer | string) => {
    output += bytes.toString();
  };
  child.stdout?.on("data", take);
  child.stderr?.on("data", take);
  const ended = finished.then(({ status }) => ({ status, signal: child.signalCode, output }));
  return { child, output: () => output, ended };
}

/**
 * Starts a server on `to` that listens, and then a client on `from`. Both print their pid first: a signal to the launcher is not
 * one to the program.
 */
export async function begin(
  { from, to }: { from: Daemon; to: Daemon },
  command: readonly string[],
): Promise<{ server: Program; client: Program }> {
  const port = String(await freePort());
  const whole = ["sh", "-c", 'echo $$; exec "$@"', "sh", ...command, "-p", port];
  const server = run(to, ...whole);
  await eventually(() => expect(listens(Number(port)), server.output()).toBe(true));
  return { server, client: run(from, ...whole, "127.0.0.1") };
}

/** Pid of a program that begin() started. */
export const pidOf = (program: Program) => Number.parseInt(program.output(), 10);

/** Runs the server on b, and once it listens the client on a; both have to end well. Returns the client's output. */
export async function pair(nics: Nics<Daemon>, command: readonly string[]): Promise<string> {
  const { server, client } = await begin({ from: nics.a, to: nics.b }, command);
  const said = await client.ended;
  expect(said, said.output).toMatchObject({ status: 0 });
  const { status, output } = await server.ended;
  expect(status, output).toBe(0);
  return said.output;
}

/** Tells whether somebody listens at a TCP port of this process's network namespace, or of that of process `pid`. */
export function listens(port: number, pid: number | "self" = "self"): boolean {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lines = ["tcp", "tcp6"].flatMap((file) => readFileSync(`/proc/${pid}/net/${file}`, "utf8").split("\n"));
  return lines.some((line) => line.includes(hex) && / 0A /.test(line));
}
