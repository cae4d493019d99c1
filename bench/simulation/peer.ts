/** Another simulator beside ours, in the same run: any command. */
import { spawn } from "node:child_process";
import { InvalidArgumentError } from "commander";

export interface PeerSample {
  /** User and system time of the command, s. */
  cpu_s: number;
  /** What it printed as "hops N". Undefined: it printed none. */
  hops?: number | undefined;
}

export interface Peer {
  /** The case that it is compared with. */
  name: string;
  command: string;
}

/** @param text "CASE=COMMAND". */
export function parsePeer(text: string, cases: readonly string[]): Peer {
  const [, name = "", command = ""] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (!cases.includes(name)) {
    throw new InvalidArgumentError(`It is CASE=COMMAND, with a case of ${cases.join(", ")}.`);
  }
  return { name, command };
}

/** Runs the command in a shell; @throws Error when it fails or takes longer than `limit` s. */
export async function runPeer({ name, command }: Peer, limit: number): Promise<PeerSample> {
  const script = 'TIMEFORMAT="peer-cpu %U %S"; time timeout "$1" bash -c "$2"';
  const child = spawn("bash", ["-c", script, "peer", String(limit), command], { stdio: ["ignore", "pipe", "pipe"] });
  // Some simulators print a line per packet: only the end is kept.
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] = (output[stream] + text).slice(-4096);
    });
  }
  const [status] = await new Promise<[number | null]>((resolve, reject) => {
    child.on("close", (code) => resolve([code])).on("error", reject);
  });
  const cpu = /^peer-cpu ([\d.]+) ([\d.]+)$/m.exec(output.stderr);
  if (status !== 0 || cpu === null) throw new Error(`peer of ${name}: exit status ${status}\n${output.stderr}`);
  const hops = [...output.stdout.matchAll(/^hops (\d+)$/gm)].at(-1)?.[1];
  return { cpu_s: Number(cpu[1]) + Number(cpu[2]), ...(hops !== undefined && { hops: Number(hops) }) };
}
