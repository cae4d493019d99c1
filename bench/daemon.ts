/** `weir switch` and `weir nic` as processes of their own, as on a host: what they log is kept for errors. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ask } from "../src/device/control_client.js";
import { cpuSeconds } from "./dataplane/cpu.js";

const kRoot = fileURLToPath(new URL("..", import.meta.url));
const kMain = join(kRoot, "src/cli/main.ts");
/** Several start at once, maybe on a machine that has other things to do. */
const kStartMs = 180_000;
const kStopMs = 5000;

/** CPU time so far, s. */
export interface DaemonCpu {
  /** Of the threads that have the data path. */
  workers: number;
  /** Of all else: JavaScript, HTTP, memory management. */
  rest: number;
}

export class BenchDaemon {
  private constructor(
    readonly child: ChildProcess,
    private readonly folder: string,
    readonly socket: string,
  ) {}

  /** Until it answers. `config`: its file but for `control`. */
  static async start(kind: "switch" | "nic", config: { name: string } & Record<string, unknown>): Promise<BenchDaemon> {
    const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
    const socket = join(folder, "control.sock");
    const file = join(folder, `${kind}.yaml`);
    writeFileSync(file, JSON.stringify({ ...config, control: socket }));
    // It ends when this process does, however that ends.
    const command = ["--pdeathsig", "TERM", process.execPath, "--import", "tsx", kMain, kind, "-c", file];
    const child = spawn("setpriv", command, {
      cwd: kRoot,
      stdio: ["ignore", "ignore", "pipe"],
    });
    // Of the process that measures, which comes first; the data path asks for its own.
    if (child.pid !== undefined) setPriority(child.pid, 0);
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    const daemon = new BenchDaemon(child, folder, socket);
    for (const start = performance.now(); ; await sleep(50)) {
      if (child.exitCode !== null || performance.now() - start > kStartMs) {
        await daemon.stop();
        throw new Error(`weir ${kind} did not start: ${log}`);
      }
      if (await ask(socket, "ports").catch(() => undefined)) return daemon;
    }
  }

  cpu(): DaemonCpu {
    const { pid } = this.child;
    const cpu: DaemonCpu = { workers: 0, rest: 0 };
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const worker = readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").startsWith("weir-");
      cpu[worker ? "workers" : "rest"] += cpuSeconds(`${pid}/task/${thread}`);
    }
    return cpu;
  }

  /** Of all labels of this name. */
  async counter(name: string): Promise<number> {
    const { counters } = await ask(this.socket, "counters");
    return counters.reduce((sum, one) => sum + (one.name === name ? one.value : 0), 0);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, "exit");
      this.child.kill("SIGTERM");
      const late = setTimeout(() => this.child.kill("SIGKILL"), kStopMs);
      await ended;
      clearTimeout(late);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A TCP port of 127.0.0.1 that nobody has now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
